"""Changes of the models: each noted in the audit log before and after, a full disk told in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.files import told_if_full

if TYPE_CHECKING:
    from localmed.models.registry.registration import Model
    from localmed.session import Session

Progress = Callable[[float, str], None]


def add(
    session: Session,
    source: Path,
    name: str,
    role: str,
    template: str,
    progress: Progress,
    started: Callable[[int], None],
) -> Model:
    """Register ``source``; see ``Registry.add``."""
    registry = session.site.registry
    with session.change("model add", name or source.name) as change, told_if_full(registry.folder):
        model = registry.add(source, session.caller.user, name, role, template, progress, started)
        change.subject, change.outcome = model.name, model.files[0].sha256[:12]
    return model


def remove(session: Session, name: str) -> Model:
    """Forget the model ``name`` and delete its files; see ``Registry.remove``."""
    with session.change("model remove", name) as change:
        model = session.site.registry.remove(name)
        change.outcome = "removed"
    return model


def chat_roles(session: Session) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roles that a chosen chat model serves, and those that ``[roles]`` of the settings give others."""
    from localmed.agents.role_table import ROLES

    others = tuple(name for name in ROLES if session.settings.roles.get(name, "chat") != "chat")
    return tuple(name for name in ROLES if name not in others), others


def use(session: Session, role: str, name: str, progress: Progress) -> None:
    """Let ``name``, a registered model or what is built in, serve ``role``; see ``Site.use``."""
    with session.change("model use", name) as change:
        session.site.use(role, name, progress)
        change.outcome = role
