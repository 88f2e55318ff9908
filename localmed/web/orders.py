"""Orders: an explained medical order, and its leaflet once a named person releases it; departments."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from starlette.responses import HTMLResponse, Response

from localmed.domain import SearchFilter
from localmed.domain.errors import UsageError
from localmed.domain.parts import QuestionPart
from localmed.messages import LANGUAGES
from localmed.people import history
from localmed.people.history import AskedWith, Kept
from localmed.presentation.pages import Window, leaflets
from localmed.site import orders
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.ask import path_of, question_of, respond
from localmed.web.practice import pasted_or_uploaded, uploaded_record
from localmed.web.visits import Asking
from localmed.workflows.explain import ExplainInput

router = APIRouter()
BOTH = "both"  # languages of a leaflet


@router.get("/orders")
def form(visit: Asking, again: str = "") -> Response:
    """The form for an order, filled with that of the answer ``again`` and its questions."""
    kept = history.kept(visit.session, again) if again else None
    order, questions = (kept.asked_text, _questions_of(kept)) if kept else ("", ())
    hours = history.PATIENT_HOURS
    return pages.page(visit, "orders.html", order=order, questions="\n".join(questions), hours=hours)


def _questions_of(kept: Kept) -> tuple[str, ...]:
    """The questions asked about an order; one that a program kept has them in its answer only."""
    answered = (part.question for part in kept.answer.parts if isinstance(part, QuestionPart))
    return kept.asked_with.questions or tuple(answered)


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
    text = orders.text_of(pasted_or_uploaded(order, file))
    asked_texts = orders.asked_questions(questions)
    task = ExplainInput(text, uploaded_record(record, None), asked_texts)
    flow = partial(visit.session.explain, task, SearchFilter())
    return respond(visit, request, text, flow, AskedWith(questions=asked_texts))


@router.post("/answers/{answer_id}/leaflet")
def release(
    visit: Asking,
    answer_id: str,
    released_by: Annotated[str, Form()] = "",
    language: Annotated[str, Form()] = "",
    checked: Annotated[bool, Form()] = False,
    meaning: Annotated[list[str], Form()] = [],  # noqa: B006  (FastAPI copies it)
    reply: Annotated[list[str], Form()] = [],  # noqa: B006
    section: Annotated[list[str], Form()] = [],  # noqa: B006
) -> Response:
    """Release the explanation under a person's name, which the leaflet and the audit log show; open the leaflet."""
    if language not in ("", BOTH, *LANGUAGES):
        raise UsageError("web.error.malformed")
    kept = history.kept(visit.session, answer_id)
    history.require_held(visit.session, kept.answer)
    replies = [clean(text) for text in reply]
    answer = orders.release(visit.session, kept, clean(released_by), checked, meaning, replies, section)
    history.replace_kept(visit.session, replace(kept, answer=answer))
    return pages.redirect(f"{path_of(kept)}/leaflet", language=language)


@router.get("/answers/{answer_id}/leaflet")
def leaflet(visit: Asking, answer_id: str, language: str = "") -> Response:
    """The leaflet of a released explanation, to print."""
    kept = history.kept(visit.session, answer_id)
    history.require_held(visit.session, kept.answer)
    if not kept.answer.released_by:
        return pages.redirect(path_of(kept))
    own = language if language in LANGUAGES else kept.answer.language
    text, nonce = pages.texts(visit.language), visit.request.scope["state"]["nonce"]
    buttons = (text("web.answer.print"), text("web.answer.back"))
    login = (visit.session.caller.user, pages.idle_seconds(visit))
    window = Window(*buttons, path_of(kept), pages.asset("localmed.js"), nonce, *login)
    languages = LANGUAGES if language == BOTH else (own,)
    return HTMLResponse(leaflets(kept.answer, kept.answer.released_on, languages, window))


@router.get("/departments")
def departments_form(visit: Asking) -> Response:
    """The form for a complaint."""
    return pages.page(visit, "departments.html")


@router.post("/departments")
def departments(visit: Asking, request: Request, question: Annotated[str, Form()] = "") -> Response:
    """The department for a complaint."""
    text = question_of(visit, question)
    return respond(visit, request, text, lambda hooks: visit.session.departments(text, hooks))
