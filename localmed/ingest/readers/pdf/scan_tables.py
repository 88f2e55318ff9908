"""The tables of a scanned page: its printed rules and what OCR read, set on an empty page and searched as on any.

Rules: what runs through printed lines of text is no rule but strokes of its letters. A line of text belongs to the cell
that its middle stands in.

Not covered: a line of text that the engine read across two cells, cells told apart by shading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pymupdf

from localmed.ingest.ocr.pages import Frame
from localmed.ingest.readers.pdf.grid import (
    Grid,
    Separator,
    cell_lookup,
    find_ruled,
    reads_as_table,
    renumbered,
    rules,
    separators,
    worth_searching,
)
from localmed.ingest.readers.pdf.predicted import with_predicted
from localmed.ingest.readers.pdf.text import Piece, is_cjk

LAPS = 3.0  # points by which a rule is drawn longer: printed ones often stop short of those they meet
THROUGH = 0.3  # of a rule's length within lines of text: it is made of letters
DESCENT = 0.22  # of the height of a line's box, below its base
INSIDE = 0.15  # of the height of a line of text: nearer its edge a rule underlines it or parts it from the next cell

Tables = tuple[tuple[Piece, ...], tuple[Grid, ...], tuple[Separator, ...]]


def with_tables(pieces: Sequence[Piece], printed: Sequence[Frame], width: float, height: float) -> Tables:
    """``pieces`` with their cells, the tables, and the rules that part the page; ``printed`` are straightened rules."""
    drawn = [_extended(*level) for level in map(_level, printed) if not _through(level, pieces)]
    with pymupdf.open() as document:
        page = _page(document, drawn, width, height)
        for piece in pieces:  # the search for borders leaves out cells without text; whole words would widen cells
            page.insert_text(((piece.x0 + piece.x1) / 2, piece.middle), "x", fontsize=1)
        known = rules(page)
        ruled = _tables(_drawn_grids(page) if worth_searching(known) else [], pieces)
        page = _page(document, drawn, width, height)
        for piece in pieces:
            _set(page, piece)
        grids = _tables(with_predicted(page, _in_cells(pieces, ruled), ruled), pieces)
    placed = _in_cells(pieces, grids)
    return tuple(placed), tuple(grids), separators(known.across, placed, grids)


def _page(document: pymupdf.Document, drawn: Sequence[Frame], width: float, height: float) -> pymupdf.Page:
    """A new page with the lines ``drawn``."""
    page = document.new_page(width=max(width, 1.0), height=max(height, 1.0))
    for x0, y0, x1, y1 in drawn:
        page.draw_line((x0, y0), (x1, y1), width=0.5)
    return page


def _set(page: pymupdf.Page, piece: Piece) -> None:
    """Print ``piece`` on ``page`` in its box; not a turned one, which is in no table."""
    if not piece.upright:
        return
    font = "china-s" if any(map(is_cjk, piece.text)) else "helv"
    tall = piece.y1 - piece.y0
    size = min((piece.x1 - piece.x0) / (pymupdf.get_text_length(piece.text, font, 1) or 1.0), tall)
    page.insert_text((piece.x0, piece.y1 - DESCENT * tall), piece.text, fontname=font, fontsize=max(size, 1.0))


def _tables(grids: Sequence[Grid], pieces: Sequence[Piece]) -> list[Grid]:
    """Those of ``grids`` whose text reads as a table, cells numbered through."""
    numbered = renumbered(grids)
    placed = _in_cells(pieces, numbered)
    return renumbered([grid for grid in numbered if reads_as_table(grid, placed)])


def _drawn_grids(page: pymupdf.Page) -> list[Grid]:
    try:
        return find_ruled(page)
    except Exception:  # the search fails on odd drawings in many ways; the text is still there to be read
        return []


def _in_cells(pieces: Sequence[Piece], grids: Sequence[Grid]) -> list[Piece]:
    cell_at = cell_lookup(grids)
    return [replace(piece, cell=cell_at((piece.x0 + piece.x1) / 2, piece.middle)) for piece in pieces]


def _level(rule: Frame) -> Frame:
    """``rule`` exactly level or upright."""
    x0, y0, x1, y1 = rule
    if abs(x1 - x0) > abs(y1 - y0):
        middle = (y0 + y1) / 2
        return min(x0, x1), middle, max(x0, x1), middle
    middle = (x0 + x1) / 2
    return middle, min(y0, y1), middle, max(y0, y1)


def _extended(x0: float, y0: float, x1: float, y1: float) -> Frame:
    return (x0 - LAPS, y0, x1 + LAPS, y1) if y0 == y1 else (x0, y0 - LAPS, x1, y1 + LAPS)


def _through(rule: Frame, pieces: Sequence[Piece]) -> bool:
    x0, y0, x1, y1 = rule
    shared = 0.0
    for piece in pieces:
        margin = INSIDE * (piece.y1 - piece.y0)
        if y0 == y1 and piece.y0 + margin < y0 < piece.y1 - margin:
            shared += max(0.0, min(x1, piece.x1) - max(x0, piece.x0))
        elif x0 == x1 and piece.x0 + margin < x0 < piece.x1 - margin:
            shared += max(0.0, min(y1, piece.y1) - max(y0, piece.y0))
    return shared > THROUGH * max(x1 - x0, y1 - y0)
