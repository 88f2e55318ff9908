"""Orders: a medical order explained, and its leaflet for the patient once a named person releases it; departments."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import HTMLResponse, Response

from localmed.domain import SearchFilter
from localmed.messages import LANGUAGES
from localmed.people import history
from localmed.presentation.pages import leaflets
from localmed.site import orders
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.ask import question_of, respond
from localmed.web.practice import given, uploaded_record
from localmed.web.protection import DOCUMENT_POLICY
from localmed.web.visits import Asking
from localmed.workflows.explain import ExplainInput

router = APIRouter()
BOTH = "both"  # languages of a leaflet


@router.get("/orders")
def form(visit: Asking) -> Response:
    """The form for an order."""
    return pages.page(visit, "orders.html")


@router.post("/orders")
def explain(
    visit: Asking,
    request: Request,
    order: Annotated[str, Form()] = "",
    questions: Annotated[str, Form()] = "",
    record: Annotated[str, Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Explain the order, pasted or in a ``file``, and answer the questions about it, one a line."""
    text = orders.text_of(given(order, file))
    asked_texts = tuple(line.strip() for line in clean(questions).splitlines() if line.strip())
    task = ExplainInput(text, uploaded_record(record, None), asked_texts)
    return respond(visit, request, text, lambda hooks: visit.session.explain(task, SearchFilter(), hooks))


@router.post("/answers/{answer_id}/leaflet")
def leaflet(
    visit: Asking, answer_id: str, released_by: Annotated[str, Form()] = "", language: Annotated[str, Form()] = ""
) -> Response:
    """The explanation as a leaflet, released by a person whose name stands on it and in the audit log."""
    kept = history.kept(visit.session, answer_id)
    history.require_held(visit.session, kept.answer)
    answer = orders.release(visit.session, kept, clean(released_by))
    own = language if language in LANGUAGES else answer.language
    languages = LANGUAGES if language == BOTH else (own,)
    page = leaflets(answer, date.today().isoformat(), languages)
    return HTMLResponse(page, headers={"content-security-policy": DOCUMENT_POLICY})


@router.get("/departments")
def departments_form(visit: Asking) -> Response:
    """The form for a complaint."""
    return pages.page(visit, "departments.html")


@router.post("/departments")
def departments(visit: Asking, request: Request, question: Annotated[str, Form()] = "") -> Response:
    """Where to go with a complaint."""
    text = question_of(visit, question)
    return respond(visit, request, text, lambda hooks: visit.session.departments(text, hooks))
