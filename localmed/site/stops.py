"""Stops: a workflow, a model or a collection that a safety officer has taken out of use, at once and for everybody.

Kept in the journal, outside the generations and the settings: neither a rollback nor a restart lifts one. What is
stopped and why stands on every page until it is lifted; both are changes of the session that makes them, and audited. A
stopped collection answers nobody, is found by no search and shown to no reader; librarians and safety officers see its
documents still. The encoder cannot be stopped, since nothing is found without one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, message
from localmed.domain.accounts import Right
from localmed.domain.errors import NotAllowed, UnknownName, UsageError
from localmed.library.in_force import in_force
from localmed.library.journal import Stop

if TYPE_CHECKING:
    from localmed.site.session import Session

WORKFLOWS = ("ask", "plan", "ebm", "explain", "departments", "verify")
MODELS = ("chat", "reranker", "entailment", "planner")  # roles
WORKFLOW, MODEL, COLLECTION = "workflow", "model", "collection"
NAMES = {WORKFLOW: WORKFLOWS, MODEL: MODELS}
STOP, LIFT = "safety stop", "safety lift"  # in the audit log
LONGEST_REASON = 500  # characters


def stops(data: Path) -> tuple[Stop, ...]:
    """What is stopped now, the newest first; raise ``Damaged`` where that cannot be told for certain."""
    return tuple(sorted(in_force(data).stops, key=lambda one: (one.time, one.kind, one.name), reverse=True))


def stopped(data: Path, kind: str) -> frozenset[str]:
    """The names of what is stopped of a kind."""
    return frozenset(one.name for one in stops(data) if one.kind == kind)


def seen_by(session: Session) -> list[Stop]:
    """What is stopped, but for collections that the caller's groups may not read."""
    restricted = session.restricted()
    return [one for one in stops(session.data) if one.kind != COLLECTION or one.name not in restricted]


def of_collections(session: Session, code: str = "answer.collection_stopped") -> dict[str, Message]:
    """By its name, that a collection is stopped, with its title and why, as ``seen_by`` the caller."""
    found = {one.name: one.reason for one in seen_by(session) if one.kind == COLLECTION}
    titles = session.collection_titles() if found else {}
    return {name: message(code, name=titles.get(name, name), reason=reason) for name, reason in found.items()}


def require_running(session: Session, collection: str) -> None:
    """Raise ``NotAllowed``, with the reason, for a reader and a collection that is stopped."""
    if collection in session.hidden() and (told := of_collections(session).get(collection)):
        raise NotAllowed(told.code, **dict(told.parameters))


def stop(session: Session, kind: str, name: str, reason: str) -> None:
    """Stop it, from the next question on; raise ``UsageError`` without a reason or for what cannot be stopped."""
    session.require(Right.SAFETY)
    if name not in (session.collection_titles() if kind == COLLECTION else NAMES.get(kind, ())):
        raise UnknownName("choice.unknown")
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    with session.changing(STOP, f"{kind} {name}") as (change, entry):
        change.note(entry, kind="stop", what=kind, name=name, stopped=True, reason=reason.strip())


def lift(session: Session, kind: str, name: str) -> None:
    """Let it be used again."""
    with session.changing(LIFT, f"{kind} {name}") as (change, entry):
        if (kind, name) not in {(one.kind, one.name) for one in change.after.stops}:
            raise UnknownName("choice.unknown")
        change.note(entry, kind="stop", what=kind, name=name, stopped=False, reason="")
