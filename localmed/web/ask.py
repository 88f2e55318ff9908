"""Asking: the steps, the sections, the answer, its page, follow-ups, reports and history; the first page and the guide.

The question is sent by POST. A browser with the script gets events in the reply (``streams``); another waits for the
answer and is redirected to its page. Every answer is kept sealed for its asker (``people/history.py``) under an id,
by which its page, its sources and a follow-up are found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import PlainTextResponse, Response

from localmed import messages
from localmed.domain import Answer, Message, SearchFilter, message
from localmed.domain.accounts import Right
from localmed.domain.errors import LimitExceeded, NoLibrary, UnknownName, UsageError
from localmed.messages import COLON, LANGUAGES, joined
from localmed.nightly import nights
from localmed.people import accounts, feedback, history
from localmed.people.feedback import Opinion
from localmed.people.history import ALONE, AskedWith, Kept
from localmed.presentation import finding, neutral, order, verify
from localmed.presentation.answer import view
from localmed.presentation.pages import moment
from localmed.presentation.plain import status_lines, text_to_copy
from localmed.presentation.views import AnswerView
from localmed.process.hooks import SILENT, Hooks
from localmed.retrieval.suggesting import suggestions
from localmed.site import lookups, orders, page_images, stops, uploads
from localmed.site.session import Session
from localmed.text.identifiers import MASK, identifiers
from localmed.text.language import clean, words
from localmed.web import pages, sources, streams
from localmed.web.admission import Queue
from localmed.web.failures import wants_json
from localmed.web.streams import Event, Work
from localmed.web.visits import Anybody, Asking, Visit, require_own_password

router = APIRouter()
EVENT_STREAM = "text/event-stream"
LOOKED = 10  # newest answers, of which the different questions are shown
LAST = 3  # answers of before that stand below the empty box
GUIDE = {
    "ward": Right.ASK,
    "keys": Right.ASK,
    "library": Right.LIBRARY,
    "safety": Right.SAFETY,
    "accounts": Right.ACCOUNTS,
}
LINES = 9  # at most, of a part of the guide: it is one page
TYPED = 100  # characters of what is being typed; a longer text is a question, and suggests nothing


@router.get("/")
def home(visit: Anybody) -> Response:
    """The page to ask, to sign in, or of the first start."""
    require_own_password(visit)
    if visit.own is not None:
        return form_page(visit)
    return pages.redirect("/start" if accounts.has_no_account(visit.site.data) else "/login")


@router.get("/guide")
def guide(visit: Asking) -> Response:
    """Help with a part for each right of the visitor."""
    parts = [name for name, right in GUIDE.items() if visit.may(right)]
    lines = {name: [f"web.guide.{name}_{number}" for number in range(1, LINES)] for name in parts}
    shown = [(name, [code for code in codes if messages.known(code)]) for name, codes in lines.items()]
    return pages.page(visit, "guide.html", guide=shown)


def form_page(visit: Visit, typed: str = "", fault: Message | None = None, asked_with: AskedWith = ALONE) -> Response:
    """The page to ask. After a ``fault`` it shows again what was ``typed`` and chosen."""
    box = box_of(visit, typed, asked_with)
    if not box["collections"] and not lookups.collection_names(visit.session):
        return pages.page(visit, "no_library.html")
    text = pages.texts(visit.language)
    starred, newest = lookups.first_documents(visit.session, visit.language)
    newest_answers = [kept for kept in history.listing(visit.session, LOOKED)[0] if not kept.of_patient]
    last = list({kept.asked_text: kept for kept in reversed(newest_answers)}.values())[-LAST:][::-1]
    gone = [text("documents.status_withdrawn") if since else "" for since in _withdrawn_since(visit, last)]
    lists: dict[str, Any] = {
        "last": [(path_of(kept), kept.asked_text, told) for kept, told in zip(last, gone, strict=True)],
        "favourites": [(f"/documents/{it.id}", it.title, it.edition) for it in starred],
        "newest": [(f"/documents/{it.id}", it.title, it.edition) for it in newest],
        "beside_ways": [(place.path, text(place.code), "") for place in _ways_beside(visit)],
        "reports": feedback.new_reports(visit.session) if visit.may(Right.SAFETY) else {},
    }
    return pages.page(visit, "ask.html", fault=fault, **box, **lists, **_morning(visit))


def _morning(visit: Visit) -> dict[str, Any]:
    """For librarians: the report of the last night, uploads that wait, documents due for review.

    Librarians and administrators are told if no night ever ran.
    """
    if not (visit.may(Right.LIBRARY) or visit.may(Right.MODELS)):
        return {"morning": None}
    no_night, night = not nights.is_timed(visit.site.data), next(iter(nights.nights(visit.site.data, 1)), None)
    if night is None or not visit.may(Right.LIBRARY):
        return {"morning": None, "no_night": no_night}
    due = len(lookups.to_review(visit.session, "", 0)[0])
    return {"morning": night, "no_night": no_night, "waiting": len(uploads.listing(visit.session)), "due": due}


def box_of(visit: Visit, asked_text: str = "", asked_with: AskedWith = ALONE) -> dict[str, Any]:
    """Values of ``ask_form.html``: the question and its options."""
    names = sorted(lookups.collection_names(visit.session) - visit.session.hidden())
    presets = tuple(visit.site.settings.tiers.presets)
    return {"collections": names, "presets": presets, "asked_text": asked_text, "asked_with": asked_with, "again": ""}


def box_of_kept(visit: Visit, kept: Kept) -> dict[str, Any]:
    """``box_of`` for a kept answer; empty if it is not the answer to a question."""
    if kept.answer.workflow != "ask":
        return {}
    return box_of(visit, "" if MASK in kept.asked_text else kept.asked_text, kept.asked_with) | {"again": kept.id}


def box_above(kept: Kept) -> str:
    """The template of the box above a kept answer, for the next question; "" where the answer has none."""
    return {"ask": "ask_form.html", "departments": "complaint_form.html"}.get(kept.answer.workflow, "")


def _ways_beside(visit: Visit) -> list[pages.Place]:
    """The other ways to ask; concepts only if the library has any."""
    with visit.session.answering() as workspace:
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
    again: Annotated[str, Form()] = "",
    left_out: Annotated[tuple[str, ...], Form()] = (),
) -> Response:
    """Answer ``question``. ``after`` is the answer that it follows up, ``again`` an earlier answer to it.

    ``left_out`` names readings that are not searched for.
    """
    chosen = AskedWith((), collection, preset, check, left_out)
    try:
        text = question_of(visit, question)
    except UsageError as error:
        if wants_json(request):
            raise
        return form_page(visit, question, error.full_message, chosen)
    with suppress(UnknownName):  # it is forgotten since
        if again and (before := history.kept(visit.session, again)).asked_text.split() == text.split():
            chosen = replace(chosen, earlier=before.asked_with.earlier)
    chosen = history.inherit_choices(visit.session, chosen, after) if after else chosen
    return respond(visit, request, text, asking(visit.session, text, chosen), chosen)


def asking(session: Session, text: str, asked_with: AskedWith, thorough: bool = False) -> Work:
    """The work that answers ``text``. The API uses it too."""
    filters = SearchFilter((asked_with.collection,) if asked_with.collection else ())
    preset, earlier, check, left_out = asked_with.preset, asked_with.earlier, asked_with.check, asked_with.left_out
    return lambda hooks: session.ask(text, filters, preset or None, earlier, hooks, check, thorough, left_out)


@router.post("/ask/suggestions")
def suggest(visit: Asking, question: Annotated[str, Form()] = "") -> list[str]:
    """Headings, titles and medicines of the library that begin like ``question``; nothing is stored."""
    with visit.session.answering() as workspace:
        return list(suggestions(workspace.library, clean(question)[:TYPED]))


@router.post("/ask/identifiers")
def patient_names(visit: Asking, question: Annotated[str, Form()] = "") -> Response:
    """A warning if a typed question contains a patient's name or number, else ""; nothing is stored."""
    named = identifiers(clean(question)[: visit.site.settings.web.question_characters])
    text = neutral.words(message("web.ask.identifiers", words=named), visit.language) if named else ""
    return PlainTextResponse(text)


