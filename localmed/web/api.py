"""The API under /api/v1: the functions of the pages for programs, as JSON, described at /api/v1/openapi.json.

A program sends ``Authorization: Bearer TOKEN`` (``people/tokens.py``). A browser's login does not count, so that no
page of another site can use the API. An answer comes whole or, for ``Accept: text/event-stream``, as server-sent
events ``{"kind": ..., "value": ...}``: ``step``, ``progress``, ``sections`` (while a chat model reads them), then
``answer`` or ``error``.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.openapi.utils import get_openapi
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from localmed import __version__
from localmed.answering.record import names_in
from localmed.domain import Answer, SearchFilter
from localmed.domain.answers import answer_json
from localmed.domain.errors import LocalmedError, NoToken, UsageError
from localmed.domain.findings import ALL
from localmed.domain.patient import PatientRecord
from localmed.ingest import records
from localmed.people import feedback, history, tokens
from localmed.people.feedback import Opinion
from localmed.people.history import ALONE, AskedWith, Kept
from localmed.presentation.answer import view
from localmed.presentation.finding import finding_value
from localmed.presentation.plain import plain
from localmed.process.hooks import SILENT
from localmed.site import lookups, orders
from localmed.site.session import Session, caller_of
from localmed.text.language import clean
from localmed.web import pages, sources, streams
from localmed.web.ask import EVENT_STREAM, asking, enter_queue, keep_answer, question_of
from localmed.web.search import TYPED
from localmed.web.streams import Event, Work
from localmed.web.visits import Visit, anybody
from localmed.workflows.explain import ExplainInput

router = APIRouter(prefix="/api/v1", tags=["localmed"])
MOST_RESULTS = 50
LONGEST = 200_000  # characters of one text of a request; the body has its own bound
MOST_QUESTIONS = 50
BEARER = HTTPBearer(auto_error=False)  # a token of ``people/tokens.py``


async def program(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> Visit:
    """The visit of a program; raise ``NoToken`` without a valid token."""
    visit, token = anybody(request), credentials.credentials if credentials else ""
    account = (
        await run_in_threadpool(tokens.current, visit.site.data, token, visit.site.settings.web) if token else None
    )
    if account is None:
        raise NoToken("web.error.no_token")
    return Visit(request, visit.language, visit.theme, own=Session(visit.site, caller_of(account, visit.language)))


Program = Annotated[Visit, Depends(program)]
Text = Annotated[str, Field(max_length=LONGEST)]
Name = Annotated[str, Field(max_length=200)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Read(_Body):
    """A question that is read: what is ``left_out`` is not searched for, ``as_written`` leaves out all readings."""

    question: Text
    left_out: list[Text] = []
    as_written: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the readings that are left out."""
        return (*self.left_out, *([ALL] if self.as_written else ()))


class AskBody(_Read):
    """A question. ``after`` is the id of the answer that it follows: what was chosen or left out there holds here."""

    collection: Name = ""
    preset: Name = ""
    after: Name = ""
    check: bool = False
    thorough: bool = False


class SearchBody(_Read):
    """What is searched for."""

    collection: Name = ""
    limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = 10


class ConceptBody(_Body):
    """A term, and perhaps the question that its relations are ordered by."""

    term: Text
    question: Text = ""


class RecordBody(_Body):
    """A patient's record as text, C-CDA or FHIR JSON; it is not kept."""

    record: Text


class PracticeBody(_Body):
    """A question, perhaps on the patient of a ``record``."""

    question: Text
    record: Text = ""
    pico: bool = False


class OrderBody(_Body):
    """A medical order, and questions about it."""

    order: Text
    questions: Annotated[list[Text], Field(max_length=MOST_QUESTIONS)] = []
    record: Text = ""


class ComplaintBody(_Body):
    """A complaint in a patient's words."""

    complaint: Text


class ReportBody(_Body):
    """What somebody thinks of an answer."""

    opinion: Opinion
    comment: Annotated[str, Field(max_length=feedback.LONGEST)] = ""


# --- answers ----------------------------------------------------------------------------------------------------------


def answer_value(kept: Kept, language: str) -> dict[str, Any]:
    """An answer as JSON: as text, as a reader sees it, and whole."""
    shown = view(kept.answer, language)
    return {
        "id": kept.id,
        "status": kept.answer.status.value,
        "badge": kept.answer.verification.badge.value,
        "badge_reason": shown.badge.reason if shown.badge else "",
        "text": plain(shown),
        "view": asdict(shown),
        "answer": answer_json(kept.answer, language),
    }


def respond(visit: Visit, request: Request, asked_text: str, work: Work, asked_with: AskedWith = ALONE) -> Response:
    """The answer of ``work`` as JSON, or as events."""
    queued, id_ = enter_queue(visit, work)

    def value_of(answer: Answer) -> dict[str, Any]:
        return answer_value(keep_answer(visit, asked_text, answer, id_, asked_with), visit.language)

    def shown(event: Event) -> Any:
        if event.kind == "answer":
            return value_of(event.value)
        if event.kind == "sections":
            return finding_value(event.value)
        return streams.in_words(event, visit)

    if EVENT_STREAM in request.headers.get("accept", ""):
        return streams.events(visit, queued, shown)
    return JSONResponse(value_of(queued(SILENT)))


def ask_work(visit: Visit, body: AskBody) -> tuple[str, Work, AskedWith]:
    """The question, the work that answers it, and its options."""
    chosen = AskedWith((), body.collection, body.preset, body.check, body.names)
    carried = history.inherit_choices(visit.session, chosen, body.after) if body.after else chosen
    carried = replace(carried, check=body.check) if body.thorough else carried  # they exclude each other
    text = question_of(visit, body.question)
    return text, asking(visit.session, text, carried, body.thorough), carried


