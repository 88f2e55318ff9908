"""Changes of the models: each noted in the audit log, a full disk told in one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.config import built_in
from localmed.library.space import told_if_full
from localmed.operations.audit import Audit, actor

if TYPE_CHECKING:
    from localmed.models.registry.registration import Model
    from localmed.models.registry.registry import Registry

Progress = Callable[[float, str], None]


def add(
    registry: Registry,
    data: Path,
    source: Path,
    name: str,
    role: str,
    template: str,
    progress: Progress,
    started: Callable[[int], None],
) -> Model:
    """Register ``source``; see ``Registry.add``."""
    with told_if_full(registry.folder):
        model = registry.add(source, actor(), name, role, template, progress, started)
        _note(data, "model add", model.name, model.files[0].sha256[:12])
    return model


def remove(registry: Registry, data: Path, name: str) -> Model:
    """Forget the model ``name`` and delete its files; see ``Registry.remove``."""
    model = registry.remove(name)
    _note(data, "model remove", name, "removed")
    return model


def use(registry: Registry, data: Path, role: str, name: str, progress: Progress) -> None:
    """Let ``name``, a registered model or what is built in, serve ``role``; see ``Registry.use``."""
    if built_in(role, name):
        registry.assign(role, name)
    else:
        registry.use(role, name, progress)
    _note(data, "model use", name, role)


def _note(data: Path, action: str, subject: str, outcome: str) -> None:
    with closing(Audit(data)) as audit:
        audit.append(action, subject, outcome)
