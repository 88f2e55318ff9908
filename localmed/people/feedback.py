"""Feedback: what a reader says of an answer. Reports outlive the history: ``web.report_days``; with 0 none is taken.

A report holds the question, the answer and what was written, sealed; whoever reports is told so. One a reader and
answer: a second one takes the place of the first.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.domain.answers import answer_json, answer_of
from localmed.domain.errors import UnknownName, UsageError
from localmed.library.state import rows
from localmed.people.history import DAY, Kept, of_patient
from localmed.people.sealing import seal, unseal

if TYPE_CHECKING:
    import sqlite3

    from localmed.site.session import Session

LONGEST = 4_000  # characters of what is written


class Opinion(StrEnum):
    """What somebody thinks of an answer. ``BAD`` is what the form had before it asked what is wrong."""

    GOOD = "good"
    WRONG = "wrong"
    HARM = "harm"  # could harm a patient
    USELESS = "useless"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Report:
    """What ``user`` said of an answer; ``seen_by`` is the safety officer who has seen it first, "" of a new one.

    ``asked_text`` is "" for an order and a question with a record: the answer has it, no list.
    """

    answer_id: str
    user: str
    time: float
    opinion: Opinion
    comment: str
    asked_text: str
    seen_by: str
    seen: float


def report(session: Session, kept: Kept, opinion: Opinion, comment: str) -> None:
    """Report an answer of one's own, for safety officers; raise ``UsageError`` where the site takes no reports."""
    if not session.settings.web.report_days:
        raise UsageError("feedback.none_taken")
    values = {"comment": comment[:LONGEST], "asked": kept.asked_text, "answer": answer_json(kept.answer)}
    user = session.caller.user
    sealed = seal(session.data, json.dumps(values, ensure_ascii=False).encode(), "feedback", kept.id, user)
    with rows(session.data) as state:
        _forget_old(state, session.settings.web.report_days)
        state.execute(
            "INSERT OR REPLACE INTO feedback (answer, user, time, verdict, sealed) VALUES (?, ?, ?, ?, ?)",
            (kept.id, user, time.time(), opinion, sealed),
        )
    session.note("feedback", kept.id, opinion)


def reports(session: Session) -> list[Report]:
    """All reports: new ones first, of these what could harm; raise ``UsageError`` for who is no safety officer."""
    session.require(Right.SAFETY)
    return sorted(_reports(session), key=lambda one: (bool(one.seen_by), not one.seen_by and one.opinion != "harm"))


def new_reports(session: Session) -> dict[str, int]:
    """How many reports nobody has seen, by what they say; raise ``UsageError`` for who is no safety officer."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        _forget_old(state, session.settings.web.report_days)
        return dict(state.execute("SELECT verdict, COUNT(*) FROM feedback WHERE seen_by = '' GROUP BY verdict"))


def marked_bad(session: Session) -> list[Report]:
    """The reports of answers that did not help, for librarians; raise ``UsageError`` for who is none."""
    session.require(Right.LIBRARY)
    return [one for one in _reports(session) if one.opinion is not Opinion.GOOD]


def _reports(session: Session) -> list[Report]:
    with rows(session.data) as state:
        _forget_old(state, session.settings.web.report_days)
        query = "SELECT answer, user, time, verdict, seen_by, seen, sealed FROM feedback ORDER BY time DESC"
        return [_report(session, *row) for row in state.execute(query).fetchall()]


def see(session: Session, answer_id: str, user: str) -> None:
    """Note that the session's user has seen a report; raise ``UnknownName`` for one that is not there, or not new."""
    with session.change("safety seen", answer_id), rows(session.data) as state:
        query = "UPDATE feedback SET seen_by = ?, seen = ? WHERE answer = ? AND user = ? AND seen_by = ''"
        if not state.execute(query, (session.caller.user, time.time(), answer_id, user)).rowcount:
            raise UnknownName("choice.unknown")


def delete(session: Session, answer_id: str, user: str) -> None:
    """Delete a report; raise ``UnknownName`` for one that is not there. The audit log says that there was one."""
    with session.change("safety report", answer_id) as change, rows(session.data) as state:
        query = "DELETE FROM feedback WHERE answer = ? AND user = ?"
        if not state.execute(query, (answer_id, user)).rowcount:
            raise UnknownName("choice.unknown")
        change.outcome = "deleted"


def _forget_old(state: sqlite3.Connection, days: int) -> None:
    state.execute("DELETE FROM feedback WHERE time < ?", (time.time() - DAY * days,))


def _report(
    session: Session, answer: str, user: str, moment: float, opinion: str, seen_by: str, seen: float, sealed: bytes
) -> Report:
    values = json.loads(unseal(session.data, sealed, "feedback", answer, user))
    asked_text = "" if of_patient(answer_of(values["answer"], authentic=True)) else values["asked"]
    return Report(answer, user, moment, Opinion(opinion), values["comment"], asked_text, seen_by, seen)
