"""Stops: a workflow, a model or a collection that a safety officer has taken out of use, at once and for everybody.

Kept in ``state.sqlite``, outside the generations and the settings: neither a rollback nor a restart lifts one. What is
stopped and why stands on every page until it is lifted; both are changes of the session that makes them, and audited.
A stopped collection answers nobody and is found by no search; librarians see its documents still. The encoder cannot be
stopped, since nothing is found without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import message
from localmed.domain.accounts import Right
from localmed.errors import Damaged, UnknownName, UsageError
from localmed.library.state import rows, selected

if TYPE_CHECKING:
    from localmed.session import Session

WORKFLOWS = ("ask", "plan", "ebm", "explain", "departments", "verify")
MODELS = ("chat", "reranker", "entailment")  # roles
WORKFLOW, MODEL, COLLECTION = KINDS = ("workflow", "model", "collection")
LONGEST_REASON = 500  # characters
SUMMED = 8  # schema of ``state.sqlite`` since which there is a checksum over all stops
OLDER = 2
_ALL = "SELECT kind, name, reason, user, time FROM stops"
_UNALTERED = "SELECT '', '', '', '', (SELECT sum FROM stops_sum) IS (SELECT sum FROM stops_now)"


@dataclass(frozen=True, slots=True)
class Stop:
    """What is stopped (``kind`` is one of ``KINDS``), why, by whom and since when."""

    kind: str
    name: str
    reason: str
    user: str
    time: str


def stops(data: Path) -> tuple[Stop, ...]:
    """What is stopped now, the newest first; of a data folder without a state file nothing.

    Raise ``Damaged`` where that is not as it was stored: one that is lost must not pass for one that was lifted.
    """
    *rows_found, unaltered = selected(data, f"{_ALL} UNION ALL {_UNALTERED}") or [("", "", "", "", _of_before(data))]
    if not unaltered[-1]:
        raise Damaged("library.database", path=str(data / "state.sqlite"), error=message("stop.altered"))
    listed = rows_found or (selected(data, _ALL) if unaltered[-1] == OLDER else [])
    return tuple(sorted((Stop(*row) for row in listed), key=lambda one: (one.time, one.kind, one.name), reverse=True))


def _of_before(data: Path) -> int:
    """``OLDER`` for a file of before there was a checksum of the stops, or none; 0 for one that should have it."""
    version = selected(data, "PRAGMA user_version")
    return OLDER if not version or version[0][0] < SUMMED else 0


def stopped(data: Path, kind: str) -> frozenset[str]:
    """The names of what is stopped of a kind."""
    return frozenset(one.name for one in stops(data) if one.kind == kind)


def stop(session: Session, kind: str, name: str, reason: str) -> None:
    """Stop it, from the next question on; raise ``UsageError`` without a reason or for what cannot be stopped."""
    session.require(Right.SAFETY)
    _known(session, kind, name)
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    with session.change("safety stop", f"{kind} {name}"), rows(session.data) as state:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        values = (kind, name, reason.strip(), session.caller.user, now)
        state.execute("INSERT OR REPLACE INTO stops (kind, name, reason, user, time) VALUES (?, ?, ?, ?, ?)", values)


def lift(session: Session, kind: str, name: str) -> None:
    """Let it be used again."""
    with session.change("safety lift", f"{kind} {name}"), rows(session.data) as state:
        if not state.execute("DELETE FROM stops WHERE kind = ? AND name = ?", (kind, name)).rowcount:
            raise UnknownName("stop.unknown")


def _known(session: Session, kind: str, name: str) -> None:
    from localmed.operations.lookups import collection_names

    names = {WORKFLOW: WORKFLOWS, MODEL: MODELS, COLLECTION: collection_names(session)}.get(kind, ())
    if name not in names:
        raise UnknownName("stop.unknown")
