"""Finds the tables of a PDF page: their cells, with the rows and columns that each cell covers.

Rules: ruled tables are searched for only if an upright rule stands between the ends of the level ones (the search costs
20 to 200 ms a page). A candidate needs two filled rows and columns; a single cell with nearly all the text is a frame
around a layout. Every character in a table belongs to one cell, the nearest if borders leave a gap.

A level rule separates the text above from the text below if it is wider than a column, belongs to no table, and touches
no text (an underline does).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from localmed.ingest.ocr.child import Frame
from localmed.ingest.readers.pdf.layout import Placed
from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import Cell, CellOf, Piece, display_frame

SHORTEST_RULE = 12.0  # points; below it is an underline of a word or a tick box
THIN = 3.0  # points; a filled rectangle thinner than this is a rule
SAME_EDGE = 3.0  # points between two strokes of one border
BACKGROUND = 0.5  # of the page: a larger filled rectangle is the colour of the paper, whose edges are no rules
MAX_PATHS = 5000  # drawn paths on a page; plots and maps have more, and the search is quadratic in them
FILLED_SHARE = 0.2  # of its cells; a checklist with an empty column for notes has half
FRAME_SHARE = 0.75  # of the text in one cell: a frame, not a table
FRAME_CHARACTERS = 600

WIDE = 0.6  # of the width of the page's text


@dataclass(frozen=True, slots=True)
class Grid(Placed):
    """A table. ``edges`` are the x positions of its column borders, ``height`` is how many rows it has."""

    edges: tuple[float, ...]
    height: int
    cells: tuple[Cell, ...]
    predicted: bool = False  # by the layout model, so that its edges differ a little from page to page

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.edges) - 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The level and upright lines of a page, including thin rectangles and the edges of others."""

    across: tuple[Placed, ...] = ()
    down: tuple[Placed, ...] = ()
    too_many: bool = False


def find_rules(page: Any) -> Rules:
    """Find the rules of ``page`` as displayed; none for plots and maps."""
    paths = page.get_cdrawings()
    if len(paths) > MAX_PATHS:
        return Rules(too_many=True)
    across: list[Placed] = []
    down: list[Placed] = []
    for path in paths:
        for item in () if _is_background(path, page) else path["items"]:
            if item[0] not in ("l", "re"):
                continue
            x0, y0, x1, y1 = display_frame((*item[1], *item[2]) if item[0] == "l" else item[1], page.rotation_matrix)
            if x1 - x0 >= SHORTEST_RULE:
                levels = [(y0, y1)] if y1 - y0 < THIN else [(y0, y0), (y1, y1)]
                across += [Placed(x0, top, x1, bottom) for top, bottom in levels]
            if y1 - y0 >= SHORTEST_RULE:
                uprights = [(x0, x1)] if x1 - x0 < THIN else [(x0, x0), (x1, x1)]
                down += [Placed(left, y0, right, y1) for left, right in uprights]
    return Rules(tuple(across), tuple(down))


def _is_background(path: Any, page: Any) -> bool:
    """Whether ``path`` fills most of ``page``: as a frame it would join all tables into one."""
    x0, y0, x1, y1 = path["rect"]
    filled = path["type"] == "f" and len(path["items"]) == 1
    return filled and bool((x1 - x0) * (y1 - y0) > BACKGROUND * page.rect.width * page.rect.height)


def find_ruled(page: Any) -> list[Grid]:
    """Find table candidates with PyMuPDF, not yet checked against their text."""
    # PyMuPDF turns a rotated page back before the search and reads its drawings again
    paths = None if page.rotation else [path for path in page.get_drawings() if not _is_background(path, page)]
    found = (_make_grid([cell for cell in table.cells if cell]) for table in page.find_tables(paths=paths).tables)
    return [grid for grid in found if grid]


def _make_grid(boxes: list[Frame]) -> Grid | None:
    across = _cluster([x for box in boxes for x in (box[0], box[2])])
    down = _cluster([y for box in boxes for y in (box[1], box[3])])
    if len(across) < 3 or len(down) < 3:
        return None
    unique = sorted(set(boxes), key=lambda box: (box[1], box[0]))
    cells = [Cell(*box, _bands_between(down, box[1], box[3]), _bands_between(across, box[0], box[2])) for box in unique]
    kept = tuple(cell for cell in cells if cell.rows[0] < cell.rows[1] and cell.columns[0] < cell.columns[1])
    return Grid(across[0], down[0], across[-1], down[-1], tuple(across), len(down) - 1, kept)


