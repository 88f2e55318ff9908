"""Jobs: long changes (an import, a rollback, whatever asks the canaries) that go on while their page is left, and can
be ended.

A job runs in a thread of the process that took it; how far it is and whether somebody wants it to end stand in
``site.sqlite``, where every process of the server sees them. One whose process ended shows as interrupted: what it did
is as after a kill of the command (an import resumes). Neither its name nor its outcome holds text of documents. The
same work that its user begins again while it runs (a second click, a page loaded again) is that job, not another.
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
Work = Callable[[Hooks], Message]  # does it, and says what came of it


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is now; ``outcome`` is None while it runs, ``kind`` a code of ``job``, ``back`` the page after it."""

    id: str
    kind: str
    user: str
    started: float
    done: float
    total: float
    name: str
    back: str
    outcome: Message | None = None


def start(session: Session, kind: str, work: Work, back: str = "/", *values: object) -> str:
    """Begin ``work`` on ``values`` in a thread, unless it runs already; return the job's id.

    What it may do is checked by what it calls, as the session.
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
    """The job ``id_``, for whoever began it and for librarians; raise ``UnknownName``: to others there is none."""
    known = next((one for one in jobs(session) if one.id == id_), None)
    if known is None or not (known.user == session.caller.user or session.may(Right.LIBRARY)):
        raise UnknownName("job.unknown")
    return known


def jobs(session: Session) -> list[Job]:
    """The jobs that are known, the newest first."""
    with rows(session.data) as state:
        query = "SELECT id, kind, user, started, done, total, name, back, outcome, seen FROM jobs ORDER BY started DESC"
        return [replace(Job(*row[:8]), outcome=_outcome(*row[8:])) for row in state.execute(query)]


def cancel(session: Session, id_: str) -> None:
    """Let the job ``id_`` end at its next look; raise as ``job`` does."""
    job(session, id_)
    with rows(session.data) as state:
        state.execute("UPDATE jobs SET cancelled = 1 WHERE id = ?", (id_,))


def _outcome(told: str, seen: float) -> Message | None:
    if told:
        return from_text(told)
    return message("job.interrupted") if time.time() - seen > SILENT else None


class _Progress:
    """What a job has come to, noted now and then; looks for a cancellation when it notes."""

    def __init__(self, data: Path, id_: str) -> None:
        self._data, self._id, self.cancel = data, id_, Cancel()
        self._values: tuple[float, float, str] = (0.0, 0.0, "")
        self._ended = threading.Event()

    def set(self, done: float, total: float, name: str) -> None:
        """See ``Hooks.progress``."""
        self._values = (done, total, name)

    def watch(self) -> None:
        """Note and look until the job has ended."""
        while not self._ended.wait(NOTED):
            with suppress(LocalmedError, sqlite3.Error):  # another writes just now: it is noted the next time
                self._note()

    def end(self, outcome: Message) -> None:
        """The job has ended."""
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

    def _note(self) -> None:
        with rows(self._data) as state:
            query = "UPDATE jobs SET done = ?, total = ?, name = ?, seen = ? WHERE id = ? RETURNING cancelled"
            row = state.execute(query, (*self._values, time.time(), self._id)).fetchone()
        if row and row[0]:
            self.cancel.cancel()


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
