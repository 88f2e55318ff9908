"""Runs a workflow while its page waits: events as they happen, then the answer. Every workflow uses it.

``follow`` runs the work in a thread and yields events; a browser that disconnects cancels the work. Sections and
answer are sent only if the login is still valid. ``events`` writes server-sent events in the reply to a POST, because
an ``EventSource`` would need the question in an address.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from localmed.domain import Answer, Message
from localmed.domain.errors import LocalmedError, NotSignedIn
from localmed.messages import sentences
from localmed.people import logins, tokens
from localmed.presentation import neutral
from localmed.process.hooks import Cancel, Hooks
from localmed.web import failures
from localmed.web.visits import LOGIN_COOKIE, Visit

PING = 15.0  # seconds of silence after which a sign of life is sent, so that no proxy closes the line
PROGRESS = 0.2  # seconds between two notes of progress
HEADERS = {"x-accel-buffering": "no"}  # a proxy must not hold events back
Work = Callable[[Hooks], Answer]


@dataclass(frozen=True, slots=True)
class Event:
    """A ``step`` (its message), ``progress`` (a share from 0 to 1), the ``sections`` while a model reads them, the
    ``answer``, an ``error``, or a ``ping``.
    """

    kind: str
    value: Any = None


@dataclass
class _Run:
    """A run in a thread, and its events."""

    loop: asyncio.AbstractEventLoop
    events: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    cancel: Cancel = field(default_factory=Cancel)
    noted: float = 0.0

    def tell(self, kind: str, value: Any = None) -> None:
        self._put(Event(kind, value))

    def _put(self, event: Event | None) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.events.put_nowait, event)

    def _progress(self, done: float, total: float, _: str) -> None:
        if total and time.monotonic() - self.noted > PROGRESS:
            self.noted = time.monotonic()
            self.tell("progress", min(1.0, done / total))

    def work(self, work: Work) -> None:
        hooks = Hooks(
            lambda step: self.tell("step", step),
            self._progress,
            sections=lambda answer: self.tell("sections", answer),
            cancel=self.cancel,
        )
        try:
            self.tell("answer", work(hooks))
        except Exception as error:
            self.tell("error", failures.as_ours(error))
        finally:
            self._put(None)


async def follow(visit: Visit, work: Work) -> AsyncIterator[Event]:
    """The events of ``work``; a listener that stops cancels it."""
    run = _Run(asyncio.get_running_loop())
    threading.Thread(target=run.work, args=(work,), name="workflow", daemon=True).start()
    try:
        while True:
            try:
                event = await asyncio.wait_for(run.events.get(), PING)
            except TimeoutError:
                event = Event("ping")
            if event is None:
                return
            shows = event.kind in ("sections", "answer", "ping")
            if shows and not await run_in_threadpool(_signed_in, visit):
                run.cancel.cancel()
                yield Event("error", NotSignedIn("web.error.signed_out"))
                return
            yield event
    finally:
        run.cancel.cancel()


async def to_its_end(pieces: AsyncGenerator[str, None], last: Callable[[LocalmedError], str]) -> AsyncIterator[str]:
    """``pieces``; ``last`` turns an error into the final piece: the status of a reply that has begun cannot change."""
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield piece
        except Exception as error:
            yield last(failures.as_ours(error))


def _signed_in(visit: Visit) -> bool:
    if visit.login is None:  # a program with a token of its own
        scheme, _, token = visit.request.headers.get("authorization", "").partition(" ")
        return (
            scheme.lower() == "bearer"
            and tokens.current(visit.site.data, token.strip(), visit.site.settings.web) is not None
        )
    token = visit.request.cookies.get(LOGIN_COOKIE, "")
    return logins.current(visit.site.data, token, visit.site.settings.web, used=False) is not None


Shown = Callable[[Event], Any]  # an event's JSON for the page; None: it is not sent


def events(visit: Visit, work: Work, shown: Shown) -> StreamingResponse:
    """``follow`` as server-sent events, each ``{"kind": ..., "value": ...}`` with the value from ``shown``.

    An error also has its ``code``.
    """

    async def lines() -> AsyncGenerator[str, None]:
        async for event in follow(visit, work):
            if event.kind == "ping":
                yield ": \n\n"
                continue
            value = await run_in_threadpool(shown, event)
            if value is not None:
                yield _line(event, value)

    def error_line(error: LocalmedError) -> str:
        event = Event("error", error)
        return _line(event, in_words(event, visit))

    return StreamingResponse(to_its_end(lines(), error_line), media_type="text/event-stream", headers=HEADERS)


def _line(event: Event, value: Any) -> str:
    code = {"code": event.value.message.code} if isinstance(event.value, LocalmedError) else {}
    line = json.dumps({"kind": event.kind, "value": value, **code}, ensure_ascii=False)
    return f"data: {line}\n\n"


def in_words(event: Event, visit: Visit) -> Any:
    """The value of an event that needs no page: the words of a step or an error, or the progress."""
    if isinstance(event.value, Message):
        return neutral.words(event.value, visit.language)
    if isinstance(event.value, LocalmedError):
        return sentences(failures.told_parts(event.value, visit), visit.language)
    return event.value
