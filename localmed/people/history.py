"""History: sealed answers, each visible only to the user who asked, for ``web.history_days``.

With 0 days an answer is kept until its login ends, because a page must show its sources. An answer about one patient
(an order, or a question with a record) is kept for ``PATIENT_HOURS``, to reopen and release it, and no list shows its
text. The question's options and earlier questions are kept with an answer, for a follow-up. The cited documents are
stored unsealed (``cited``), so that a withdrawal finds the answers that cite it.
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
from localmed.library.in_force import in_force
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

# Patients' names and numbers are masked before a question is stored. Each character becomes a block, so that offsets
# into the text stay valid. Masked are the question, earlier questions, and all of the answer but documents' text.

OWN = ("question", "parts", "notes", "verification")  # fields of an answer that may repeat the question


@dataclass(frozen=True, slots=True)
class AskedWith:
    """The options of a question, which a follow-up inherits.

    ``earlier`` are the questions before it; ``left_out`` names every reading that was left out so far; ``questions``
    are those about an order, which an answer that is only the safety message lacks.
    """

    earlier: tuple[str, ...] = ()
    collection: str = ""
    preset: str = ""
    check: bool = False
    left_out: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


ALONE = AskedWith()


def mask_identifiers(asked_text: str, asked_with: AskedWith, answer: Answer) -> tuple[str, AskedWith, Answer]:
    """Return question, options and answer with identifiers masked for storage."""
    lists = (asked_with.earlier, asked_with.left_out, asked_with.questions)
    typed = (asked_text, *asked_with.earlier, *asked_with.questions, answer.question)
    words = {word for text in typed for word in identifiers(text)}
    if not words:
        return asked_text, asked_with, answer
    hide = hiding(words)
    earlier, left_out, questions = (tuple(map(hide, texts)) for texts in lists)
    asked_with = replace(asked_with, earlier=earlier, left_out=left_out, questions=questions)
    return hide(asked_text), asked_with, _mask_answer(answer, hide)


def _mask_answer(answer: Answer, hide: Callable[[str], str]) -> Answer:
    values = answer_json(answer)
    values |= {name: _map_texts(values[name], hide) for name in OWN}
    if found := values["receipts"]:
        found |= {name: _map_texts(found[name], hide) for name in ("readings", "absent")}
    values["statements"] = [
        one if one["origin"] == Origin.EXTRACTIVE else one | {"text": hide(one["text"])} for one in values["statements"]
    ]
    try:
        return answer_of(values, authentic=True)
    except ValueError:  # a name equals one of our codes
        found = answer.receipts and replace(answer.receipts, readings=(), absent=())
        return replace(answer, question=hide(answer.question), parts=(), notes=(), receipts=found)


def _map_texts(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: item if name in ("code", "type") else _map_texts(item, hide) for name, item in value.items()}
    if isinstance(value, list):
        return [_map_texts(item, hide) for item in value]
    return hide(value) if isinstance(value, str) else value


# --- history ----------------------------------------------------------------------------------------------------------

HOUR, DAY = 3_600.0, 86_400.0  # seconds
PATIENT_HOURS = 12  # for which a patient's answer can be reopened: until the end of a shift
PATIENT = ("explain", "record")  # their values of ``answers.workflow``
LISTED = 200  # answers
LOOKED_AT = 500  # newest answers to search for those that found nothing; half a second to open them
EARLIER = 5  # questions kept for a follow-up
REINSTATED = dict.fromkeys(  # what a note says once the document is back; the second is of an earlier version
    ("workflow.withdrawn_because", "workflow.withdrawn_lately"), "workflow.reinstated"
)
MARK = 12  # characters of a ``status_mark``


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept answer: the question, its options, and the time (seconds since 1970)."""

    id: str
    asked_text: str
    asked_with: AskedWith
    time: float
    answer: Answer

    @property
    def of_patient(self) -> bool:
        """Whether it contains a patient's order or record."""
        return of_patient(self.answer)

    @property
    def is_over(self) -> bool:
        """Whether it is about a patient and may no longer be reopened."""
        return self.of_patient and self.time < time.time() - HOUR * PATIENT_HOURS


def of_patient(answer: Answer) -> bool:
    """Whether ``answer`` contains a patient's order or record."""
    return answer.workflow == "explain" or _has_record(answer)


def _has_record(answer: Answer) -> bool:
    return any(isinstance(part, RecordPart) for part in answer.parts)


def inherit_choices(session: Session, chosen: AskedWith, after: str) -> AskedWith:
    """Return ``chosen`` for a follow-up to the answer ``after``; empty options are those of that answer."""
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
    """Return an id for a new answer; hexadecimal, because people type it after a command."""
    return secrets.token_hex(12)


