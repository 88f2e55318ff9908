"""Evidence-based practice: a question, perhaps on one patient, whose record is shown again beside what was found."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.formparsers import MultiPartParser
from starlette.responses import Response

from localmed.domain import SearchFilter
from localmed.domain.errors import UsageError
from localmed.domain.parts import RecordPart
from localmed.domain.patient import PatientRecord
from localmed.ingest import records
from localmed.people import history
from localmed.web import pages
from localmed.web.ask import question_of, respond
from localmed.web.visits import Asking

router = APIRouter()
MultiPartParser.spool_max_size = 2**24  # bytes: what is uploaded (a record) stays in memory, not in a temporary file


@router.get("/practice")
def form(visit: Asking, again: str = "") -> Response:
    """The form for the question, and for a record; filled with those of the answer ``again``."""
    kept = history.kept(visit.session, again) if again else None
    parts = kept.answer.parts if kept else ()
    pasted = next((part.text for part in parts if isinstance(part, RecordPart)), "")
    question = kept.asked_text if kept else ""
    return pages.page(visit, "practice.html", hours=history.PATIENT_HOURS, asked_text=question, pasted=pasted)


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
    record: Annotated[str, Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Answer the question, for the patient of the record if there is one."""
    text, patient = question_of(visit, question), uploaded_record(record, file)
    return respond(visit, request, text, lambda hooks: visit.session.ebm(text, SearchFilter(), patient, pico, hooks))
