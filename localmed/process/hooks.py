"""How a caller follows long work and cancels it: steps begun and finished, progress, cancellation.

A caller passes ``Hooks`` to a session; the flow's driver and the importer report to them. Code deep inside a step (an
adapter over batches of texts, a chat model over passages) reaches the same hooks by ``active()``, so that ports keep
their one method. Hooks belong to the thread of the call.
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
    """Whether the caller has cancelled; may be set and read from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Cancel: the work ends at its next check."""
        self._event.set()

    def cancelled(self) -> bool:
        """Whether the caller has cancelled."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise ``Cancelled`` if the caller has cancelled."""
        if self._event.is_set():
            raise Cancelled("workflow.cancelled")


class Recorder(Protocol):
    """Records a run of a flow, so that it can be replayed."""

    def begin(self, workflow: str, arguments: tuple[Any, ...]) -> None:
        """A flow starts; an earlier recording is dropped."""
        ...

    def step(self, request: Any, result: Any) -> None:
        """A request was answered."""
        ...


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Hooks:
    """The caller's callbacks. ``progress`` receives the amount done, the total (0: unknown) and a name such as a
    file's, or a message as JSON (``messages.to_text``).

    ``sections`` receives the answer with only its sections, before a chat model reads them. From ``models_until``
    (monotonic clock) on no chat model is called. ``answer_id`` is the id under which the caller will store the answer,
    for the audit log ("": it is not stored).
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
        """Hooks that can only cancel, for work inside work that counts its own progress."""
        return Hooks(cancel=self.cancel, models_until=self.models_until)

    def models_over(self) -> bool:
        """Whether a chat model must stop: the caller has cancelled, or its time is over."""
        return self.cancel.cancelled() or time.monotonic() > self.models_until

    def counter(self) -> tuple[Callable[[int], None], Callable[[float, str], None]]:
        """For work that reports increments: a function that sets the total, and one that advances."""
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
    """The hooks of this thread's work."""
    return _ACTIVE.get()


def check() -> None:
    """Raise ``Cancelled`` if this thread's caller has cancelled, ``KeyboardInterrupt`` after Ctrl-C."""
    interrupts.check()
    _ACTIVE.get().cancel.check()


@contextmanager
def following(hooks: Hooks) -> Iterator[None]:
    """Report this thread's work within the block to ``hooks``."""
    token = _ACTIVE.set(hooks)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def in_batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """``items`` in batches of ``size``, with a check before each."""
    for start in range(0, len(items), size):
        check()
        yield items[start : start + size]


def with_checks(items: Iterable[Item]) -> Iterator[Item]:
    """``items``, with a check after each."""
    for item in items:
        check()
        yield item