def keep(
    session: Session, login: str, asked_text: str, answer: Answer, asked_with: AskedWith = ALONE, id_: str = ""
) -> Kept:
    """Store ``answer`` for the session's user, with identifiers masked; return what is stored.

    ``login`` is the login that asked ("": a program).
    """
    user, id_, now = session.caller.user, id_ or new_id(), time.time()
    left_out = dict.fromkeys((*asked_with.left_out, *(answer.receipts.left_out if answer.receipts else ())))
    left_out.pop(ALL, None)  # the readings are listed by name
    older = [question for question in asked_with.earlier[:-EARLIER] if red_flags(question)]  # the warning stays
    earlier = (*older[-EARLIER:], *asked_with.earlier[-EARLIER:])
    asked_with = replace(asked_with, earlier=earlier, left_out=tuple(left_out))
    asked_text, asked_with, answer = mask_identifiers(asked_text, asked_with, answer)
    made = Kept(id_, asked_text, asked_with, now, answer)
    documents = {evidence.passage.document_id for evidence in answer.evidence}
    with rows(session.data) as state:
        state.execute("BEGIN IMMEDIATE")
        state.execute(
            "INSERT INTO answers (id, user, login, time, workflow, sealed) VALUES (?, ?, ?, ?, ?, ?)",
            (id_, user, login, now, "record" if _has_record(answer) else answer.workflow, _seal_answer(session, made)),
        )
        state.executemany("INSERT INTO cited VALUES (?, ?)", [(document, id_) for document in sorted(documents)])
        _forget_old(state, session.settings.web.history_days)
        state.execute("COMMIT")
    return made


def replace_kept(session: Session, kept: Kept) -> None:
    """Replace the stored answer of the session's user with the id of ``kept``."""
    with rows(session.data) as state:
        query = "UPDATE answers SET sealed = ? WHERE id = ? AND user = ?"
        state.execute(query, (_seal_answer(session, kept), kept.id, session.caller.user))


def _seal_answer(session: Session, kept: Kept) -> bytes:
    values = {"asked": kept.asked_text, **asdict(kept.asked_with), "answer": answer_json(kept.answer)}
    plain = json.dumps(values, ensure_ascii=False).encode()
    return seal(session.data, plain, "answer", kept.id, session.caller.user)


def kept(session: Session, id_: str, also_reported: bool = False) -> Kept:
    """Return the answer ``id_`` of the session's user, or for safety officers one ``also_reported``.

    Raise ``UnknownName`` if there is none.
    """
    with rows(session.data) as state:
        query = "SELECT id, time, sealed FROM answers WHERE id = ? AND user = ?"
        row = state.execute(query, (id_, session.caller.user)).fetchone()
    if row is None and also_reported and session.may(Right.SAFETY):
        return reported(session, id_)[1]
    if row is None:
        raise UnknownName("history.gone")
    found = _unseal_answer(session.data, session.caller.user, *row)
    if found.is_over:
        raise UnknownName("history.gone")
    return found


def listing(session: Session, most: int = LISTED) -> tuple[list[Kept], int]:
    """Return the newest ``most`` answers of the session's user, and the number of those that cannot be opened."""
    oldest = time.time() - DAY * max(session.settings.web.history_days, 1)
    with rows(session.data) as state:
        query = "SELECT id, time, sealed FROM answers WHERE user = ? AND time > ? ORDER BY time DESC LIMIT ?"
        found_rows = state.execute(query, (session.caller.user, oldest, most)).fetchall()
    answers = []
    for row in found_rows:
        with suppress(Damaged):
            answers.append(_unseal_answer(session.data, session.caller.user, *row))
    return [one for one in answers if not one.is_over], len(found_rows) - len(answers)


def count_unopened(data: Path) -> int:
    """Count the sealed answers, reviews and reports of all users that cannot be opened (another key, or damage)."""
    tables = (("answer", "SELECT sealed, id, user FROM answers"), ("review", "SELECT sealed, id FROM reviews"),
              ("feedback", "SELECT sealed, answer, user FROM feedback"))  # fmt: skip
    count = 0
    for kind, sealed, *identity in ((kind, *row) for kind, query in tables for row in selected(data, query)):
        try:
            unseal(data, sealed, kind, *identity)
        except Damaged:
            count += 1
    return count


