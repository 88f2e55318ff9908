"""What ``localmed doctor`` finds: one line a check, and what the checks are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.domain import Message, Parameter, message
from localmed.domain.errors import LocalmedError
from localmed.messages import known, parts, render
from localmed.upkeep.fit import Machine

if TYPE_CHECKING:
    from localmed.domain.ports import EncoderIdentity
    from localmed.models.host.protocol import Status as HostStatus
    from localmed.models.registry.registry import Registry


class Level(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, how it is, and what to do about it."""

    name: str
    level: Level
    messages: tuple[Message, ...]  # how it is; then what to do, if anything

    @property
    def title(self) -> Message:
        """What was looked at, in words."""
        code = f"doctor.name_{self.name.replace(' ', '_')}"
        return message(code) if known(code) else message("literal", text=self.name)

    @property
    def says(self) -> str:
        """How it is, in English, for developers."""
        return render(self.messages[0], "en")

    @property
    def remedy(self) -> str:
        """What to do, in English, for developers; "" where there is nothing to do."""
        return "".join(render(part, "en") for part in self.messages[1:])


@dataclass(frozen=True, slots=True)
class Site:
    """What the checks look at. ``full`` reads every byte of generations and models; ``now`` has a time zone.

    ``progress`` is told of each piece of a model that was read, ``host`` asks the model host how it is. ``encoder``
    tells which one serves.
    """

    settings: Settings
    registry: Registry
    machine: Machine
    environment: Mapping[str, str]
    now: datetime
    full: bool = False
    progress: Callable[[float, str], object] = lambda *_: None
    host: Callable[[], HostStatus | None] = lambda: None
    encoder: Callable[[], EncoderIdentity | None] = lambda: None


def ok(name: str, code: str, /, **parameters: Parameter) -> Check:
    """All is well."""
    return Check(name, Level.OK, parts(message(code, **parameters))[:1])


def warning(name: str, code: str, /, **parameters: Parameter) -> Check:
    """It works, and somebody should know."""
    return Check(name, Level.WARNING, parts(message(code, **parameters)))


def problem(name: str, code: str, /, **parameters: Parameter) -> Check:
    """It does not work, or is not safe, until somebody acts."""
    return Check(name, Level.PROBLEM, parts(message(code, **parameters)))


def failed(name: str, error: LocalmedError) -> Check:
    """A check that ended with ``error``."""
    return Check(name, Level.PROBLEM, error.messages)


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
