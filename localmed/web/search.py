"""Search without an answer, and the concept graph."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import SearchFilter
from localmed.errors import UnknownName
from localmed.language import clean
from localmed.operations import lookups
from localmed.web import pages
from localmed.web.visits import Asking, Visit

router = APIRouter()
TYPED = 4_000  # characters of what is searched for
RESULTS = 20


@router.get("/search")
def search_form(visit: Asking) -> Response:
    """The form to search."""
    return _search_page(visit, "", "", None)


@router.post("/search")
def search(visit: Asking, question: Annotated[str, Form()] = "", collection: Annotated[str, Form()] = "") -> Response:
    """The passages nearest to ``question``."""
    text = clean(question).strip()[:TYPED]
    filters = SearchFilter((collection,) if collection else ())
    return _search_page(
        visit, text, collection, visit.session.search(text, filters, RESULTS, reranked=False) if text else None
    )


def _search_page(visit: Visit, text: str, collection: str, result: object) -> Response:
    names = sorted(lookups.collection_names(visit.session) - visit.session.hidden())
    if not names:
        return pages.page(visit, "no_library.html")
    return pages.page(visit, "search.html", asked_text=text, collection=collection, collections=names, found=result)


@router.get("/concepts")
def concept_form(visit: Asking) -> Response:
    """The form to look a term up."""
    return pages.page(visit, "concept.html", term="", card=None, error=None)


@router.post("/concepts")
def concept(visit: Asking, term: Annotated[str, Form()] = "", question: Annotated[str, Form()] = "") -> Response:
    """What the concept graph says of ``term``."""
    text = clean(term).strip()[:TYPED]
    try:
        card = visit.session.concept(text, clean(question)[:TYPED]) if text else None
    except UnknownName as error:
        return pages.page(visit, "concept.html", 404, term=text, card=None, error=error.full_message)
    return pages.page(visit, "concept.html", term=text, card=card, error=None)
