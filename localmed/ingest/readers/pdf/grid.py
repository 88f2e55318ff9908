"""Where the ruled tables of a PDF page are: their cells, with the rows and columns that each cell covers.

Rules: tables are looked for only where enough rules cross (the search costs 20 to 200 ms a page), and a find is kept
only if it reads as a table: two filled rows and columns, and no single cell that holds nearly all the text, which is a
frame around a layout. Every character inside a kept table belongs to one cell, the nearest where borders leave a gap.

A level rule separates what stands above from what stands below if it is wider than any one of several columns can be,
belongs to no table, and touches no text, which would make it an underline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import CellOf, Piece, shown_box

SHORTEST_RULE = 12.0  # points; below it is an underline of a word or a tick box
THIN = 3.0  # points; a filled rectangle thinner than this is a rule
SAME_EDGE = 3.0  # points between two strokes of one border
BACKGROUND = 0.5  # of the page: a larger filled rectangle is the colour of the paper, whose edges are no rules
MAX_PATHS = 5000  # drawn paths on a page; plots and maps have more, and the search is quadratic in them
FILLED_SHARE = 0.2  # of its cells; a checklist with an empty column for notes has half
FRAME_SHARE = 0.75  # of the text in one cell: a frame, not a table
FRAME_CHARACTERS = 600

Rectangle = tuple[float, float, float, float]
WIDE = 0.6  # of the width of the page's text


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and what it covers: ``rows`` and ``columns`` are half-open ranges."""

    box: Rectangle
    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Grid:
    """A ruled table. ``edges`` are the x positions of its column borders; ``first`` is the id of its first cell."""

    x0: float
    y0: float
    x1: float
    y1: float
    edges: tuple[float, ...]
    height: int
    cells: tuple[Cell, ...]
    first: int = 0
    size: float = 0.0
    predicted: bool = False  # by the layout model, so that its edges differ a little from page to page

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.edges) - 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The level and upright lines drawn on a page, thin rectangles and the edges of others included."""

    across: tuple[Rectangle, ...] = ()
    down: tuple[Rectangle, ...] = ()
    too_many: bool = False


def rules(page: Any) -> Rules:
    """The rules of ``page`` as displayed; none for plots and maps."""
    paths = page.get_cdrawings()
    if len(paths) > MAX_PATHS:
        return Rules(too_many=True)
    across: list[Rectangle] = []
    down: list[Rectangle] = []
    matrix = page.rotation_matrix
    for path in paths:
        for item in () if _is_background(path, page) else path["items"]:
            _add_rules(item, matrix, across, down)
    return Rules(tuple(across), tuple(down))


def _is_background(path: Any, page: Any) -> bool:
    """Whether ``path`` fills most of ``page``: it would join the tables on it to one, with the page for a frame."""
    x0, y0, x1, y1 = path["rect"]
    filled = path["type"] == "f" and len(path["items"]) == 1
    return filled and bool((x1 - x0) * (y1 - y0) > BACKGROUND * page.rect.width * page.rect.height)


def worth_searching(drawn: Rules) -> bool:
    """Whether enough rules cross for a table with borders between its columns."""
    across, down = drawn.across, drawn.down
    levels = _levels(across)
    inner = [rule[0] for rule in down if _inside(rule, levels)]
    return len(levels) >= 2 and bool(inner)


def _add_rules(item: Sequence[Any], matrix: Any, across: list[Rectangle], down: list[Rectangle]) -> None:
    if item[0] == "l":
        (ax, ay), (bx, by) = item[1], item[2]
        box = shown_box((ax, ay, bx, by), matrix)
    elif item[0] == "re":
        box = shown_box(item[1], matrix)
    else:
        return
    wide, tall = box[2] - box[0], box[3] - box[1]
    if wide >= SHORTEST_RULE:
        across += [box] if tall < THIN else [(box[0], box[1], box[2], box[1]), (box[0], box[3], box[2], box[3])]
    if tall >= SHORTEST_RULE:
        down += [box] if wide < THIN else [(box[0], box[1], box[0], box[3]), (box[2], box[1], box[2], box[3])]


def _levels(across: Sequence[Rectangle]) -> list[Rectangle]:
    """Level rules at one height as one: tables are often drawn cell by cell."""
    levels: list[Rectangle] = []
    for rule in sorted(across, key=lambda one: one[1]):
        if levels and rule[1] - levels[-1][1] <= SAME_EDGE:
            levels[-1] = (min(levels[-1][0], rule[0]), levels[-1][1], max(levels[-1][2], rule[2]), rule[3])
        else:
            levels.append(rule)
    return levels


def _inside(rule: Rectangle, levels: Sequence[Rectangle]) -> bool:
    """Whether an upright rule touches level ones and stands well inside at least two of them."""
    met = [one for one in levels if one[0] + SHORTEST_RULE < rule[0] < one[2] - SHORTEST_RULE]
    return len(met) >= 2 and any(rule[1] - SAME_EDGE <= one[1] <= rule[3] + SAME_EDGE for one in met)


def find_ruled(page: Any) -> list[Grid]:
    """The tables that PyMuPDF sees on ``page``, cells numbered through; not yet judged by their text."""
    grids: list[Grid] = []
    first = 0
    # a turned page PyMuPDF turns back before it looks, and reads its drawings anew
    paths = None if page.rotation else [path for path in page.get_drawings() if not _is_background(path, page)]
    for table in page.find_tables(paths=paths).tables:
        grid = _grid([tuple(cell) for cell in table.cells if cell], first)
        if grid is not None:
            grids.append(grid)
            first += len(grid.cells)
    return grids


def _grid(boxes: list[Rectangle], first: int) -> Grid | None:
    across = _clustered([x for box in boxes for x in (box[0], box[2])])
    down = _clustered([y for box in boxes for y in (box[1], box[3])])
    if len(across) < 3 or len(down) < 3:
        return None
    unique = sorted(set(boxes), key=lambda box: (box[1], box[0]))
    cells = [Cell(box, _range(down, box[1], box[3]), _range(across, box[0], box[2])) for box in unique]
    kept = tuple(cell for cell in cells if cell.rows[0] < cell.rows[1] and cell.columns[0] < cell.columns[1])
    return Grid(across[0], down[0], across[-1], down[-1], tuple(across), len(down) - 1, kept, first)


def _range(edges: Sequence[float], start: float, end: float) -> tuple[int, int]:
    """The bands between ``edges`` whose middle lies between ``start`` and ``end``."""
    inside = [index for index, (low, high) in enumerate(itertools.pairwise(edges)) if start <= (low + high) / 2 <= end]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _clustered(values: Sequence[float]) -> list[float]:
    edges: list[float] = []
    for value in sorted(values):
        if not edges or value - edges[-1] > SAME_EDGE:
            edges.append(value)
    return edges


def renumbered(grids: Sequence[Grid]) -> list[Grid]:
    """``grids`` with their cells numbered through again, after some were left out."""
    numbered: list[Grid] = []
    first = 0
    for grid in grids:
        numbered.append(replace(grid, first=first))
        first += len(grid.cells)
    return numbered


def cell_lookup(grids: Sequence[Grid]) -> CellOf:
    """A function from a point of the page to the id of the table cell there, -1 outside all tables."""

    def look(x: float, y: float) -> int:
        for grid in grids:
            if grid.x0 <= x <= grid.x1 and grid.y0 <= y <= grid.y1:
                distances = [_distance(cell.box, x, y) for cell in grid.cells]
                return grid.first + distances.index(min(distances))
        return -1

    return look


def _distance(box: Rectangle, x: float, y: float) -> float:
    return max(box[0] - x, 0.0, x - box[2]) + max(box[1] - y, 0.0, y - box[3])


def reads_as_table(grid: Grid, pieces: Sequence[Piece]) -> bool:
    """Whether the text of ``grid``'s cells is spread as a table's."""
    lengths = [0] * len(grid.cells)
    for piece in pieces:
        if 0 <= piece.cell - grid.first < len(lengths):
            lengths[piece.cell - grid.first] += len(piece.text)
    filled = [cell for cell, length in zip(grid.cells, lengths, strict=True) if length]
    total = sum(lengths)
    if not filled or len(filled) < FILLED_SHARE * len(grid.cells):
        return False
    framed = total > FRAME_CHARACTERS and max(lengths) > FRAME_SHARE * total
    return len({cell.rows[0] for cell in filled}) > 1 and len({cell.columns[0] for cell in filled}) > 1 and not framed


# --- rules that run over several columns ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Separator:
    """A level rule between parts of a page."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float = 0.0