def question_of(visit: Visit, typed: str) -> str:
    """The typed question. Raise ``UsageError`` if it has no word, ``LimitExceeded`` if it is too long."""
    text, most = clean(typed).strip(), visit.site.settings.web.question_characters
    if not words(text):
        raise UsageError("workflow.no_words")
    if len(text) > most:
        raise LimitExceeded("web.ask.long", most=most)
    return text


def respond(visit: Visit, request: Request, asked_text: str, work: Work, asked_with: AskedWith = ALONE) -> Response:
    """Send the answer of ``work``, for every page that asks: events for a browser with the script, else its page."""

    def shown(event: Event) -> Any:
        if event.kind == "sections":
            notes = pages.lines(event.value.notes, visit)
            return pages.fragment(visit, "passages.html", notes=notes, **section_values(visit, event.value))
        if event.kind == "answer":
            kept = keep_answer(visit, asked_text, event.value, id_, asked_with)
            values, box = answer_values(visit, kept), box_of_kept(visit, kept)
            html = pages.fragment(visit, "answer_body.html", **values)
            above = pages.fragment(visit, box_above(kept), **values, **box) if box_above(kept) else ""
            return {"html": html, "box": above, "path": path_of(kept), "said": spoken_result(values["view"])}
        return streams.in_words(event, visit)

    queued, id_ = enter_queue(visit, work)
    if EVENT_STREAM in request.headers.get("accept", ""):
        return streams.events(visit, queued, shown)
    return pages.redirect(path_of(keep_answer(visit, asked_text, queued(SILENT), id_, asked_with)))


