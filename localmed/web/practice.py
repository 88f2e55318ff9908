"""Evidence-based practice: a question, perhaps on one patient. A record is read, shown and corrected first.

Between the two pages the record exists only in the page itself, which sends it back with the question.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.formparsers import MultiPartParser
from starlette.responses import Response

from localmed.domain import Message, SearchFilter
from localmed.domain.errors import UsageError
from localmed.domain.patient import EntryKind, PatientRecord, RecordEntry
from localmed.messages import LANGUAGES
from localmed.people import history
from localmed.presentation.neutral import words as words_of
from localmed.presentation.practice import CODED, is_quoted_value
from localmed.site import records
from localmed.site.records import TEXT_CHARACTERS
from localmed.text import medicines
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.ask import question_of, respond
from localmed.web.visits import Asking, Visit

router = APIRouter()
Lines = Annotated[list[str], Form()]
MORE = 3  # empty lines for what the reader missed
ENTRY_CHARACTERS = 300  # of one entry and of the words that it was read from
MultiPartParser.spool_max_size = 2**24  # bytes: what is uploaded (a record) stays in memory, not in a temporary file


@router.get("/practice")
def form(visit: Asking) -> Response:
    """The form for the question, and for a record."""
    return _form(visit)


def _form(visit: Visit, question: str = "", pico: bool = False, pasted: str = "") -> Response:
    return pages.page(
        visit, "practice.html", hours=history.PATIENT_HOURS, asked_text=clean(question), pico=pico, pasted=pasted
    )


@router.post("/practice/change")
def change(
    visit: Asking,
    question: Annotated[str, Form()] = "",
    pico: Annotated[bool, Form()] = False,
    record: Annotated[str, Form()] = "",
) -> Response:
    """The form with the question and the record that the page of the record sends back."""
    return _form(visit, question, pico, record)


def _read(visit: Visit, question: str, pico: bool, record: PatientRecord) -> Response:
    """The record as read, to be corrected: values of quoted sentences are seen, other quotations folded."""
    folded = [it for it in record.entries if it.kind is EntryKind.UNREAD and not is_quoted_value(it)]
    return pages.page(
        visit,
        "practice_record.html",
        asked_text=clean(question),
        pico=pico,
        record=record,
        pasted=record.text if len(record.text) < TEXT_CHARACTERS else "",  # without identifiers; a longer one was cut
        notes=pages.lines(record.notes, visit),
        rows=[
            *(with_labels(entry, visit.language) for entry in record.entries if entry not in folded),
            *(RecordEntry(EntryKind.PROBLEM, "", "") for _ in range(MORE)),
        ],
        quoted=folded,
        kinds=list(EntryKind),
    )


def with_labels(entry: RecordEntry, language: str) -> RecordEntry:
    """``entry`` with words for a coded sex or pregnancy."""
    return replace(entry, text=_word(entry.kind, entry.text, language)) if entry.kind in CODED else entry


def with_codes(entry: RecordEntry) -> RecordEntry:
    """``entry`` with the code for a sex or pregnancy in words; unchanged otherwise."""
    codes = {_word(entry.kind, code, name): code for code in records.CODES.get(entry.kind, ()) for name in LANGUAGES}
    return replace(entry, text=codes.get(entry.text, entry.text))


def _word(kind: EntryKind, code: str, language: str) -> str:
    return words_of(Message(f"record.{CODED[kind]}_{code}"), language)


def pasted_or_uploaded(pasted: str, file: UploadFile | None) -> bytes:
    """The pasted or uploaded bytes, empty for neither; raise ``UsageError`` for both."""
    data = file.file.read() if file else b""
    if data.strip() and pasted.strip():
        raise UsageError("web.practice.both")
    return data if data.strip() else pasted.encode("utf-8", "replace")


def uploaded_record(record: str, file: UploadFile | None) -> PatientRecord | None:
    """The pasted or uploaded record; None for neither."""
    data = pasted_or_uploaded(record, file)
    return records.read(data) if data.strip() else None


@router.post("/practice")
def ask(
    visit: Asking,
    request: Request,
    question: Annotated[str, Form()] = "",
    pico: Annotated[bool, Form()] = False,
    kind: Lines = [],  # noqa: B006  (FastAPI copies it)
    entry: Lines = [],  # noqa: B006
    before: Lines = [],  # noqa: B006
    words: Lines = [],  # noqa: B006
    none_of: Lines = [],  # noqa: B006
    language: Annotated[str, Form()] = "en",
    as_of: Annotated[str, Form()] = "",
    record: Annotated[str, Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Answer the question for the patient of a corrected record; an uncorrected record is shown first."""
    if (unseen := uploaded_record(record, file)) is not None:
        return _read(visit, question, pico, unseen)
    text = question_of(visit, question)
    entries = corrections(kind, entry, before, words)
    known = records.corrected(entries, language if language in LANGUAGES else "en", as_of[:10], none_of)
    patient = known if entries or none_of else None
    return respond(visit, request, text, lambda hooks: visit.session.ebm(text, SearchFilter(), patient, pico, hooks))


def corrections(kinds: Lines, texts: Lines, before: Lines, words: Lines) -> list[RecordEntry]:
    """The entries sent by a page; a changed entry no longer quotes the record.

    With a cleared line goes the sentence that it is from, if that is quoted too and names no other medicine.
    """
    if not len(kinds) == len(texts) == len(before) == len(words) or any(name not in set(EntryKind) for name in kinds):
        raise UsageError("web.error.malformed")
    lines = [" ".join(clean(text).split())[:ENTRY_CHARACTERS] for text in texts]
    sent = [*zip(kinds, lines, before, words, strict=True)]
    cleared = {(source, name) for _, line, same, source in sent if not line for name in medicines.ingredients(same)}

    def is_cleared(kind: str, text: str, source: str) -> bool:
        named = {(source, name) for name in medicines.ingredients(text)}
        return kind == EntryKind.UNREAD and bool(named) and named <= cleared

    return [
        with_codes(RecordEntry(EntryKind(name), line, source[:ENTRY_CHARACTERS] if line == same else line))
        for name, line, same, source in sent
        if line and not is_cleared(name, line, source)
    ]
