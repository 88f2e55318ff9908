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

from localmed.domain.accounts import Right
from localmed.errors import UnknownName, UsageError
from localmed.library.state import rows

if TYPE_CHECKING:
    from localmed.session import Session

WORKFLOWS = ("ask", "plan", "ebm", "explain", "departments", "verify")
MODELS = ("chat", "reranker", "entailment")  # roles
WORKFLOW, MODEL, COLLECTION = KINDS = ("workflow", "model", "collection")
LONGEST_REASON = 500  # characters


@dataclass(frozen=True, slots=True)
class Stop:
    """What is stopped (``kind`` is one of ``KINDS``), why, by whom and since when."""

    kind: str
    name: str
    reason: str
    user: str
    time: str


def stops(data: Path) -> tuple[Stop, ...]:
    """What is stopped now, the newest first; of a data folder without a state file nothing."""
    if not (data / "state.sqlite").exists():
        return ()
    with rows(data) as state:
        query = "SELECT kind, name, reason, user, time FROM stops ORDER BY time DESC, kind, name"
        return tuple(Stop(*row) for row in state.execute(query))


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
