"""Pages of sources as PNG with the cited characters marked; the last ones stay in memory.

The page that an answer cites first is drawn ahead; others when opened, which takes a tenth of a second
(``ingest/draw.py``).
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Answer, Box, Evidence
from localmed.domain.errors import LocalmedError
from localmed.site.lookups import require_shown

if TYPE_CHECKING:
    from localmed.site.session import Session

MOST = 200  # images kept; one has some 150 KB
AHEAD = 1  # pages of an answer drawn before anybody opens them: most readers open one or none
Span = tuple[int, int]
_KEPT: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
_DRAWING: dict[tuple[object, ...], threading.Lock] = {}
_LOCK = threading.Lock()


def other_marks(answer: Answer, evidence: Evidence, span: Span) -> tuple[Box, ...]:
    """The boxes of the section that ``span`` of ``evidence`` links to, without those of ``span`` itself."""
    known = answer.by_marker
    marks = [mark for mark in answer.marks_of(evidence.marker, *span) if mark[0] in known]
    own = evidence.passage.boxes(*span)
    boxes = (box for name, start, end in marks for box in known[name].passage.boxes(start, end))
    return tuple(box for box in boxes if box not in own)


def page_image(
    session: Session,
    evidence: Evidence,
    page: int = 0,
    span: Span | None = None,
    others: tuple[Box, ...] = (),
    cropped: bool = False,
) -> bytes:
    """Page ``page`` (0: the cited one) of ``evidence`` as PNG, with ``span`` of its passage and ``others`` marked.

    ``cropped``: of a document with pages, only the part around the first marks.
    Raise ``UnknownName`` for a document that the user may not read, ``InputError`` for one that cannot be drawn.
    """
    with session.workspace() as workspace:
        require_shown(workspace, evidence)
    cited = evidence.passage
    key = (session.data, evidence.file_sha256, cited.id, cited.text, cited.headings, page, span, others, cropped)
    with _LOCK:
        drawing = _DRAWING.setdefault(key, threading.Lock())
    try:
        with drawing:  # a second caller waits for the first
            image = _KEPT.get(key) or _drawn(session, evidence, page, span, others, cropped)
    finally:
        with _LOCK:
            _DRAWING.pop(key, None)
    with _LOCK:
        _KEPT[key] = image
        _KEPT.move_to_end(key)
        while len(_KEPT) > MOST:
            _KEPT.popitem(last=False)
    return image


def _drawn(
    session: Session, evidence: Evidence, page: int, span: Span | None, others: tuple[Box, ...], cropped: bool
) -> bytes:
    from localmed.ingest import draw
    from localmed.library import originals

    cited = evidence.passage
    with tempfile.TemporaryDirectory(prefix="localmed-page-") as folder:
        image = Path(folder, "page.png")
        if cited.spans and (span is None or page or others or cropped):
            own = cited.boxes(*span) if span else ()
            number = page or (own or cited.boxes())[0].page
            boxes = [box for box in (*own, *others) if box.page == number]
            draw.draw_page(originals.whole(session.data, evidence.file_sha256), number, boxes, image, cropped)
        else:
            with session.workspace() as workspace:
                whole = partial(workspace.library.lexical.of_document, cited.document_id)
                draw.draw_evidence(session.data, evidence, image, page or None, span, whole)
        return image.read_bytes()


def draw_ahead(session: Session, answer: Answer) -> None:
    """Draw, in a thread, the pages that ``answer`` cites first or its first section is on."""
    known = answer.by_marker
    links = [(known[marker], (start, end)) for marker, start, end in answer.links[:AHEAD] if marker in known]
    tasks = [
        (piece, span, other_marks(answer, piece, span))
        for piece, span in links
        if piece.passage.spans and answer.marks_of(piece.marker, *span)
    ]

    def draw() -> None:
        for evidence, span, others in tasks:
            with suppress(LocalmedError, OSError):  # shown to the reader who opens the page
                page_image(session, evidence, 0, span, others)

    threading.Thread(target=draw, name="pages", daemon=True).start()
