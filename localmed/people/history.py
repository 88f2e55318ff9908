"""History: the answers that somebody was given, sealed, for themselves alone, for ``web.history_days``.

With 0 days an answer is kept until its login ends: a page must be able to show its sources. An answer about one patient
(an order, or a question with a record) is kept for ``PATIENT_HOURS`` only, to reopen and release it, and no list shows
its text. An answer is kept with what
was asked and with the questions before it, for a follow-up. What documents it cites stands beside it in the clear
(``cited``), so that a withdrawal finds the answers that rest on it without reading any.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from localmed.domain import Answer, Evidence, Message, Origin, Status, message
from localmed.domain.accounts import Right
from localmed.domain.answers import answer_json, answer_of
from localmed.domain.errors import Damaged, NoLibrary, UnknownName, UsageError
from localmed.domain.findings import ALL
from localmed.domain.parts import RecordPart
from localmed.library.state import rows, selected
from localmed.people.sealing import seal, unseal
from localmed.safety.red_flags import red_flags
from localmed.site import stops
from localmed.text.identifiers import hiding, identifiers

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from localmed.site.session import Session

# --- masking ----------------------------------------------------------------------------------------------------------

# Names and numbers of patients masked before anything is kept of what was asked: each character becomes a block.
#
# As many blocks as there were characters, so that what points into the text still points there. Masked is what came
# from whoever asked: the question, the questions before it, and of the answer everything but what documents say.

OWN = ("question", "parts", "notes", "verification")  # fields of an answer that may repeat what was asked


@dataclass(frozen=True, slots=True)
class AskedWith:
    """What a question was asked with, and what is asked from its answer's page is asked with too.

    ``earlier`` are the questions before it; ``left_out`` names every reading that was left out on the way to it.
    """

    earlier: tuple[str, ...] = ()
    collection: str = ""
    preset: str = ""
    check: bool = False
    left_out: tuple[str, ...] = ()


ALONE = AskedWith()


def masked(asked_text: str, asked_with: AskedWith, answer: Answer) -> tuple[str, AskedWith, Answer]:
    """What was asked, what it was asked with, and the answer, as they may be kept."""
    typed = (asked_text, *asked_with.earlier, answer.question)
    words = {word for text in typed for word in identifiers(text)}
    if not words:
        return asked_text, asked_with, answer
    hide = hiding(words)
    earlier, left_out = (tuple(map(hide, texts)) for texts in (asked_with.earlier, asked_with.left_out))
    return hide(asked_text), replace(asked_with, earlier=earlier, left_out=left_out), _answer(answer, hide)


def _answer(answer: Answer, hide: Callable[[str], str]) -> Answer:
    values = answer_json(answer)
    values |= {name: _everywhere(values[name], hide) for name in OWN}
    if found := values["receipts"]:
        found |= {name: _everywhere(found[name], hide) for name in ("readings", "absent")}
    values["statements"] = [
        one if one["origin"] == Origin.EXTRACTIVE else one | {"text": hide(one["text"])} for one in values["statements"]
    ]
    try:
        return answer_of(values, authentic=True)
    except ValueError:  # somebody is called as a code of ours is
        found = answer.receipts and replace(answer.receipts, readings=(), absent=())
        return replace(answer, question=hide(answer.question), parts=(), notes=(), receipts=found)


def _everywhere(value: Any, hide: Callable[[str], str]) -> Any:
    """Every text in ``value`` but those that name a message or a type."""
    if isinstance(value, dict):
        return {name: item if name in ("code", "type") else _everywhere(item, hide) for name, item in value.items()}
    if isinstance(value, list):
        return [_everywhere(item, hide) for item in value]
    return hide(value) if isinstance(value, str) else value


# --- history ----------------------------------------------------------------------------------------------------------

HOUR, DAY = 3_600.0, 86_400.0  # seconds
PATIENT_HOURS = 12  # that an order's or a record's answer can be reopened: until the end of a shift
PATIENT = ("explain", "record")  # what ``answers.workflow`` says of them
LISTED = 200  # answers; more are there until their days are over
LOOKED_AT = 500  # newest answers, among which those are that found nothing; half a second to open them
EARLIER = 5  # questions kept for a follow-up
MARK = 12  # characters of a ``standing_mark``


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept answer: what was asked, with what, and when (seconds since 1970)."""

    id: str
    asked_text: str
    asked_with: AskedWith
    time: float
    answer: Answer

    @property
    def of_patient(self) -> bool:
        """Whether it holds the order or the record of a patient."""
        return of_patient(self.answer)

    @property
    def is_over(self) -> bool:
        """Whether it is an answer about a patient that may not be reopened any more."""
        return self.of_patient and self.time < time.time() - HOUR * PATIENT_HOURS


