"""Search without an answer, the list of documents, and the concept graph."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import Answer, SearchFilter
from localmed.domain.errors import UnknownName
from localmed.presentation.answer import headline, searched
from localmed.site import lookups
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.ask import section_values
from localmed.web.visits import Asking, Visit

router = APIRouter()
TYPED = 4_000  # characters of what is searched for
SECTIONS = 10  # shown
LISTED = 300  # documents of a collection; literature has many thousands, and is searched


@router.get("/search")
def search_form(visit: Asking) -> Response:
    """The form to search."""
    return _search_page(visit, "", "", None)


@router.post("/search")
def search(
    visit: Asking,
    question: Annotated[str, Form()] = "",
    collection: Annotated[str, Form()] = "",
    left_out: Annotated[tuple[str, ...], Form()] = (),
) -> Response:
    """The sections on ``question``, without the readings in ``left_out``."""
    text = clean(question).strip()[:TYPED]
    filters = SearchFilter((collection,) if collection else ())
    answer = visit.session.search(text, filters, SECTIONS, left_out) if text else None
    return _search_page(visit, text, collection, answer)


def _search_page(visit: Visit, text: str, collection: str, answer: Answer | None) -> Response:
    names = sorted(lookups.collection_names(visit.session) - visit.session.hidden())
    if not names and not lookups.collection_names(visit.session):
        return pages.page(visit, "no_library.html")
    values: dict[str, Any] = {"asked_text": text, "collection": collection, "collections": names, "ended": []}
    if answer:
        lines = (headline(answer, visit.language), searched(answer, visit.language), *pages.lines(answer.notes, visit))
        values |= {"ended": [*filter(None, lines)], **section_values(visit, answer)}
    return pages.page(visit, "search.html", **values)


@router.get("/documents")
def contents(visit: Asking) -> Response:
    """What the library has: its documents in use that the reader may read, by collection."""
    with visit.session.answering() as workspace:
        collections = workspace.library.catalogue.collections()
        listed = [(it, sorted(lookups.in_use(workspace, it.name), key=attrgetter("title"))) for it in collections]
    shown = [(it, documents[:LISTED], max(0, len(documents) - LISTED)) for it, documents in listed if documents]
    withdrawn = [line for _, line, _ in lookups.withdrawn(visit.session)] if collections else []
    return pages.page(visit, "contents.html", contents=shown, withdrawn=withdrawn)


@router.get("/concepts")
def concept_form(visit: Asking) -> Response:
    """The form to look a term up."""
    return pages.page(visit, "concept.html", term="", card=None, error=None)


@router.post("/concepts")
def concept(visit: Asking, term: Annotated[str, Form()] = "", question: Annotated[str, Form()] = "") -> Response:
    """What the concept graph contains on ``term``."""
    text = clean(term).strip()[:TYPED]
    try:
        card = visit.session.concept(text, clean(question)[:TYPED]) if text else None
    except UnknownName as error:
        return pages.page(visit, "concept.html", 404, term=text, card=None, error=error.full_message)
    return pages.page(visit, "concept.html", term=text, card=card, error=None)
