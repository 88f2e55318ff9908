"""How a caller follows long work and stops it: which step began, how far it is, that it ended, and a cancellation.

A caller passes ``Hooks`` to a session; the flow's driver and the importer report to them. What works deep inside a step
(an adapter over batches of texts, a chat model over passages) reaches the same hooks by ``active()``, so that the ports
keep their one method. The hooks belong to the thread that the caller called in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeVar

from localmed.domain import Answer, Message, TraceStep
from localmed.domain.errors import Cancelled
from localmed.process import interrupts

Item = TypeVar("Item")


class Cancel:
    """Whether the caller has given up; may be set and asked from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """The caller gives up: the work ends at its next look."""
        self._event.set()

    def cancelled(self) -> bool:
        """Whether the caller has given up."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise ``Cancelled`` if the caller has given up."""
        if self._event.is_set():
            raise Cancelled("workflow.cancelled")


class Recorder(Protocol):
    """Takes a run of a flow down, so that it can be replayed."""

    def begin(self, workflow: str, arguments: tuple[Any, ...]) -> None:
        """A flow starts; what was taken down of an earlier run is dropped."""
        ...

    def step(self, request: Any, result: Any) -> None:
        """A request was answered."""
        ...


def _ignore(*_: object) -> None:
    """Nobody follows."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a caller is told. ``progress`` gets what is done of a total (0: not known) and a name, such as a file's.

    ``sections`` gets the answer with its sections alone as soon as they are there, while a chat model reads them.
    From ``models_until`` on (of the monotonic clock) no chat model is asked any more: rules go on.
    ``answer_id`` is the id under which the caller will keep the answer, for the audit log ("": it is not kept).
    """

    started: Callable[[Message], object] = _ignore
    progress: Callable[[float, float, str], object] = _ignore
    finished: Callable[[TraceStep], object] = _ignore
    sections: Callable[[Answer], object] = _ignore
    cancel: Cancel = Cancel()  # noqa: RUF009  (one that nobody sets)
    recorder: Recorder | None = None
    answer_id: str = ""
    models_until: float = inf

    def cancel_only(self) -> Hooks:
        """Hooks that only may end the work: for what is within work that counts its own progress."""
        return Hooks(cancel=self.cancel, models_until=self.models_until)

    def models_over(self) -> bool:
        """Whether a chat model is to stop: the caller has given up, or the time for it is over."""
        return self.cancel.cancelled() or time.monotonic() > self.models_until

    def counter(self) -> tuple[Callable[[int], None], Callable[[float, str], None]]:
        """For work that tells how much more of it is done: a function to set the total, and one to advance."""
        done, total = 0.0, 0.0

        def start(amount: int) -> None:
            nonlocal total
            total = amount
            self.progress(done, total, "")

        def advance(more: float, name: str) -> None:
            nonlocal done
            self.cancel.check()
            done += more
            self.progress(done, total, name)

        return start, advance


SILENT = Hooks()
_ACTIVE: ContextVar[Hooks] = ContextVar("hooks", default=SILENT)


def active() -> Hooks:
    """The hooks of the work that this thread does."""
    return _ACTIVE.get()


def check() -> None:
    """Raise ``Cancelled`` if whoever this thread works for has given up, ``KeyboardInterrupt`` after Ctrl-C."""
    interrupts.check()
    _ACTIVE.get().cancel.check()


@contextmanager
def following(hooks: Hooks) -> Iterator[None]:
    """Report to ``hooks`` what this thread does within the block."""
    token = _ACTIVE.set(hooks)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def pieces(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """``items`` in pieces of ``size``; between two of them the caller may have given up."""
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """``items``; after each the caller may have given up."""
    for item in items:
        check()
        yield item
