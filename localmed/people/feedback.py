"""Feedback: readers' reports on answers. They outlive the history, for ``web.report_days``; 0 disables reports.

A report contains the question, the answer and the comment, sealed; the form says so. A second report by the same reader
on an answer replaces the first.
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

LONGEST = 4_000  # characters of a comment


class Opinion(StrEnum):
    """A reader's opinion of an answer. ``BAD`` is from a form of an older version."""

    GOOD = "good"
    WRONG = "wrong"
    HARM = "harm"  # could harm a patient
    USELESS = "useless"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Report:
    """A report by ``user``; ``seen_by`` is the first safety officer who saw it, "" for a new one.

    ``asked_text`` is "" for an order or a question with a record, which no list shows.
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
    """Report one's own answer to the safety officers; raise ``UsageError`` if reports are disabled."""
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
    """Return all reports, new ones first, among these possible harm first; for safety officers, else ``NotAllowed``."""
    session.require(Right.SAFETY)
    return sorted(_reports(session), key=lambda one: (bool(one.seen_by), not one.seen_by and one.opinion != "harm"))


def new_reports(session: Session) -> dict[str, int]:
    """Count unseen reports by opinion; for safety officers, else ``NotAllowed``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        _forget_old(state, session.settings.web.report_days)
        return dict(state.execute("SELECT verdict, COUNT(*) FROM feedback WHERE seen_by = '' GROUP BY verdict"))


def marked_bad(session: Session) -> list[Report]:
    """Return the reports of unhelpful answers; for librarians, else ``NotAllowed``."""
    session.require(Right.LIBRARY)
    return [one for one in _reports(session) if one.opinion is not Opinion.GOOD]


def _reports(session: Session) -> list[Report]:
    with rows(session.data) as state:
        _forget_old(state, session.settings.web.report_days)
        query = "SELECT answer, user, time, verdict, seen_by, seen, sealed FROM feedback ORDER BY time DESC"
        found = state.execute(query).fetchall()
    made = []
    for answer, user, moment, opinion, seen_by, seen, sealed in found:
        values = json.loads(unseal(session.data, sealed, "feedback", answer, user))
        asked_text = "" if of_patient(answer_of(values["answer"], authentic=True)) else values["asked"]
        made.append(Report(answer, user, moment, Opinion(opinion), values["comment"], asked_text, seen_by, seen))
    return made


def see(session: Session, answer_id: str, user: str) -> None:
    """Record that the session's user has seen a report; raise ``UnknownName`` if it does not exist or was seen."""
    with session.change("safety seen", answer_id), rows(session.data) as state:
        query = "UPDATE feedback SET seen_by = ?, seen = ? WHERE answer = ? AND user = ? AND seen_by = ''"
        if not state.execute(query, (session.caller.user, time.time(), answer_id, user)).rowcount:
            raise UnknownName("choice.unknown")


def delete(session: Session, answer_id: str, user: str) -> None:
    """Delete a report, which the audit log records; raise ``UnknownName`` if it does not exist."""
    with session.change("safety report", answer_id) as change, rows(session.data) as state:
        query = "DELETE FROM feedback WHERE answer = ? AND user = ?"
        if not state.execute(query, (answer_id, user)).rowcount:
            raise UnknownName("choice.unknown")
        change.outcome = "deleted"


def _forget_old(state: sqlite3.Connection, days: int) -> None:
    state.execute("DELETE FROM feedback WHERE time < ?", (time.time() - DAY * days,))