def find_answer(session: Session, id_: str) -> tuple[str, Kept]:
    """Return the user and the answer ``id_``, for safety officers; raise ``UnknownName``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        row = state.execute("SELECT user, id, time, sealed FROM answers WHERE id = ?", (id_,)).fetchone()
    return (row[0], _unseal_answer(session.data, *row)) if row else reported(session, id_)


def reported(session: Session, id_: str) -> tuple[str, Kept]:
    """Return the reporter of the answer ``id_`` and the answer sealed with the report; raise ``UnknownName``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        query = "SELECT user, time, sealed FROM feedback WHERE answer = ? ORDER BY time"
        row = state.execute(query, (id_,)).fetchone()
    if row is None:
        raise UnknownName("history.gone")
    user, moment, sealed = row
    return user, _unseal_answer(session.data, user, id_, moment, sealed, "feedback")


def list_unanswered(session: Session) -> list[Kept]:
    """Return the newest questions of all users that found nothing, for librarians.

    Empty if history is kept for the length of a login only: then nobody else may see it.
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
            answers.append(_unseal_answer(session.data, user, *row))
    return [one for one in answers if one.answer.found_nothing and not one.of_patient]


def _unseal_answer(data: Path, user: str, id_: str, moment: float, sealed: bytes, kind: str = "answer") -> Kept:
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
    """Delete all answers and reports of ``user``; for safety officers, else ``NotAllowed``."""
    session.require(Right.SAFETY)
    with rows(session.data) as state:
        state.execute("DELETE FROM answers WHERE user = ?", (user,))
        state.execute("DELETE FROM feedback WHERE user = ?", (user,))
        _forget_citations(state)


def end_login(state: sqlite3.Connection, days: int) -> None:
    """Delete old answers; with 0 ``days`` also those of ended logins."""
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
    """Return the number of kept answers of all users that cite one of ``documents``."""
    marks = ", ".join("?" * len(documents))
    query = f"SELECT COUNT(DISTINCT answer) FROM cited WHERE document IN ({marks})"  # noqa: S608
    with rows(data) as state:
        return int(state.execute(query, tuple(documents)).fetchone()[0])


def withdrawals(session: Session, sources: Iterable[Evidence]) -> dict[str, Message]:
    """Return the documents of ``sources`` that are withdrawn or in a stopped collection now, each with the reason.

    Collections that the session's groups may not read are left out.
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


def with_current_statuses(session: Session, answer: Answer) -> Answer:
    """Return ``answer``, which ``holds``, with current statuses of its documents and notes on those superseded or
    reinstated since.
    """
    now = session.standing(answer.evidence)
    since = {
        piece.passage.document_id: message("answer.superseded_since", title=piece.document_title)
        for before, piece in zip(answer.evidence, now, strict=True)
        if piece.status is Status.SUPERSEDED and before.status is not Status.SUPERSEDED
    }
    gone = {one.title for one in in_force(session.data).newest().values() if one.withdrawn}
    notes = (
        replace(note, code=later) if later and dict(note.parameters)["title"] not in gone else note
        for note, later in ((note, REINSTATED.get(note.code)) for note in answer.notes)
    )
    return replace(answer, evidence=now, notes=(*since.values(), *notes))


def status_mark(answer: Answer) -> str:
    """Return a mark that changes when ``with_current_statuses`` would change."""
    known = sorted({(it.passage.document_id, it.status.value, it.overdue) for it in answer.evidence})
    return hashlib.sha256(repr(known).encode()).hexdigest()[:MARK]


def note_withdrawals(session: Session, answer: Answer) -> Answer:
    """Return ``answer`` with a note on each cited document that was withdrawn since."""
    since = withdrawals(session, _not_withdrawn_then(answer))
    return replace(answer, notes=(*dict.fromkeys(since.values()), *answer.notes)) if since else answer


def _not_withdrawn_then(answer: Answer) -> list[Evidence]:
    return [evidence for evidence in answer.evidence if evidence.status is not Status.WITHDRAWN]


def require_held(session: Session, answer: Answer) -> None:
    """Raise ``UsageError``, naming the withdrawn documents, unless ``answer`` still ``holds``."""
    if not holds(session, answer):
        since = withdrawals(session, _not_withdrawn_then(answer))
        if since:
            raise UsageError("web.answer.gone_named", documents=tuple(dict.fromkeys(since.values())))
        raise UsageError("web.answer.gone")


def holds(session: Session, answer: Answer) -> bool:
    """Whether no document that ``answer`` cites was withdrawn, or hidden from the session's user, since it was made."""
    sources = _not_withdrawn_then(answer)
    with suppress(NoLibrary), session.workspace() as workspace:
        hidden = session.hidden() | stops.stopped(session.data, stops.COLLECTION)
        withdrawn = workspace.withdrawn()
        return not any(
            source.passage.document_id in withdrawn or source.passage.collection in hidden for source in sources
        )
    return not sources
