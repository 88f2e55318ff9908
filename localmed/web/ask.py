"""Ask: the steps, the sections as soon as a model reads them, then the answer; its own page, follow-ups and reports.

The question comes by POST. A browser with the script gets events in the reply (``streams``); one without waits for the
answer and is led to its page. Every answer is kept sealed for whoever asked (``operations/history.py``): its page, its
sources and a follow-up are found by its id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import PlainTextResponse, Response

from localmed.clinical.identifiers import MASK, identifiers
from localmed.domain import Answer, SearchFilter, message
from localmed.errors import LimitExceeded, UsageError
from localmed.hooks import Hooks
from localmed.language import clean
from localmed.operations import feedback, history, lookups, page_images
from localmed.operations.feedback import Opinion
from localmed.operations.history import Kept
from localmed.presentation import finding, neutral, verify
from localmed.presentation.answer import view
from localmed.presentation.plain import plain
from localmed.presentation.views import AnswerView
from localmed.retrieval.suggesting import suggestions
from localmed.web import pages, streams
from localmed.web.admission import Queue
from localmed.web.streams import Event, Work
from localmed.web.visits import Asking, Visit

router = APIRouter()
EVENT_STREAM = "text/event-stream"
LAST = 3  # answers of before that stand below the empty box
TYPED = 100  # characters of what is being typed; a longer text is a question, and suggests nothing


def form_page(visit: Visit, status: int = 200, **values: Any) -> Response:
    """The page with the form to ask."""
    names = sorted(lookups.collection_names(visit.session) - visit.session.hidden())
    if not names:
        return pages.page(visit, "no_library.html")
    shown: dict[str, Any] = {"collections": names, "presets": tuple(visit.site.settings.tiers.presets)}
    shown |= {"after": "", "asked_text": ""}
    shown |= {"beside": _ways_beside(visit), "last": history.listing(visit.session, LAST)[0]}
    return pages.page(visit, "ask.html", status, **(shown | values))


def _ways_beside(visit: Visit) -> list[pages.Place]:
    """The other ways to ask; concepts only where the library has any."""
    with visit.session.workspace() as workspace:
        graph = bool(workspace.library.graph.counts())
    return [place for place in pages.BESIDE if graph or place.path != "/concepts"]


@router.post("/ask")
def ask(
    visit: Asking,
    request: Request,
    question: Annotated[str, Form()] = "",
    collection: Annotated[str, Form()] = "",
    preset: Annotated[str, Form()] = "",
    check: Annotated[bool, Form()] = False,
    after: Annotated[str, Form()] = "",
) -> Response:
    """Answer ``question``; ``after`` names the answer that it follows."""
    text, session = question_of(visit, question), visit.session
    before = history.kept(session, after) if after else None
    earlier = (*before.earlier, before.asked_text) if before else ()
    filters = SearchFilter((collection,) if collection else ())

    def work(hooks: Hooks) -> Answer:
        return session.ask(text, filters, preset or None, earlier, hooks, check)

    return respond(visit, request, text, work, earlier)


@router.post("/ask/suggestions")
def suggested(visit: Asking, question: Annotated[str, Form()] = "") -> list[str]:
    """Headings, titles and medicines of the library that begin as ``question`` does; nothing is kept."""
    with visit.session.workspace() as workspace:
        return list(suggestions(workspace.library, clean(question)[:TYPED]))


@router.post("/ask/identifiers")
def named(visit: Asking, question: Annotated[str, Form()] = "") -> Response:
    """A warning of what names a patient in a question that is being typed, empty without; nothing is kept."""
    words = identifiers(clean(question)[: visit.site.settings.web.question_characters])
    text = neutral.words(message("web.ask.identifiers", words=words), visit.language) if words else ""
    return PlainTextResponse(text)


def question_of(visit: Visit, typed: str) -> str:
    """What was typed as a question; raise ``UsageError`` for nothing, ``LimitExceeded`` for too much."""
    text, most = clean(typed).strip(), visit.site.settings.web.question_characters
    if not text:
        raise UsageError("web.ask.empty")
    if len(text) > most:
        raise LimitExceeded("web.ask.long", most=most)
    return text


def respond(visit: Visit, request: Request, asked_text: str, work: Work, earlier: tuple[str, ...] = ()) -> Response:
    """The answer of ``work``: events for a browser with the script, else its page. For every page that asks."""

    def shown(event: Event) -> Any:
        if event.kind == "sections":
            return pages.fragment(visit, "passages.html", finding=finding.view(event.value, visit.language))
        if event.kind == "answer":
            kept = kept_answer(visit, asked_text, event.value, id_, earlier)
            values = values_of(visit, kept)
            html = pages.fragment(visit, "answer_body.html", **values)
            return {"html": html, "path": path_of(kept), "said": ended(values["view"])}
        return streams.in_words(event, visit)

    queued, id_ = admitted(visit, work)
    if EVENT_STREAM in request.headers.get("accept", ""):
        return streams.events(visit, queued, shown)
    return pages.redirect(path_of(kept_answer(visit, asked_text, streams.finish(queued), id_, earlier)))


def ended(shown: AnswerView) -> str:
    """How it ended, for a screen reader: what stands on the page, who wrote it, and its badge."""
    return " ".join(filter(None, (shown.headline, shown.badge.title if shown.badge else "")))


def admitted(visit: Visit, work: Work) -> tuple[Work, str]:
    """``work`` with a place in the queue, which it waits in, and the id of its answer; raise ``Busy`` without one."""
    queue: Queue = visit.request.app.state.queue
    place, id_ = queue.enter(visit.session.caller.user), history.new_id()

    def queued(hooks: Hooks) -> Answer:
        with queue.turn(place, hooks):
            return work(replace(hooks, answer_id=id_))

    return queued, id_


def kept_answer(visit: Visit, asked_text: str, answer: Answer, id_: str, earlier: tuple[str, ...] = ()) -> Kept:
    """``answer``, kept for the visitor; its pages are drawn ahead. For every page that shows an answer."""
    login = visit.login.id if visit.login else ""
    kept = history.keep(visit.session, login, asked_text, answer, earlier, id_)
    page_images.draw_ahead(visit.session, answer)
    return kept


def path_of(kept: Kept) -> str:
    """Where a kept answer is shown."""
    return f"/answers/{kept.id}"


def values_of(visit: Visit, kept: Kept) -> dict[str, Any]:
    """What ``answer_body.html`` is filled with."""
    shown = view(kept.answer, visit.language)
    holds = history.holds(visit.session, kept.answer)
    withdrawals = () if holds else history.withdrawals(visit.session, kept.answer.evidence)
    basis = {"kept": kept, "view": shown, "copied": plain(shown), "masked": MASK in kept.asked_text}
    votes = verify.votes(kept.answer.parts, visit.language)
    return {**basis, "finding": shown.finding, "holds": holds, "withdrawals": withdrawals, "votes": votes}


@router.get("/answers/{answer_id}")
def answer_page(visit: Asking, answer_id: str) -> Response:
    """A kept answer."""
    return pages.page(visit, "answer.html", **values_of(visit, history.kept(visit.session, answer_id)))


@router.get("/answers/{answer_id}/holds")
def still_holds(visit: Asking, answer_id: str) -> Response:
    """204 while nothing that the answer cites was withdrawn, 410 once something was; its open page asks."""
    kept = history.kept(visit.session, answer_id)
    return Response(status_code=204 if history.holds(visit.session, kept.answer) else 410)


@router.post("/answers/{answer_id}/report")
def report(
    visit: Asking,
    answer_id: str,
    opinion: Annotated[Opinion, Form()],
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Say what one thinks of an answer, for the safety officer."""
    kept = history.kept(visit.session, answer_id)
    feedback.report(visit.session, kept, opinion, clean(comment))
    return pages.redirect(path_of(kept), notice="reported")
