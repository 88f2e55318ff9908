"""Sources of an answer or a search: the page of the source with the passage marked, and its text.

The same page is shown by itself or, with ``part``, in the pane beside an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import FileResponse, Response

from localmed.domain import Answer, Evidence, Governance, Passage, Status
from localmed.domain.errors import UnknownName
from localmed.messages import LANGUAGES
from localmed.people import history
from localmed.presentation import finding
from localmed.presentation.sources import responsible, source_page
from localmed.site import lookups, page_images, stops
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.protection import DOCUMENT_POLICY
from localmed.web.visits import Asking, Visit

router = APIRouter()
Typed = Annotated[str, Form()]
Part = Annotated[int, Form()]
ZOOMS = (0, 1, 2, 3)  # the whole width of the page; its text as large as can be read; half as large again a step
READABLE = 1
TYPED = 200  # characters of what is looked for in a document
PLACES = 50  # shown of those that were found
AROUND = 60  # characters shown on each side of what was found
OFFICE = "application/vnd.openxmlformats-officedocument"
ORIGINALS = {  # files of one document, by the reader's name; what else holds many, or is text that is shown anyway
    "pdf": "application/pdf",
    "docx": f"{OFFICE}.wordprocessingml.document",
    "pptx": f"{OFFICE}.presentationml.presentation",
    "xlsx": f"{OFFICE}.spreadsheetml.sheet",
    "epub": "application/epub+zip",
}
ORIGINAL_POLICY = "default-src 'none'; frame-ancestors 'none'; object-src 'self'"  # a sandbox has no PDF viewer
IMAGE_SECONDS = 300  # that a browser may show an image again; it is gone with the login (Clear-Site-Data)


ANSWER, LIBRARY = "/answers/{answer_id}/sources/{marker}", "/passages/{passage_id}"  # where a source stands


def kept_answer(visit: Visit, answer_id: str) -> Answer:
    """An answer that was kept for the visitor, or reported to them."""
    return history.kept(visit.session, answer_id, also_reported=True).answer


def cited_source(visit: Visit, answer_id: str, marker: str) -> Evidence:
    """A source of a kept answer, as it was cited."""
    for evidence in kept_answer(visit, answer_id).evidence:
        if evidence.marker == marker:
            stops.require_running(visit.session, evidence.passage.collection)
            lookups.require_in_use(visit.session, evidence)
            return visit.session.standing((evidence,))[0]
    raise UnknownName("kept.no_source", sources=())


def source_of(visit: Asking, request: Request) -> Evidence:
    """The source in the address, of a kept answer or of the library."""
    named = request.path_params
    if "passage_id" in named:
        return lookups.evidence_of(visit.session, named["passage_id"])
    return cited_source(visit, named["answer_id"], named["marker"])


def answer_of(visit: Asking, request: Request) -> Answer | None:
    """The kept answer in the address; None for a source of the library."""
    answer_id = request.path_params.get("answer_id")
    return kept_answer(visit, answer_id) if answer_id else None


def base_of(request: Request) -> str:
    """The address of the source."""
    route = LIBRARY if "passage_id" in request.path_params else ANSWER
    return route.format(**request.path_params)


Source = Annotated[Evidence, Depends(source_of)]
Of = Annotated[Answer | None, Depends(answer_of)]
Base = Annotated[str, Depends(base_of)]


@router.get(ANSWER)
@router.get(LIBRARY)
def show(
    visit: Asking,
    source: Source,
    base: Base,
    answer: Of,
    start: int = 0,
    end: int = 0,
    page: int = 0,
    zoom: int = READABLE,
    part: int = 0,
) -> Response:
    """A source on its page."""
    values = source_values(visit, source, base, (start, end), page, zoom, part == 1, answer)
    return _page(visit, part, values | {"back": _back(visit, base)})


def _back(visit: Visit, base: str) -> str:
    """The page with the sections of a source: the answer of the visitor, or what somebody reported to them."""
    path, _, _ = base.partition("/sources/")
    if path == base:
        return ""
    with suppress(UnknownName):
        history.kept(visit.session, path.rpartition("/")[2])
        return path
    return f"/safety/reports/{path.rpartition('/')[2]}"


def _page(visit: Visit, part: int, values: dict[str, Any]) -> Response:
    return pages.page(visit, "source_body.html" if part else "source.html", **values)


def _span(evidence: Evidence, span: tuple[int, int]) -> tuple[int, int] | None:
    start, end = span
    return (start, end) if 0 <= start < end <= len(evidence.passage.text) else None


def source_values(
    visit: Visit,
    evidence: Evidence,
    base: str,
    span: tuple[int, int] = (0, 0),
    page: int = 0,
    zoom: int = READABLE,
    beside: bool = True,
    answer: Answer | None = None,
) -> dict[str, Any]:
    """Values of ``source_body.html``: the page of ``evidence``, ``beside`` its section or by itself.

    A source without pages is ``read`` as text, in parts. The marks of ``answer`` in the section at ``span`` are shown.
    """
    marked, passage = _span(evidence, span), evidence.passage
    marks = _marks(evidence, marked, answer) if marked else []
    document = lookups.documents_of(visit.session, [passage.document_id]).get(passage.document_id)
    last, read = document.pages if document else 0, not passage.spans
    own: tuple[int, ...] = ()
    boxes = passage.boxes(*marked) if marked and not marks else ()
    texts = tuple(dict.fromkeys((passage, *(one for one, _, _ in marks))))
    if read:
        parts = finding.parts(_document_of(visit, passage))
        own, last = tuple(number for number, part in enumerate(parts, 1) if passage in part), len(parts)
        page = min(max(page, 0), last) or own[0]
        texts = parts[page - 1]
    shown = source_page(evidence, visit.language, min(max(page, 0), last or page), marked, last, own)
    known = responsible(document.governance if document else Governance(), shown.warnings, visit.language)
    return {
        "source": replace(shown, details=(*shown.details, *known)),
        "headed": finding.under_headings(texts, marks, visit.language),
        "blocks": finding.blocks,
        "read": read,
        "spoken": passage.language if passage.language in LANGUAGES else visit.language,
        "base": base,
        "marked": sorted({page for one, *place in marks for page in one.pages_of(*place)}),
        "begins": passage.id if marked and not marks else "",  # a section without marks is looked for as well
        "top": next((box.y0 for box in boxes), 0.0),
        "query": f"start={marked[0]}&end={marked[1]}" if marked else "start=0",
        "zoom": zoom if zoom in ZOOMS else READABLE,
        "zooms": ZOOMS,
        "document_id": passage.document_id,
        "withdrawn": evidence.status is Status.WITHDRAWN,
        "newer": lookups.newer_edition(visit.session, passage.document_id)
        if evidence.status is Status.SUPERSEDED
        else None,
        "original": evidence.media_type in ORIGINALS,
        "beside": beside,
        "sought": "",
        "places": (),
        "more": 0,
    }


def _marks(evidence: Evidence, span: tuple[int, int], answer: Answer | None) -> list[finding.Mark]:
    if answer is None:
        return [(evidence.passage, *span)]
    known = answer.by_marker
    of_section = answer.marks_of(evidence.marker, *span)
    return [(known[name].passage, start, end) for name, start, end in of_section if name in known]


def _document_of(visit: Visit, passage: Passage) -> Sequence[Passage]:
    """The passages of the document of ``passage``; it alone if the library has another version now."""
    with suppress(UnknownName):
        stored = lookups.document_details(visit.session, passage.document_id).passages
        if passage in stored:
            return stored
    return (passage,)


@router.get("/documents/{document_id}")
def document(visit: Asking, document_id: str) -> Response:
    """A document from its first page."""
    return pages.redirect(f"/passages/{lookups.first_passage(visit.session, document_id).id}")


@router.post(ANSWER + "/find")
@router.post(LIBRARY + "/find")
def find(visit: Asking, evidence: Source, base: Base, words: Typed = "", page: Part = 0, part: Part = 0) -> Response:
    """The places of ``words`` in the document, above the source's page."""
    sought = clean(words).strip()[:TYPED]
    places = lookups.places_in(visit.session, evidence.passage.document_id, sought) if sought else []
    values = source_values(visit, evidence, base, page=page, beside=part == 1)
    values |= {"sought": sought, "places": [_place(*one) for one in places[:PLACES]]}
    values["more"] = len(places) - len(values["places"])
    return _page(visit, part, values)