def separators(across: Sequence[Rectangle], pieces: Sequence[Piece], grids: Sequence[Grid]) -> tuple[Separator, ...]:
    """Those of the level rules ``across`` that part a page of ``pieces`` and ``grids``."""
    upright = [piece for piece in pieces if piece.upright]
    if not upright:
        return ()
    width = max(piece.x1 for piece in upright) - min(piece.x0 for piece in upright)
    wide = [rule for rule in across if rule[2] - rule[0] >= WIDE * width]
    return tuple(Separator(*rule) for rule in wide if not _touches(rule, upright) and not _of_table(rule, grids))


def _touches(rule: Rectangle, pieces: Sequence[Piece]) -> bool:
    return any(
        piece.y0 < rule[3] and rule[1] < piece.y1 and piece.x0 < rule[2] and rule[0] < piece.x1 for piece in pieces
    )


def _of_table(rule: Rectangle, grids: Sequence[Grid]) -> bool:
    return any(grid.y0 - SAME_EDGE <= rule[1] <= grid.y1 + SAME_EDGE for grid in grids)


def drawn_grids(page: Any, drawn: Rules) -> list[Grid] | None:
    """The ruled tables of ``page``, where ``drawn`` may be some; None where the search fails.

    It does on odd drawings, in many ways; the text is still there to be read.
    """
    if not worth_searching(drawn):
        return []
    try:
        return find_ruled(page)
    except Exception:
        return None


