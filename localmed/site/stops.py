"""Stops: workflows, models and collections that a safety officer has taken out of use, at once and for everybody.

They are in the journal, so neither a rollback nor a restart lifts them. Every page shows them until they are lifted.
Setting and lifting is audited. A stopped collection is not searched and not shown to readers; librarians and safety
officers still see its documents. The encoder cannot be stopped, because every search needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, message
from localmed.domain.accounts import Right
from localmed.domain.errors import NotAllowed, UnknownName, UsageError
from localmed.library.in_force import in_force
from localmed.library.journal import Stop
from localmed.text.language import clean

if TYPE_CHECKING:
    from localmed.site.session import Session

WORKFLOWS = ("ask", "plan", "ebm", "explain", "departments", "verify")
MODELS = ("chat", "reranker", "entailment", "planner")  # roles
WORKFLOW, MODEL, COLLECTION = "workflow", "model", "collection"
NAMES = {WORKFLOW: WORKFLOWS, MODEL: MODELS}
STOP, LIFT = "safety stop", "safety lift"  # in the audit log
LONGEST_REASON = 500  # characters


def stops(data: Path) -> tuple[Stop, ...]:
    """The current stops, newest first; raise ``Damaged`` where the journal is unreadable."""
    return tuple(sorted(in_force(data).stops, key=lambda one: (one.time, one.kind, one.name), reverse=True))


def stopped(data: Path, kind: str) -> frozenset[str]:
    """The names of everything of ``kind`` that is stopped."""
    return frozenset(one.name for one in stops(data) if one.kind == kind)


def visible_stops(session: Session) -> list[Stop]:
    """The current stops without collections that the caller's groups may not read."""
    restricted = session.restricted()
    return [one for one in stops(session.data) if one.kind != COLLECTION or one.name not in restricted]


def collection_messages(session: Session, code: str = "answer.collection_stopped") -> dict[str, Message]:
    """By name, the message that a collection is stopped and why, for collections visible to the caller."""
    found = {one.name: one.reason for one in visible_stops(session) if one.kind == COLLECTION}
    titles = session.collection_titles() if found else {}
    return {name: message(code, name=titles.get(name, name), reason=reason) for name, reason in found.items()}


def require_running(session: Session, collection: str) -> None:
    """Raise ``NotAllowed`` with the reason for a reader and a stopped collection."""
    if collection in session.hidden() and (told := collection_messages(session).get(collection)):
        raise NotAllowed(told.code, **dict(told.parameters))


def require_reason(typed: str) -> str:
    """The reason of a stop or another change, in one line; raise ``UsageError`` for none or a longer one than kept."""
    reason = " ".join(clean(typed).split())
    if not reason or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    return reason


def stop(session: Session, kind: str, name: str, reason: str) -> None:
    """Stop it from the next question on; raise ``UsageError`` without a reason, ``UnknownName`` for an unknown one."""
    session.require(Right.SAFETY)
    if name not in (session.collection_titles() if kind == COLLECTION else NAMES.get(kind, ())):
        raise UnknownName("choice.unknown")
    why = require_reason(reason)
    with session.changing(STOP, f"{kind} {name}") as (change, entry):
        change.note(entry, kind="stop", what=kind, name=name, stopped=True, reason=why)


def lift(session: Session, kind: str, name: str) -> None:
    """Lift a stop; raise ``UnknownName`` if there is none."""
    with session.changing(LIFT, f"{kind} {name}") as (change, entry):
        if (kind, name) not in {(one.kind, one.name) for one in change.after.stops}:
            raise UnknownName("choice.unknown")
        change.note(entry, kind="stop", what=kind, name=name, stopped=False, reason="")
