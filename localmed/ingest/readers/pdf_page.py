"""One PDF page as pieces and tables, and what is wrong with it.

Rules: a page whose text mostly runs upwards or downwards (a table in landscape on a portrait page) is turned before it
is read; ``back`` takes its boxes to the page as displayed. A page over the bound on characters is cut in the order in
which it was printed. A page that MuPDF cannot read costs that page, not the file.

Not covered: what recurs on many pages (``pdf_furniture.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localmed.domain import Box
from localmed.ingest.readers import pdf_grid
from localmed.ingest.readers.pdf_grid import Grid
from localmed.ingest.readers.pdf_text import Piece, page_pieces, unreadable_share

GARBLED = 0.3  # share of unreadable characters at which a page cannot be quoted
DOUBTFUL = 0.03  # share worth telling the librarian; a line of unmapped symbols stays under it
FEW = 30  # characters; a scan's stamp or caption
FURNITURE = 600  # characters that headers and footers may hold; a page with more has text of its own
SCAN_COVERS = 0.5  # of the page
OUTLINED_PATHS = 200  # drawn paths; a page of text drawn as outlines has thousands, an empty form a few dozen


@dataclass(frozen=True, slots=True)
class Page:
    """What was read from one page. ``flaw`` is what a librarian must know of it, "" if nothing."""

    number: int
    height: float
    pieces: tuple[Piece, ...] = ()
    grids: tuple[Grid, ...] = ()
    flaw: str = ""
    back: Any = None
    blank: bool = False  # nothing is printed on it, so an empty text is right
    imaged: bool = False  # an image covers most of it

    @property
    def characters(self) -> int:
        """How many characters it holds."""
        return sum(len(piece.text) for piece in self.pieces)


def read_page(document: Any, index: int, bound: int) -> Page:
    """Page ``index`` (0-based) of ``document``, at most ``bound`` characters of it."""
    try:
        page = document[index]
        return _read(page, index + 1, bound)
    except Exception:  # a damaged page raises whatever MuPDF met; its message may hold text of the page
        return Page(index + 1, 0.0, flaw="is damaged and was left out")


def _read(page: Any, number: int, bound: int) -> Page:
    rotation = page.rotation_matrix
    before = page.rotation
    pieces, grids, flaw = _content(page)
    turn = _turn(pieces)
    if turn:
        page.set_rotation((before + turn) % 360)
        pieces, grids, flaw = _content(page)
    back = page.derotation_matrix * rotation if turn else None
    height = float(page.rect.height)
    if unreadable_share([piece.text for piece in pieces]) > GARBLED:
        return Page(number, height, flaw="has text that cannot be read (a font without a character map), needs OCR")
    kept, cut = _cut(pieces, bound)
    blank, imaged = _surface(page) if sum(len(piece.text) for piece in kept) < FURNITURE else (False, False)
    flaw = f"was cut after {bound:,} characters" if cut else flaw or _doubt(kept)
    return Page(number, height, tuple(kept), tuple(grids), flaw, back, blank, imaged)


def _doubt(pieces: Sequence[Piece]) -> str:
    share = unreadable_share([piece.text for piece in pieces])
    return f"has {share:.0%} characters that cannot be read" if share > DOUBTFUL else ""


def _content(page: Any) -> tuple[list[Piece], list[Grid], str]:
    """The pieces of ``page``, those inside tables cut at the cells' borders, and the tables."""
    grids, flaw = _grids(page)
    pieces = page_pieces(page, pdf_grid.cell_lookup(grids) if grids else None)
    kept = pdf_grid.renumbered([grid for grid in grids if pdf_grid.reads_as_table(grid, pieces)])
    if len(kept) < len(grids):
        pieces = page_pieces(page, pdf_grid.cell_lookup(kept) if kept else None)
    return pieces, kept, flaw


def _grids(page: Any) -> tuple[list[Grid], str]:
    try:
        return (pdf_grid.find(page) if pdf_grid.worth_searching(page) else []), ""
    except Exception:  # the search fails on odd drawings in many ways; the text is still there to be read
        return [], "has tables that could not be told apart; they are read as text"


def _turn(pieces: Sequence[Piece]) -> int:
    turns: Counter[int] = Counter()
    for piece in pieces:
        turns[piece.turn] += len(piece.text)
    return turns.most_common(1)[0][0] if turns else 0


def _cut(pieces: Sequence[Piece], bound: int) -> tuple[list[Piece], bool]:
    kept: list[Piece] = []
    total = 0
    for piece in pieces:
        total += len(piece.text)
        if total > bound:
            return kept, True
        kept.append(piece)
    return kept, False


def _surface(page: Any) -> tuple[bool, bool]:
    """Whether nothing is printed on ``page``, and whether images cover most of it."""
    images = page.get_image_info()
    area = abs(page.rect) or 1.0
    covered = sum(abs(page.rect & image["bbox"]) for image in images)
    return not images and len(page.get_cdrawings()) < OUTLINED_PATHS, covered > SCAN_COVERS * area


def placed_back(box: Box, back: Any) -> Box:
    """``box`` of a page that was turned for reading, on the page as displayed."""
    corners = [
        (x * back.a + y * back.c + back.e, x * back.b + y * back.d + back.f)
        for x, y in ((box.x0, box.y0), (box.x1, box.y1))
    ]
    (ax, ay), (bx, by) = corners
    return Box(box.page, *(round(value, 1) for value in (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))))
