"""Jobs: long changes that continue while the user leaves their page, and that can be cancelled.

A job runs in a thread of the process that accepted it. Progress and cancellation are in ``site.sqlite``, visible to all
server processes. If the process ends, the job shows as interrupted, with the same effect as a killed command (an import
can be continued). Names and outcomes contain no text of documents. Work that its user starts again while it runs (a
second click, a reloaded page) is the same job.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localmed.domain import Message, digest, message
from localmed.domain.accounts import Right
from localmed.domain.errors import LocalmedError, UnknownName
from localmed.library.state import rows, transaction
from localmed.messages import from_text, to_text
from localmed.process.confined import place
from localmed.process.hooks import Cancel, Hooks, following

if TYPE_CHECKING:
    from pathlib import Path

    from localmed.site.session import Session

LOG = logging.getLogger("localmed.jobs")
NOTED = 0.5  # seconds between two notes of the progress, and two looks for a cancellation
ENDINGS = 120  # tries to note that it has ended: a minute in which somebody else writes
SILENT = 30.0  # without a note: the process that ran it is gone
KEPT = 30 * 86_400.0  # seconds that an outcome is kept
Work = Callable[[Hooks], Message]  # returns the outcome


@dataclass(frozen=True, slots=True)
class Job:
    """A job now; ``outcome`` is None while it runs, ``kind`` a code of ``job``, ``back`` the page after it."""

    id: str
    kind: str
    user: str
    started: float
    done: float
    total: float
    name: Message
    back: str
    outcome: Message | None = None


def start(session: Session, kind: str, work: Work, back: str = "/", *values: object) -> str:
    """Start ``work`` on ``values`` in a thread, unless it is already running; return the job's id.

    The functions that it calls check the session's rights.
    """
    id_, user, now = secrets.token_urlsafe(9), session.caller.user, time.time()
    same = digest(kind, user, back, repr(values))
    with rows(session.data) as state, transaction(state):
        state.execute("DELETE FROM jobs WHERE seen < ?", (now - KEPT,))
        running = "SELECT id FROM jobs WHERE same = ? AND outcome = '' AND seen > ?"
        if row := state.execute(running, (same, now - SILENT)).fetchone():
            return str(row[0])
        query = "INSERT INTO jobs (id, kind, user, started, seen, back, same) VALUES (?, ?, ?, ?, ?, ?, ?)"
        state.execute(query, (id_, kind, user, now, now, back, same))
    threading.Thread(target=_run, args=(session, id_, work), name=f"job {id_}", daemon=True).start()
    return id_


def job(session: Session, id_: str) -> Job:
    """The job ``id_``, for its user and for librarians; raise ``UnknownName`` for others."""
    known = next((one for one in jobs(session) if one.id == id_), None)
    if known is None or not (known.user == session.caller.user or session.may(Right.LIBRARY)):
        raise UnknownName("job.unknown")
    return known


def jobs(session: Session) -> list[Job]:
    """The stored jobs, newest first."""
    with rows(session.data) as state:
        query = "SELECT id, kind, user, started, done, total, name, back, outcome, seen FROM jobs ORDER BY started DESC"
        found = state.execute(query).fetchall()
    gone = time.time() - SILENT
    outcomes = (
        from_text(text) if text else message("job.interrupted") if seen < gone else None for *_, text, seen in found
    )
    return [
        replace(Job(*row[:8]), name=from_text(row[6]), outcome=outcome)
        for row, outcome in zip(found, outcomes, strict=True)
    ]


def cancel(session: Session, id_: str) -> None:
    """Ask the job ``id_`` to end; raise as ``job`` does."""
    job(session, id_)
    with rows(session.data) as state:
        state.execute("UPDATE jobs SET cancelled = 1 WHERE id = ?", (id_,))


class _Progress:
    """A job's progress, stored every ``NOTED`` seconds; checks for a cancellation at the same time."""

    def __init__(self, data: Path, id_: str) -> None:
        self._data, self._id, self.cancel = data, id_, Cancel()
        self._values: tuple[float, float, str] = (0.0, 0.0, "")
        self._ended = threading.Event()

    def set(self, done: float, total: float, name: str) -> None:
        self._values = (done, total, name)

    def watch(self) -> None:
        while not self._ended.wait(NOTED):
            with suppress(LocalmedError, sqlite3.Error):  # while another process writes
                with rows(self._data) as state:
                    query = "UPDATE jobs SET done = ?, total = ?, name = ?, seen = ? WHERE id = ? RETURNING cancelled"
                    row = state.execute(query, (*self._values, time.time(), self._id)).fetchone()
                if row and row[0]:
                    self.cancel.cancel()

    def end(self, outcome: Message) -> None:
        self._ended.set()
        for left in reversed(range(ENDINGS)):
            try:
                with rows(self._data) as state:
                    state.execute(
                        "UPDATE jobs SET done = ?, total = ?, name = ?, outcome = ?, seen = ? WHERE id = ?",
                        (*self._values, to_text(outcome), time.time(), self._id),
                    )
                return
            except (LocalmedError, sqlite3.Error):
                if not left:
                    raise
                time.sleep(NOTED)


def _run(session: Session, id_: str, work: Work) -> None:
    progress = _Progress(session.data, id_)
    hooks = Hooks(progress=progress.set, cancel=progress.cancel)
    watcher = threading.Thread(target=progress.watch, name=f"watch {id_}", daemon=True)
    watcher.start()
    outcome = message("job.interrupted")
    try:
        with following(hooks):
            outcome = work(hooks)
    except LocalmedError as error:
        outcome = message("job.failed", reason=error.full_message)
    except Exception as error:
        LOG.error(f"job {id_} {place(error)}")
        outcome = message("job.unforeseen", kind=type(error).__name__)
    finally:
        if session.unaudited:
            outcome = message("job.unaudited", outcome=outcome, unaudited=tuple(session.unaudited))
        progress.end(outcome)
        watcher.join()