# --- tables without rules all round, as the layout model sees them ----------------------------------------------------

# The model (PyMuPDF Layout, weights in its wheel, onnxruntime on the CPU) takes about 0.3 s of a page, so it is asked
# only of pages on which lines stand side by side. It says where a table's rows and columns are parted, not which cells
# are merged: a line of text that runs over a column's edge joins the cells that it runs over. A find is kept where it
# reads as a table and no ruled table stands there: drawn borders are exact.

SIDE_BY_SIDE = 3  # rows of two pieces or more: with fewer there is no table without borders worth the model's time
OVER = 2.0  # points by which a line of text reaches over a column's edge on both sides
PART = 0.6  # of a find: a ruled table that fills less of it is a part of that table
OVERLAP = 0.3  # of a find: as much of it inside a ruled table is that table again


def with_predicted(page: Any, pieces: Sequence[Piece], ruled: Sequence[Grid]) -> list[Grid]:
    """The tables ``ruled`` of ``page`` and those that the model sees besides, cells not numbered.

    A ruled find that is only a part of what the model sees as one table (its shaded rows, a boxed header) gives way.
    """
    outside = [piece for piece in pieces if piece.upright and piece.cell < 0]
    if page.rotation or sum(len(row) > 1 for row in printed_rows(outside)) < SIDE_BY_SIDE:
        return list(ruled)
    grids = list(ruled)
    for box, across, down in _regions(page):
        grids = [grid for grid in grids if not _is_part(grid, box)]
        if not any(_share_inside(box, grid) > OVERLAP for grid in grids):
            inside = [piece for piece in pieces if piece.upright and _is_in(piece, box)]
            grids.append(_seen_grid(across, down, inside))
    return grids


def _regions(page: Any) -> Iterator[tuple[Rectangle, list[float], list[float]]]:
    """Where the model sees tables: box, and the edges of columns and of rows."""
    for region in _model()(page, return_raw=True):
        lines = region.get("table_grid") if region["class_name"] == "table" else None
        if lines is None:
            continue
        x0, y0, x1, y1 = map(float, region["group_bbox"])
        across = [x0, *(x0 + float(line) for line in lines.v_lines), x1]
        down = [y0, *(y0 + float(line) for line in lines.h_lines), y1]
        if len(across) > 2 and len(down) > 2:
            yield (x0, y0, x1, y1), across, down


@cache
def _model() -> Any:
    """The layout model. Importing it hooks it into PyMuPDF, whose own table search then changes: unhooked again."""
    import pymupdf
    import pymupdf.layout  # loads onnxruntime

    model = pymupdf._get_layout
    pymupdf._get_layout = None
    return model


def _is_part(grid: Grid, box: Rectangle) -> bool:
    """Whether ``grid`` lies in ``box`` and fills the smaller part of it."""
    area = (grid.x1 - grid.x0) * (grid.y1 - grid.y0)
    whole = (box[2] - box[0]) * (box[3] - box[1])
    return not grid.predicted and area < PART * whole and _share_inside(box, grid) * whole > (1 - OVERLAP) * area


def _share_inside(box: Rectangle, grid: Grid) -> float:
    wide = min(box[2], grid.x1) - max(box[0], grid.x0)
    tall = min(box[3], grid.y1) - max(box[1], grid.y0)
    return max(wide, 0.0) * max(tall, 0.0) / ((box[2] - box[0]) * (box[3] - box[1]) or 1.0)


def _is_in(piece: Piece, box: Rectangle) -> bool:
    return box[1] <= piece.middle <= box[3] and box[0] <= (piece.x0 + piece.x1) / 2 <= box[2]


def _seen_grid(across: Sequence[float], down: Sequence[float], pieces: Sequence[Piece]) -> Grid:
    cells: list[Cell] = []
    for row, (top, bottom) in enumerate(itertools.pairwise(down)):
        texts = [piece for piece in pieces if top <= piece.middle < bottom]
        crossed = {
            place
            for place, edge in enumerate(across[1:-1], 1)
            if any(piece.x0 + OVER < edge < piece.x1 - OVER for piece in texts)
        }
        starts = [place for place in range(len(across) - 1) if place not in crossed]
        cells.extend(
            Cell((across[start], top, across[end], bottom), (row, row + 1), (start, end))
            for start, end in itertools.pairwise([*starts, len(across) - 1])
        )
    return Grid(across[0], down[0], across[-1], down[-1], tuple(across), len(down) - 1, tuple(cells), predicted=True)
