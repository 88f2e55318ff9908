"""Stops: a workflow, a model or a collection that a safety officer has taken out of use, at once and for everybody.

Kept in ``state.sqlite``, outside the generations and the settings: neither a rollback nor a restart lifts one, and an
older or emptied file is not what the audit log knows (``anchors.py``), which is damage. What is stopped and why stands
on every page until it is lifted; both are changes of the session that makes them, and audited. A stopped collection
answers nobody and is found by no search; librarians see its documents still. The encoder cannot be stopped, since
nothing is found without one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.domain.errors import Damaged, LocalmedError, NoLibrary, StopsAltered, UnknownName, UsageError
from localmed.library.anchors import PLANNED, Anchor, known_as
from localmed.library.state import FILE, Remembered, State, rows, selected, transaction

if TYPE_CHECKING:
    import sqlite3

    from localmed.site.session import Session

WORKFLOWS = ("ask", "plan", "ebm", "explain", "departments", "verify")
MODELS = ("chat", "reranker", "entailment", "planner")  # roles
WORKFLOW, MODEL, COLLECTION = KINDS = ("workflow", "model", "collection")
STOP, LIFT = "safety stop", "safety lift"  # in the audit log
LONGEST_REASON = 500  # characters
COUNTED = 12  # schema of ``state.sqlite`` since which changes of the stops are counted
OLDER = 2
_ALL = "SELECT kind, name, reason, user, time FROM stops"
_CHANGES = "SELECT changes FROM stops_sum"
_SUMS = "SELECT sum FROM stops_sum", "SELECT sum FROM stops_now"
_UNALTERED = f"SELECT '', '', '', ({_CHANGES}), ({_SUMS[0]}) IS ({_SUMS[1]})"
_INSERT = "INSERT OR REPLACE INTO stops (kind, name, reason, user, time) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Stop:
    """What is stopped (``kind`` is one of ``KINDS``), why, by whom and since when."""

    kind: str
    name: str
    reason: str
    user: str
    time: str


def stops(data: Path) -> tuple[Stop, ...]:
    """What is stopped now, the newest first; of a data folder without a library nothing.

    Raise ``Damaged`` where that is not as it was stored, or as the audit log knows it: one that is lost must not pass
    for one that was lifted.
    """
    return _remembered(data)


def _read(data: Path) -> tuple[Stop, ...]:
    stored: list[Stop] = []

    def read() -> tuple[int, str]:
        stored[:], changes = _stored(data)
        return changes, _sha256(stored)

    if not known_as(data, "stops", read):
        raise _altered(data)
    return tuple(sorted(stored, key=lambda one: (one.time, one.kind, one.name), reverse=True))


_remembered = Remembered(_read)  # an answer looks five times


def _stored(data: Path) -> tuple[list[Stop], int]:
    """What is stopped, and how often that was changed; raise ``Damaged`` where it is not as it was stored."""
    lines = selected(data, f"{_ALL} UNION ALL {_UNALTERED}") or [("", "", "", 0, _of_before(data))]
    *listed, (*_, changes, unaltered) = lines
    if not unaltered:
        raise _altered(data)
    return [Stop(*row) for row in (selected(data, _ALL) if unaltered == OLDER else listed)], changes or 0


def _altered(data: Path) -> Damaged:
    return StopsAltered("stop.altered", path=str(data / FILE))


def _of_before(data: Path) -> int:
    """``OLDER`` for a file of before changes were counted, or none; 0 for one that should have the count."""
    version = selected(data, "PRAGMA user_version")
    return OLDER if not version or version[0][0] < COUNTED else 0


def _sha256(listed: Iterable[Stop]) -> str:
    lines = sorted(json.dumps(astuple(one), ensure_ascii=False) for one in listed)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def stopped(data: Path, kind: str) -> frozenset[str]:
    """The names of what is stopped of a kind."""
    return frozenset(one.name for one in stops(data) if one.kind == kind)


def stop(session: Session, kind: str, name: str, reason: str) -> None:
    """Stop it, from the next question on; raise ``UsageError`` without a reason or for what cannot be stopped."""
    session.require(Right.SAFETY)
    _known(session, kind, name)
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    made = Stop(kind, name, reason.strip(), session.caller.user, datetime.now(UTC).isoformat(timespec="seconds"))
    with _changing(session, STOP, f"{kind} {name}") as state:
        state.execute(_INSERT, astuple(made))


def lift(session: Session, kind: str, name: str) -> None:
    """Let it be used again."""
    with _changing(session, LIFT, f"{kind} {name}") as state:
        if not state.execute("DELETE FROM stops WHERE kind = ? AND name = ?", (kind, name)).rowcount:
            raise UnknownName("stop.unknown")


def readable(data: Path) -> list[Stop]:
    """What the file says is stopped, though it may have been altered; nothing where it cannot be read."""
    with suppress(LocalmedError):
        return [Stop(*row) for row in selected(data, _ALL)]
    return []


def restore(data: Path, listed: Iterable[Stop], least: int, plan: Callable[[Anchor], object]) -> Anchor:
    """Write the stops anew, whatever stands there now; the file too where it is lost.

    They count as changed more often than ``least``. ``plan`` is called with the anchor before it is written.
    """
    with State(data, anew=True) as opened:
        state = opened.connection
        with transaction(state):
            state.execute("INSERT OR REPLACE INTO stops_sum SELECT 1, sum, ? FROM stops_now", (least,))
            state.execute("DELETE FROM stops")
            state.executemany(_INSERT, map(astuple, listed))
            state.execute("UPDATE stops_sum SET changes = changes + 1")
            plan(anchor := _anchor(state))
    return anchor


@contextmanager
def _changing(session: Session, action: str, subject: str) -> Iterator[sqlite3.Connection]:
    """A change of the stops as one transaction, which the audit log knows before it takes effect, and after."""
    with session.change(action, subject) as change, rows(session.data) as state:
        with transaction(state):
            yield state
            anchor = _anchor(state)
            session.note_before(action, subject, f"{PLANNED}{anchor}")
        change.outcome = f"done{anchor}"


def _anchor(state: sqlite3.Connection) -> Anchor:
    """How often the stops were changed, and what they are now, for the audit log."""
    listed = [Stop(*row) for row in state.execute(_ALL)]
    return Anchor("stops", state.execute(_CHANGES).fetchone()[0], _sha256(listed))


def _known(session: Session, kind: str, name: str) -> None:
    if name not in ({WORKFLOW: WORKFLOWS, MODEL: MODELS}.get(kind) or _collections(session, kind)):
        raise UnknownName("stop.unknown")


def _collections(session: Session, kind: str) -> set[str]:
    with suppress(NoLibrary), session.workspace() as workspace:
        return {one.name for one in workspace.library.catalogue.collections() if kind == COLLECTION}
    return set()