def _bands_between(edges: Sequence[float], start: float, end: float) -> tuple[int, int]:
    inside = [index for index, (low, high) in enumerate(itertools.pairwise(edges)) if start <= (low + high) / 2 <= end]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _cluster(values: Sequence[float]) -> list[float]:
    edges: list[float] = []
    for value in sorted(values):
        if not edges or value - edges[-1] > SAME_EDGE:
            edges.append(value)
    return edges


def cell_lookup(grids: Sequence[Grid]) -> CellOf:
    """A function from a point of the page to the table cell there, or None outside tables."""

    def look(x: float, y: float) -> Cell | None:
        for grid in grids:
            if grid.x0 <= x <= grid.x1 and grid.y0 <= y <= grid.y1:
                return min(
                    grid.cells,
                    key=lambda cell: max(cell.x0 - x, 0.0, x - cell.x1) + max(cell.y0 - y, 0.0, y - cell.y1),
                )
        return None

    return look


def keep_tables(
    grids: Sequence[Grid], pieces_in: Callable[[Sequence[Grid]], list[Piece]]
) -> tuple[list[Grid], list[Piece]]:
    """The ``grids`` whose text is spread as in a table, and the page's pieces cut at their cells by ``pieces_in``."""
    pieces = pieces_in(grids)
    kept = [grid for grid in grids if _reads_as_table(grid, pieces)]
    return kept, pieces if len(kept) == len(grids) else pieces_in(kept)


def _reads_as_table(grid: Grid, pieces: Sequence[Piece]) -> bool:
    filled: Counter[Any] = Counter()
    for piece in pieces_of(grid, pieces):
        filled[piece.cell] += len(piece.text)
    if not filled or len(filled) < FILLED_SHARE * len(grid.cells):
        return False
    total = filled.total()
    framed = total > FRAME_CHARACTERS and max(filled.values()) > FRAME_SHARE * total
    return len({cell.rows[0] for cell in filled}) > 1 and len({cell.columns[0] for cell in filled}) > 1 and not framed


def pieces_of(grid: Grid, pieces: Sequence[Piece]) -> list[Piece]:
    """The ``pieces`` in cells of ``grid``."""
    cells = set(grid.cells)
    return [piece for piece in pieces if piece.cell in cells]


def find_separators(across: Sequence[Placed], pieces: Sequence[Piece], grids: Sequence[Grid]) -> tuple[Placed, ...]:
    """The level rules ``across`` that divide a page of ``pieces`` and ``grids``."""
    upright = [piece for piece in pieces if piece.upright]
    if not upright:
        return ()
    width = max(piece.x1 for piece in upright) - min(piece.x0 for piece in upright)
    return tuple(
        rule
        for rule in across
        if rule.x1 - rule.x0 >= WIDE * width
        and not any(
            piece.y0 < rule.y1 and rule.y0 < piece.y1 and piece.x0 < rule.x1 and rule.x0 < piece.x1 for piece in upright
        )
        and not any(grid.y0 - SAME_EDGE <= rule.y0 <= grid.y1 + SAME_EDGE for grid in grids)
    )


def find_drawn(page: Any, drawn: Rules) -> list[Grid] | None:
    """Find the ruled tables of ``page`` if ``drawn`` may form any; None if the search fails, as on odd drawings."""
    left = min((level.x0 for level in drawn.across), default=0.0) + SHORTEST_RULE
    right = max((level.x1 for level in drawn.across), default=0.0) - SHORTEST_RULE
    if not any(left < rule.x0 < right for rule in drawn.down):
        return []
    try:
        return find_ruled(page)
    except Exception:
        return None


# --- tables without full borders, found by the layout model -----------------------------------------------------------

