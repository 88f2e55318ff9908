"""What stands between a generation that was built and its being served: whoever made the change looks at it first.

A change is made within ``guarded``; before the swap (of a generation that was built, or that a rollback goes back to)
the gate is called with its folder, which can be opened and asked (``Library.candidate``). What it raises keeps the
generation from being served; what is served stays. Without a gate everything passes: tests of the library itself, and
``localmed repair``, which begins where nothing whole is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

Gate = Callable[[Path], object]


def _open(_: Path) -> None:
    """Nobody looks."""


_GATE: ContextVar[Gate] = ContextVar("gate", default=_open)


@contextmanager
def guarded(gate: Gate) -> Iterator[None]:
    """Let ``gate`` look at what this thread is about to serve within the block."""
    token = _GATE.set(gate)
    try:
        yield
    finally:
        _GATE.reset(token)


def look(candidate: Path) -> None:
    """Let whoever makes the change look at the generation in ``candidate``; raise what they raise."""
    _GATE.get()(candidate)