@router.post("/ask")
def ask(visit: Program, request: Request, body: AskBody) -> Response:
    """The sections that speak of a question; with a chat model an answer, every sentence of it cited and checked."""
    return respond(visit, request, *ask_work(visit, body))


@router.post("/records")
def read_record(visit: Program, body: RecordBody) -> Response:
    """What is read of a record: its text without identifiers, and the names that are looked up."""
    read = records.read(body.record.encode("utf-8", "replace"))
    names = [
        {"kind": one.kind.value, "text": read.text[one.start : one.end], "start": one.start, "end": one.end}
        for one in names_in(read.text)
    ]
    return JSONResponse({"text": read.text, "names": names, "notes": pages.lines(read.notes, visit)})


@router.post("/practice")
def practice(visit: Program, request: Request, body: PracticeBody) -> Response:
    """Evidence on a clinical question about one patient."""
    text, known = question_of(visit, body.question), _record(body.record)
    return respond(visit, request, text, lambda hooks: visit.session.ebm(text, SearchFilter(), known, body.pico, hooks))


def _record(text: str) -> PatientRecord | None:
    return records.read(text.encode("utf-8", "replace")) if text.strip() else None


@router.post("/orders")
def explain(visit: Program, request: Request, body: OrderBody) -> Response:
    """Explain a medical order; a leaflet is released on the page of the answer, by a person."""
    text = orders.text_of(body.order.encode("utf-8", "replace"))
    questions = tuple(clean(question) for question in body.questions if question.strip())
    task = ExplainInput(text, _record(body.record), questions)
    return respond(visit, request, text, lambda hooks: visit.session.explain(task, SearchFilter(), hooks))


@router.post("/departments")
def departments(visit: Program, request: Request, body: ComplaintBody) -> Response:
    """Where to go with a complaint, by the hospital's guide."""
    text = question_of(visit, body.complaint)
    return respond(visit, request, text, lambda hooks: visit.session.departments(text, hooks))


# --- what was answered ------------------------------------------------------------------------------------------------


@router.get("/answers")
def answers(visit: Program) -> Response:
    """One's own answers, the newest first."""
    listed, _ = history.listing(visit.session)
    return JSONResponse([{"id": one.id, "time": one.time, "workflow": one.answer.workflow} for one in listed])


@router.get("/answers/{answer_id}")
def answer(visit: Program, answer_id: str) -> Response:
    """One of them, unless something that it cites was withdrawn."""
    kept = history.kept(visit.session, answer_id)
    history.require_held(visit.session, kept.answer)
    now = replace(kept, answer=history.with_current_statuses(visit.session, kept.answer))
    return JSONResponse(answer_value(now, visit.language))


@router.delete("/answers/{answer_id}")
def forget(visit: Program, answer_id: str) -> Response:
    """Delete one of them."""
    history.forget(visit.session, history.kept(visit.session, answer_id).id)
    return JSONResponse({})


@router.post("/answers/{answer_id}/report")
def report(visit: Program, answer_id: str, body: ReportBody) -> Response:
    """Say what one thinks of an answer, for the safety officer."""
    kept = history.kept(visit.session, answer_id)
    feedback.report(visit.session, kept, body.opinion, clean(body.comment))
    return JSONResponse({})


@router.get("/answers/{answer_id}/sources/{marker}/image", response_class=Response)
def image_of_answer(
    visit: Program, answer_id: str, marker: str, start: int = 0, end: int = 0, page: int = 0
) -> Response:
    """The page of a source as an image (PNG), the cited text marked."""
    answer = sources.kept_answer(visit, answer_id)
    return sources.image(visit, sources.cited_source(visit, answer_id, marker), answer, start, end, page)


# --- the library ------------------------------------------------------------------------------------------------------


@router.get("/collections")
def collections(visit: Program) -> Response:
    """The collections that may be read."""
    return JSONResponse(sorted(lookups.collection_names(visit.session) - visit.session.hidden()))


@router.post("/search")
def search(visit: Program, body: SearchBody) -> Response:
    """The sections that speak of a question, as it was read."""
    text, filters = clean(body.question).strip()[:TYPED], SearchFilter((body.collection,) if body.collection else ())
    if not text:
        raise UsageError("workflow.no_words")
    return JSONResponse(finding_value(visit.session.search(text, filters, body.limit, body.names)))


@router.get("/passages/{passage_id}")
def passage(visit: Program, passage_id: str) -> Response:
    """One passage."""
    return JSONResponse(asdict(lookups.evidence_of(visit.session, passage_id).passage))


@router.get("/passages/{passage_id}/image", response_class=Response)
def image_of_passage(visit: Program, passage_id: str, start: int = 0, end: int = 0, page: int = 0) -> Response:
    """Its page as an image (PNG)."""
    return sources.image(visit, lookups.evidence_of(visit.session, passage_id), None, start, end, page)


@router.post("/concepts")
def concept(visit: Program, body: ConceptBody) -> Response:
    """What the concept graph says of a term."""
    text = clean(body.term).strip()[:TYPED]
    if not text:
        raise UsageError("workflow.no_words")
    card = asdict(visit.session.concept(text, clean(body.question)[:TYPED]))
    return JSONResponse({**card, "notes": pages.lines(card["notes"], visit)})


@router.get("/openapi.json", include_in_schema=False)
def description(request: Request) -> Response:
    """The description of the API (OpenAPI 3.1)."""
    described = [*router.routes, *request.app.state.described]
    return JSONResponse(get_openapi(title="localmed", version=__version__, routes=described))


def words_of(error: LocalmedError, visit: Visit) -> str:
    """The words of ``error`` in the program's language."""
    return str(streams.in_words(Event("error", error), visit))