# The model (PyMuPDF Layout, weights in its wheel, onnxruntime on the CPU) takes ~0.3 s a page, so it runs only on pages
# with lines side by side. It predicts the edges of rows and columns, not merged cells: a line of text across an edge
# joins the cells on both sides. Ruled tables take precedence, because drawn borders are exact.

SIDE_BY_SIDE = 3  # least rows of two or more pieces
OVER = 2.0  # points by which a line of text extends across a column's edge on both sides
ASTRAY = 12.0  # points, one character: largest error of a predicted edge
PART = 0.6  # of a predicted table's area: a ruled table with less of it is only a part of that table
OVERLAP = 0.3  # of a predicted table: a larger share inside a ruled table is the same table


def with_predicted(page: Any, pieces: Sequence[Piece], ruled: Sequence[Grid]) -> list[Grid]:
    """The ``ruled`` tables of ``page``, and further ones from the model.

    A predicted table replaces ruled parts of it (shaded rows, a boxed header).
    """
    grids = list(ruled)
    outside = [piece for piece in pieces if piece.upright and piece.cell is None]
    if page.rotation or sum(len(row) > 1 for row in printed_rows(outside)) < SIDE_BY_SIDE:
        return grids
    for box, across, down in _regions(page):
        grids = [
            grid
            for grid in grids
            if grid.predicted or grid.area >= PART * box.area or grid.shared(box) <= (1 - OVERLAP) * grid.area
        ]
        if not any(box.shared(grid) > OVERLAP * box.area for grid in grids):
            inside = [piece for piece in pieces if piece.upright and box.contains(piece)]
            grids.append(_predicted_grid(box, across, down, inside))
    return grids


def _regions(page: Any) -> Iterator[tuple[Placed, list[float], list[float]]]:
    """The tables that the model predicts: place, and the edges of columns and of rows."""
    for region in _model()(page, return_raw=True):
        lines = region.get("table_grid") if region["class_name"] == "table" else None
        if lines is None:
            continue
        x0, y0, x1, y1 = map(float, region["group_bbox"])
        across = [x0, *(x0 + float(line) for line in lines.v_lines), x1]
        down = [y0, *(y0 + float(line) for line in lines.h_lines), y1]
        if len(across) > 2 and len(down) > 2:
            yield Placed(x0, y0, x1, y1), across, down


@cache
def _model() -> Any:
    """The layout model. Its import hooks it into PyMuPDF's own table search, so it is unhooked again."""
    import pymupdf
    import pymupdf.layout  # loads onnxruntime

    model = pymupdf._get_layout
    pymupdf._get_layout = None
    return model


def _predicted_grid(box: Placed, across: Sequence[float], down: Sequence[float], pieces: Sequence[Piece]) -> Grid:
    cells: list[Cell] = []
    bands = itertools.pairwise(itertools.pairwise(across))
    inner = [_move_to_white(left, edge, right, pieces) for (left, edge), (_, right) in bands]
    across = [across[0], *inner, across[-1]]
    for row, (top, bottom) in enumerate(itertools.pairwise(down)):
        texts = [piece for piece in pieces if top <= piece.middle < bottom]
        crossed = {place for place, edge in enumerate(across[1:-1], 1) if _crossing(edge, texts)}
        starts = [place for place in range(len(across) - 1) if place not in crossed]
        cells.extend(
            Cell(across[start], top, across[end], bottom, (row, row + 1), (start, end))
            for start, end in itertools.pairwise([*starts, len(across) - 1])
        )
    return Grid(*box.frame, tuple(across), len(down) - 1, tuple(cells), predicted=True)


def _move_to_white(left: float, edge: float, right: float, pieces: Sequence[Piece]) -> float:
    """``edge``, or a nearby end of a line that fewer lines cross: a header may extend across the predicted edge."""
    low, high = max(edge - ASTRAY, (left + edge) / 2), min(edge + ASTRAY, (edge + right) / 2)
    ends = (end for piece in pieces for end in (piece.x0, piece.x1) if low < end < high)
    return min((edge, *ends), key=lambda place: (_crossing(place, pieces), abs(place - edge)))


def _crossing(edge: float, pieces: Sequence[Piece]) -> int:
    return sum(piece.x0 + OVER < edge < piece.x1 - OVER for piece in pieces)
