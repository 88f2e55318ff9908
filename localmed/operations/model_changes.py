"""Changes of the models: each noted in the audit log, a full disk told in one line."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.library.space import told_if_full
from localmed.operations.audit import Audit, actor

if TYPE_CHECKING:
    from localmed.models.record import Model
    from localmed.models.registry import Registry

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


def use(registry: Registry, data: Path, role: str, name: str, progress: Progress) -> Model:
    """Let the model ``name`` serve ``role``; see ``Registry.use``."""
    model = registry.use(role, name, progress)
    _note(data, "model use", name, role)
    return model


def _note(data: Path, action: str, subject: str, outcome: str) -> None:
    with closing(Audit(data)) as audit:
        audit.append(action, subject, outcome)