def of_patient(answer: Answer) -> bool:
    """Whether ``answer`` holds the order or the record of a patient."""
    return answer.workflow == "explain" or _has_record(answer)


def _has_record(answer: Answer) -> bool:
    return any(isinstance(part, RecordPart) for part in answer.parts)


def carried(session: Session, chosen: AskedWith, after: str) -> AskedWith:
    """``chosen`` of a question that comes ``after`` an answer: where it says nothing, what that was asked with."""
    before = kept(session, after)
    was = before.asked_with
    return AskedWith(
        (*was.earlier, before.asked_text),
        chosen.collection or was.collection,
        chosen.preset or was.preset,
        chosen.check or was.check,
        (*was.left_out, *chosen.left_out),
    )


def new_id() -> str:
    """The id of an answer that is yet to be made: no sign in it, since it is typed after a command."""
    return secrets.token_hex(12)


def keep(
    session: Session, login: str, asked_text: str, answer: Answer, asked_with: AskedWith = ALONE, id_: str = ""
) -> Kept:
    """Keep ``answer`` for the session's user, names and numbers of patients masked; return what is kept.

    ``login`` is where it was asked ("": by a program).
    """
    user, id_, now = session.caller.user, id_ or new_id(), time.time()
    left_out = dict.fromkeys((*asked_with.left_out, *(answer.receipts.left_out if answer.receipts else ())))
    left_out.pop(ALL, None)  # those that there were, by their names
    older = [question for question in asked_with.earlier[:-EARLIER] if red_flags(question)]  # the warning stays
    earlier = (*older[-EARLIER:], *asked_with.earlier[-EARLIER:])
    asked_with = replace(asked_with, earlier=earlier, left_out=tuple(left_out))
    asked_text, asked_with, answer = masked(asked_text, asked_with, answer)
    made = Kept(id_, asked_text, asked_with, now, answer)
    documents = {evidence.passage.document_id for evidence in answer.evidence}
    with rows(session.data) as state:
        state.execute("BEGIN IMMEDIATE")
        state.execute(
            "INSERT INTO answers (id, user, login, time, workflow, sealed) VALUES (?, ?, ?, ?, ?, ?)",
            (id_, user, login, now, "record" if _has_record(answer) else answer.workflow, _sealed(session, made)),
        )
        state.executemany("INSERT INTO cited VALUES (?, ?)", [(document, id_) for document in sorted(documents)])
        _forget_old(state, session.settings.web.history_days)
        state.execute("COMMIT")
    return made


def keep_anew(session: Session, kept: Kept) -> None:
    """Keep ``kept`` in place of the answer of the session's user that has its id."""
    with rows(session.data) as state:
        query = "UPDATE answers SET sealed = ? WHERE id = ? AND user = ?"
        state.execute(query, (_sealed(session, kept), kept.id, session.caller.user))


def _sealed(session: Session, kept: Kept) -> bytes:
    values = {"asked": kept.asked_text, **asdict(kept.asked_with), "answer": answer_json(kept.answer)}
    plain = json.dumps(values, ensure_ascii=False).encode()
    return seal(session.data, plain, "answer", kept.id, session.caller.user)


def kept(session: Session, id_: str, also_reported: bool = False) -> Kept:
    """The answer ``id_`` of the session's user; or, for safety officers, one that was ``also_reported`` to them.

    Raise ``UnknownName`` where there is none (any more).
    """
    with rows(session.data) as state:
        query = "SELECT id, time, sealed FROM answers WHERE id = ? AND user = ?"
        row = state.execute(query, (id_, session.caller.user)).fetchone()
    if row is None and also_reported and session.may(Right.SAFETY):
        return reported(session, id_)[1]
    if row is None:
        raise UnknownName("history.gone")
    found = _opened(session.data, session.caller.user, *row)
    if found.is_over:
        raise UnknownName("history.gone")
    return found