def spoken_result(shown: AnswerView) -> str:
    """The result for a screen reader: its headline and its badge."""
    return " ".join(filter(None, (shown.headline, shown.badge.title if shown.badge else "")))


def enter_queue(visit: Visit, work: Work) -> tuple[Work, str]:
    """``work`` with a place in the queue, and the id of its answer. Raise ``Busy`` if there is no place."""
    queue: Queue = visit.request.app.state.queue
    place, id_ = queue.enter(visit.session.caller.user), history.new_id()

    def queued(hooks: Hooks) -> Answer:
        with queue.turn(place, hooks):
            return work(replace(hooks, answer_id=id_))

    return queued, id_


def keep_answer(visit: Visit, asked_text: str, answer: Answer, id_: str, asked_with: AskedWith = ALONE) -> Kept:
    """Keep ``answer`` for the visitor and draw its pages ahead. Every page that shows an answer uses it."""
    login = visit.login.id if visit.login else ""
    kept = history.keep(visit.session, login, asked_text, answer, asked_with, id_)
    page_images.draw_ahead(visit.session, answer)
    return kept


def path_of(kept: Kept) -> str:
    """The address of a kept answer."""
    return f"/answers/{kept.id}"


def section_values(visit: Visit, answer: Answer, base: str = "") -> dict[str, Any]:
    """Values of ``sections.html``, and the page beside it: of the first citation of ``answer``, else its first section.

    ``base`` is the address of a kept answer's sources; without it they are passages of the library.
    """
    known, shown = answer.by_marker, finding.view(answer, visit.language)
    links = answer.links if answer.statements else (*(one.link for one in answer.sections), *answer.links)
    if shown and (shown.far or shown.others_open) and not answer.statements:  # no page stands beside titles
        above = shown.others if shown.others_open or not shown.sections else ()
        links = tuple((one.marker, one.start, one.end) for one in above)
    first = next(((known[marker], (start, end)) for marker, start, end in links if marker in known), None)
    beside: dict[str, Any] = {}
    if first:
        piece, span = first
        path = f"{base}/sources/{quote(piece.marker)}" if base else f"/passages/{piece.passage.id}"
        (now,) = visit.session.standing((piece,))
        beside = sources.source_values(visit, now, path, span, answer=answer if base else None)
    listed = (*shown.sections, *shown.others) if shown else ()
    known_documents = lookups.documents_of(visit.session, (one.document for one in listed))
    governed = {name: document.governance for name, document in known_documents.items()}
    shown = finding.with_owners(shown, governed, visit.language) if shown else None
    return {"finding": shown, "blocks": finding.blocks, "beside": beside}


def answer_values(visit: Visit, kept: Kept, since: bool = True) -> dict[str, Any]:
    """Values of ``answer_body.html``. Sources have their present status or, without ``since``, that of the answer."""
    holds, answer = history.holds(visit.session, kept.answer), kept.answer
    if holds and since:
        answer = history.with_current_statuses(visit.session, answer)
    is_shown = holds or not since
    found = section_values(visit, answer if is_shown else replace(answer, evidence=(), receipts=None), path_of(kept))
    shown = replace(view(answer, visit.language), finding=found["finding"])
    order_lines, parts = order.terms_by_line(answer.parts, shown.parts, visit.language, answer.language)
    copied, shown = shown, order.with_cited_sources(shown, order_lines, parts)
    told = "stopped_departments" if answer.workflow == "departments" else "stopped"
    stopped = [
        neutral.words(message(f"web.answer.{told}", reason=one.reason), visit.language)
        for one in stops.visible_stops(visit.session)
        if (one.kind, one.name) == (stops.WORKFLOW, answer.workflow)
    ]
    sources_of = _collection_sources(visit, answer)
    stated = (f"{', '.join(titles)}: {source}" for source, titles in sources_of.items() if source)
    basis = {
        "kept": kept,
        "sheet": False,
        "view": shown,
        "parts": parts,
        "order_lines": order_lines,
        "colon": joined(("", ""), visit.language, COLON),
        "ambiguous": orders.ambiguous(answer),
        "unclear": orders.why_unclear(answer),
        "only_likened": message("departments.likened") in answer.notes,
        "needs_check": orders.needs_check(answer),
        "patient_questions": orders.questions_of(answer),
        "reply_characters": orders.LONGEST_REPLY,
        "in_other_words": {name: order.in_other_words(answer, name) for name in LANGUAGES},
        "state": "\n".join(status_lines(shown, kept.asked_text, answer.provenance.day)),
        "stopped": stopped,
        "copied": "\n".join((*stopped, text_to_copy(copied, kept.asked_text, answer.provenance.day), *stated)),
        "masked": MASK in kept.asked_text,
        "printed": moment(time.time()),
        "library_day": moment(lookups.generation_date(visit.session, answer.provenance.generation)),
        "sources_of": sources_of,
        "holds": holds,
        "standing": history.status_mark(answer),
        "withdrawals": () if holds else dict.fromkeys(history.withdrawals(visit.session, answer.evidence).values()),
        "votes": verify.votes(answer.parts, visit.language),
    }
    return {**basis, **found, **({"beside": None} if order_lines else {})}  # beside an order stands what it means


