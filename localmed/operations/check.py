"""What ``localmed doctor`` finds: one line a check, and what the checks are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.operations.machine import Machine

if TYPE_CHECKING:
    from localmed.models.host.server import Status as HostStatus
    from localmed.models.registry.registry import Registry


class Level(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, how it is, in words, and what to do about it."""

    name: str
    level: Level
    says: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """What the checks look at. ``full`` reads every byte of generations and models; ``now`` has a time zone.

    ``progress`` is told of each piece of a model that was read, ``host`` asks the model host how it is.
    """

    settings: Settings
    registry: Registry
    machine: Machine
    environment: Mapping[str, str]
    now: datetime
    full: bool = False
    progress: Callable[[float, str], object] = lambda *_: None
    host: Callable[[], HostStatus | None] = lambda: None


def ok(name: str, says: str) -> Check:
    """All is well."""
    return Check(name, Level.OK, says)


def warning(name: str, says: str, remedy: str) -> Check:
    """It works, and somebody should know."""
    return Check(name, Level.WARNING, says, remedy)


def problem(name: str, says: str, remedy: str) -> Check:
    """It does not work, or is not safe, until somebody acts."""
    return Check(name, Level.PROBLEM, says, remedy)


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