def listing(session: Session, most: int = LISTED) -> tuple[list[Kept], int]:
    """The newest ``most`` answers of the session's user, and how many of them cannot be opened."""
    oldest = time.time() - DAY * max(session.settings.web.history_days, 1)
    with rows(session.data) as state:
        query = "SELECT id, time, sealed FROM answers WHERE user = ? AND time > ? ORDER BY time DESC LIMIT ?"
        found_rows = state.execute(query, (session.caller.user, oldest, most)).fetchall()
    answers = []
    for row in found_rows:
        with suppress(Damaged):
            answers.append(_opened(session.data, session.caller.user, *row))
    return [one for one in answers if not one.is_over], len(found_rows) - len(answers)


def unopened(data: Path) -> int:
    """How many answers and reports, of everybody, cannot be opened: their key is another, or a byte of them is."""
    tables = (("answer", "SELECT sealed, id, user FROM answers"), ("review", "SELECT sealed, id FROM reviews"),
              ("feedback", "SELECT sealed, answer, user FROM feedback"))  # fmt: skip
    count = 0
    for kind, sealed, *identity in ((kind, *row) for kind, query in tables for row in selected(data, query)):
        try:
            unseal(data, sealed, kind, *identity)
        except Damaged:
            count += 1
    return count


def of_anybody(session: Session, id_: str) -> tuple[str, Kept]:
    """Whoever asked, and the answer ``id_`` that was kept for them, for safety officers; raise ``UnknownName``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        row = state.execute("SELECT user, id, time, sealed FROM answers WHERE id = ?", (id_,)).fetchone()
    return (row[0], _opened(session.data, *row)) if row else reported(session, id_)


def reported(session: Session, id_: str) -> tuple[str, Kept]:
    """Who reported the answer ``id_``, and the answer as it was sealed with the report; raise ``UnknownName``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        query = "SELECT user, time, sealed FROM feedback WHERE answer = ? ORDER BY time"
        row = state.execute(query, (id_,)).fetchone()
    if row is None:
        raise UnknownName("history.gone")
    user, moment, sealed = row
    return user, _opened(session.data, user, id_, moment, sealed, "feedback")


def unanswered(session: Session) -> list[Kept]:
    """The newest kept questions that found nothing, whoever asked, for librarians: what the library lacks.

    None where history is kept for the length of a login only: nobody else is to see it then.
    """
    session.require(Right.LIBRARY)
    if not session.settings.web.history_days:
        return []
    with rows(session.data) as state:
        query = "SELECT user, id, time, sealed FROM answers ORDER BY time DESC LIMIT ?"
        newest = state.execute(query, (LOOKED_AT,)).fetchall()
    answers = []
    for user, *row in newest:
        with suppress(Damaged, UnknownName):
            answers.append(_opened(session.data, user, *row))
    return [one for one in answers if one.answer.found_nothing and not one.of_patient]


def _opened(data: Path, user: str, id_: str, moment: float, sealed: bytes, kind: str = "answer") -> Kept:
    try:
        values = json.loads(unseal(data, sealed, kind, id_, user))
        asked_text, answer = values.pop("asked"), answer_of(values.pop("answer"), authentic=True)
        chosen: dict[str, Any] = {one.name: values[one.name] for one in fields(AskedWith) if one.name in values}
        lists = {name: tuple(it) for name, it in chosen.items() if isinstance(it, list)}
        return Kept(id_, asked_text, AskedWith(**(chosen | lists)), moment, answer)
    except (ValueError, LookupError, TypeError):  # of another version
        raise UnknownName("history.gone") from None


def forget(session: Session, id_: str = "") -> None:
    """Delete the answer ``id_`` of the session's user ("": all of theirs)."""
    with rows(session.data) as state:
        query = "DELETE FROM answers WHERE user = ? AND (? = '' OR id = ?)"
        state.execute(query, (session.caller.user, id_, id_))
        _forget_citations(state)