def _collection_sources(visit: Visit, answer: Answer) -> dict[str, list[str]]:
    """The titles of the collections that ``answer`` shows, by the source that they state."""
    shown, titles = {piece.passage.collection for piece in answer.evidence}, dict[str, list[str]]()
    with suppress(NoLibrary), visit.session.workspace() as workspace:
        for collection in workspace.library.catalogue.collections():
            if collection.name in shown:
                titles.setdefault(collection.source, []).append(collection.title)
    return titles


@router.get("/answers/{answer_id}")
def answer_page(visit: Asking, answer_id: str) -> Response:
    """A kept answer."""
    kept = history.kept(visit.session, answer_id)
    box = box_of_kept(visit, kept)
    return pages.page(visit, "answer.html", **answer_values(visit, kept), **box, asks=bool(box), above=box_above(kept))


@router.get("/answers/{answer_id}/sheet")
def sheet(visit: Asking, answer_id: str) -> Response:
    """A kept answer to print: the question, the sections with images of their pages, and the date."""
    kept = history.kept(visit.session, answer_id)
    history.require_held(visit.session, kept.answer)
    return pages.page(visit, "answer.html", **(answer_values(visit, kept) | {"sheet": True, "asks": True}))


@router.get("/answers/{answer_id}/holds")
def still_holds(visit: Asking, answer_id: str, standing: str = "") -> Response:
    """204 while nothing that the answer cites was withdrawn, else 410; the open page of the answer polls this.

    Also 410 if a source has another status than at ``standing``, such as superseded.
    """
    answer = history.kept(visit.session, answer_id).answer
    same = history.holds(visit.session, answer) and standing in (
        "",
        history.status_mark(history.with_current_statuses(visit.session, answer)),
    )
    return Response(status_code=204 if same else 410)


@router.post("/answers/{answer_id}/report")
def report(
    visit: Asking,
    answer_id: str,
    opinion: Annotated[Opinion, Form()],
    comment: Annotated[str, Form()] = "",
) -> Response:
    """Send an opinion on an answer to the safety officer."""
    kept = history.kept(visit.session, answer_id)
    feedback.report(visit.session, kept, opinion, clean(comment))
    return pages.redirect(path_of(kept), notice="reported")


def _withdrawn_since(visit: Visit, answers: Sequence[Kept]) -> list[tuple[Message, ...]]:
    """For each answer, what tells of the documents behind it that were withdrawn since."""
    since = history.withdrawals(visit.session, (piece for kept in answers for piece in kept.answer.evidence))
    cited = [dict.fromkeys(piece.passage.document_id for piece in kept.answer.evidence) for kept in answers]
    return [tuple(dict.fromkeys(since[one] for one in documents if one in since)) for documents in cited]


@router.get("/history")
def listing(visit: Asking) -> Response:
    """The visitor's kept answers, newest first."""
    listed, unopened = history.listing(visit.session)
    gone = _withdrawn_since(visit, listed)
    told = {"days": visit.site.settings.web.history_days, "hours": history.PATIENT_HOURS, "unopened": unopened}
    return pages.page(visit, "history.html", answers=list(zip(listed, gone, strict=True)), **told)


@router.post("/history/{answer_id}/forget")
def forget(visit: Asking, answer_id: str) -> Response:
    """Delete one kept answer, or "all"."""
    history.forget(visit.session, "" if answer_id == "all" else answer_id)
    return pages.redirect("/history", notice="forgotten")
