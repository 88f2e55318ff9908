"""Tables without rules all round, as PyMuPDF's layout model sees them: where they stand, their rows and columns.

The model (PyMuPDF Layout, weights in its wheel, onnxruntime on the CPU) takes about 0.3 s of a page, so it is asked
only of pages on which lines stand side by side. It says where a table's rows and columns are parted, not which cells
are merged: a line of text that runs over a column's edge joins the cells that it runs over. A find is kept where it
reads as a table (``grid.reads_as_table``) and no ruled table stands there: drawn borders are exact.

Not covered: pages that are displayed turned, of which the model sees the text lying on its side.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from localmed.ingest.readers.pdf.grid import Cell, Grid, Rectangle
from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import Piece

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
            inside = [piece for piece in pieces if piece.upright and _inside(piece, box)]
            grids.append(_grid(across, down, inside))
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


def _inside(piece: Piece, box: Rectangle) -> bool:
    return box[1] <= piece.middle <= box[3] and box[0] <= (piece.x0 + piece.x1) / 2 <= box[2]


def _grid(across: Sequence[float], down: Sequence[float], pieces: Sequence[Piece]) -> Grid:
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