def _place(passage: Passage, start: int, end: int) -> dict[str, Any]:
    """A place: its address, its page and the words around it."""
    text = passage.text
    return {
        "path": f"/passages/{passage.id}?start={start}&end={end}",
        "page": next((box.page for box in passage.boxes(start, end)), passage.page),
        "before": text[max(0, start - AROUND) : start],
        "found": text[start:end],
        "after": text[end : end + AROUND],
    }


@router.get(ANSWER + "/original")
@router.get(LIBRARY + "/original")
def original(visit: Asking, evidence: Source) -> Response:
    """The original file of one document; a PDF opens in the browser, others are downloaded."""
    kind = ORIGINALS.get(evidence.media_type)
    if kind is None:
        raise UnknownName("kept.no_source", sources=())
    path = lookups.original_of(visit.session, evidence)
    shown = "inline" if evidence.media_type == "pdf" else "attachment"
    headers = {"content-security-policy": ORIGINAL_POLICY, "cache-control": "no-store"}
    name = evidence.source.rpartition("/")[2]
    return FileResponse(path, media_type=kind, filename=name, content_disposition_type=shown, headers=headers)


@router.get(ANSWER + "/image")
@router.get(LIBRARY + "/image")
def image(
    visit: Asking, evidence: Source, answer: Of, start: int = 0, end: int = 0, page: int = 0, cropped: bool = False
) -> Response:
    """The page of a source as an image (PNG), with ``start:end`` and the marks that belong to it.

    ``cropped``: only the part around the first marks.
    """
    span = _span(evidence, (start, end))
    others = page_images.other_marks(answer, evidence, span) if answer and span else ()
    if answer and span and not answer.marks_of(evidence.marker, *span):  # it opens a section without marks
        page, span = page or next((box.page for box in evidence.passage.boxes(*span)), 0), None
    drawn = page_images.page_image(visit.session, evidence, max(page, 0), span, others, cropped)
    headers = {"content-security-policy": DOCUMENT_POLICY, "cache-control": f"private, max-age={IMAGE_SECONDS}"}
    return Response(drawn, media_type="image/png", headers=headers)
