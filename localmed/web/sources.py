"""Sources: the page that a sentence came from, the passage marked, its text beside it; of an answer or of a search.

The same page is shown whole or, with ``part``, as the pane beside an answer.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from localmed.domain import Evidence
from localmed.errors import UnknownName
from localmed.operations import history, lookups, page_images
from localmed.presentation.source_page import source_page
from localmed.web import pages
from localmed.web.protection import DOCUMENT_POLICY
from localmed.web.visits import Asking, Visit

router = APIRouter()
ZOOMS = (1, 2, 3)  # times the width of the pane, half a step each
IMAGE_SECONDS = 300  # that a browser may show an image again; it is gone with the login (Clear-Site-Data)


@router.get("/answers/{answer_id}/sources/{marker}")
def of_answer(
    visit: Asking,
    answer_id: str,
    marker: str,
    start: int = 0,
    end: int = 0,
    page: int = 0,
    zoom: int = 1,
    part: int = 0,
) -> Response:
    """A source of a kept answer, as it was cited."""
    base = f"/answers/{answer_id}/sources/{marker}"
    return _shown(visit, _cited(visit, answer_id, marker), base, (start, end), page, zoom, part)


@router.get("/answers/{answer_id}/sources/{marker}/image")
def image_of_answer(
    visit: Asking, answer_id: str, marker: str, start: int = 0, end: int = 0, page: int = 0
) -> Response:
    """Its page."""
    return _image(visit, _cited(visit, answer_id, marker), (start, end), page)


@router.get("/passages/{passage_id}")
def of_library(
    visit: Asking, passage_id: str, start: int = 0, end: int = 0, page: int = 0, zoom: int = 1, part: int = 0
) -> Response:
    """A passage of the library."""
    evidence = lookups.evidence_of(visit.session, passage_id)
    return _shown(visit, evidence, f"/passages/{passage_id}", (start, end), page, zoom, part)


@router.get("/passages/{passage_id}/image")
def image_of_library(visit: Asking, passage_id: str, start: int = 0, end: int = 0, page: int = 0) -> Response:
    """Its page."""
    return _image(visit, lookups.evidence_of(visit.session, passage_id), (start, end), page)


def _cited(visit: Visit, answer_id: str, marker: str) -> Evidence:
    answer = history.kept(visit.session, answer_id).answer
    for evidence in answer.evidence:
        if evidence.marker == marker:
            return visit.session.standing(evidence)
    raise UnknownName("kept.no_source", sources=())


def _span(evidence: Evidence, span: tuple[int, int]) -> tuple[int, int] | None:
    start, end = span
    return (start, end) if 0 <= start < end <= len(evidence.passage.text) else None


def _shown(
    visit: Visit, evidence: Evidence, base: str, span: tuple[int, int], page: int, zoom: int, part: int
) -> Response:
    marked = _span(evidence, span)
    last = lookups.pages_of(visit.session, evidence)
    shown = source_page(evidence, visit.language, min(max(page, 0), last or page), marked, last)
    template = "source_body.html" if part else "source.html"
    query = f"start={marked[0]}&end={marked[1]}" if marked else "start=0"
    chosen = zoom if zoom in ZOOMS else ZOOMS[0]
    return pages.page(visit, template, source=shown, base=base, query=query, zoom=chosen, zooms=ZOOMS)


def _image(visit: Visit, evidence: Evidence, span: tuple[int, int], page: int) -> Response:
    image = page_images.page_image(visit.session, evidence, max(page, 0), _span(evidence, span))
    headers = {"content-security-policy": DOCUMENT_POLICY, "cache-control": f"private, max-age={IMAGE_SECONDS}"}
    return Response(image, media_type="image/png", headers=headers)