def erase(session: Session, user: str) -> None:
    """Delete all that ``user`` asked and reported; raise ``UsageError`` for who is no safety officer."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        state.execute("DELETE FROM answers WHERE user = ?", (user,))
        state.execute("DELETE FROM feedback WHERE user = ?", (user,))
        _forget_citations(state)


def end_login(state: sqlite3.Connection, days: int) -> None:
    """Delete what is too old; where nothing is kept longer, what was kept for the length of logins that are over."""
    _forget_old(state, days)
    if days == 0:
        state.execute("DELETE FROM answers WHERE login <> '' AND login NOT IN (SELECT token FROM logins)")
        _forget_citations(state)


def _forget_old(state: sqlite3.Connection, days: int) -> None:
    now = time.time()
    state.execute("DELETE FROM answers WHERE time < ?", (now - DAY * max(days, 1),))
    state.execute("DELETE FROM answers WHERE workflow IN (?, ?) AND time < ?", (*PATIENT, now - HOUR * PATIENT_HOURS))
    _forget_citations(state)


def _forget_citations(state: sqlite3.Connection) -> None:
    state.execute("DELETE FROM cited WHERE answer NOT IN (SELECT id FROM answers)")


def count_citing(data: Path, documents: Sequence[str]) -> int:
    """How many kept answers, of everybody, cite one of ``documents``."""
    marks = ", ".join("?" * len(documents))
    query = f"SELECT COUNT(DISTINCT answer) FROM cited WHERE document IN ({marks})"  # noqa: S608
    with rows(data) as state:
        return int(state.execute(query, tuple(documents)).fetchone()[0])


def withdrawals(session: Session, sources: Iterable[Evidence]) -> dict[str, Message]:
    """By its id each document of ``sources`` that is withdrawn or in a stopped collection now, and why.

    Nothing of what the session's groups may not read.
    """
    restricted, stopped = session.restricted(), stops.collection_messages(session)
    cited = {it.passage.document_id: it for it in sources if it.passage.collection not in restricted}
    with suppress(NoLibrary), session.stopped_too() as workspace:
        named = (
            (name, workspace.withdrawal(name, it.document_title) or stopped.get(it.passage.collection))
            for name, it in cited.items()
        )
        return {document: line for document, line in named if line}
    return {}


def standing(session: Session, answer: Answer) -> Answer:
    """``answer``, which ``holds``, with the status that each document it cites has now; a note of what was superseded
    since.
    """
    now = session.standing(answer.evidence)
    since = {
        piece.passage.document_id: message("answer.superseded_since", title=piece.document_title)
        for before, piece in zip(answer.evidence, now, strict=True)
        if piece.status is Status.SUPERSEDED and before.status is not Status.SUPERSEDED
    }
    return replace(answer, evidence=now, notes=(*since.values(), *answer.notes))


def standing_mark(answer: Answer) -> str:
    """What tells whether the ``standing`` of ``answer`` has changed since."""
    known = sorted({(it.passage.document_id, it.status.value, it.overdue) for it in answer.evidence})
    return hashlib.sha256(repr(known).encode()).hexdigest()[:MARK]


def with_withdrawals(session: Session, answer: Answer) -> Answer:
    """``answer`` with a note of each document that it cites and that was withdrawn since."""
    since = withdrawals(session, _in_force_then(answer))
    return replace(answer, notes=(*dict.fromkeys(since.values()), *answer.notes)) if since else answer


def _in_force_then(answer: Answer) -> list[Evidence]:
    return [evidence for evidence in answer.evidence if evidence.status is not Status.WITHDRAWN]


def require_held(session: Session, answer: Answer) -> None:
    """Raise ``UsageError``, naming what was withdrawn, unless ``answer`` still ``holds``."""
    if not holds(session, answer):
        since = withdrawals(session, _in_force_then(answer))
        if since:
            raise UsageError("web.answer.gone_named", documents=tuple(dict.fromkeys(since.values())))
        raise UsageError("web.answer.gone")


def holds(session: Session, answer: Answer) -> bool:
    """Whether nothing that ``answer`` cites was withdrawn, or hidden from the session's user, since it was made."""
    sources = _in_force_then(answer)
    with suppress(NoLibrary), session.workspace() as workspace:
        hidden = session.hidden() | stops.stopped(session.data, stops.COLLECTION)
        withdrawn = workspace.withdrawn()
        return not any(
            source.passage.document_id in withdrawn or source.passage.collection in hidden for source in sources
        )
    return not sources
