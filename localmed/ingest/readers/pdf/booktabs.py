"""Tables of scanned pages ruled only above, below and under the header: found from white strips.

Rules: three or more level rules of one width; between the first two stands the header (at most ``HEADER_ROWS``),
between the others the body, whose cells leave the same strips of white in every row. Between two rules, the first row
is the header if three columns or more go on under it. A row of one piece that crosses a strip is a section. Columns of
prose between rules are not a table. Pages with text of their own are read by the layout model (``predicted.py``).

Not covered: tables without any rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import median

from localmed.ingest.readers.pdf.grid import Cell, Grid, Rectangle
from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import Piece

SAME_WIDTH = 4.0  # points by which the ends of a table's rules may differ
SHORTEST = 90.0  # points; a narrower table has no room for two columns
HEADER_ROWS = 5
STRIP_EMS = 0.4  # of white between columns; word spaces inside a cell are closed before
FULL_ROWS = 0.4  # of the body rows have two cells or more
MOST_ROWS = 0.8  # of the rows under a header without a rule of its own have three cells or more
PROSE_ROWS = 6
PROSE_FILL = 0.8  # of a column's width in its middle line

_Row = list[Piece]


def find_open(across: Sequence[Rectangle], pieces: Sequence[Piece], first: int) -> list[Grid]:
    """The tables between the level rules ``across``; ``first`` is the id of the first cell."""
    grids: list[Grid] = []
    for chain in _chains(across):
        start = 0
        while start + 1 < len(chain):
            grid, used = _table(chain[start:], pieces, first)
            if grid is not None:
                grids.append(grid)
                first += len(grid.cells)
            start += used
    return grids


def _chains(across: Sequence[Rectangle]) -> list[list[Rectangle]]:
    """Rules of one width, top to bottom; strokes of one rule once."""
    chains: list[list[Rectangle]] = []
    for rule in sorted(across, key=lambda one: one[1]):
        if rule[2] - rule[0] < SHORTEST:
            continue
        chain = next((one for one in chains if _same_width(one[0], rule)), None)
        if chain is None:
            chains.append([rule])
        elif rule[1] - chain[-1][1] > SAME_WIDTH:
            chain.append(rule)
    return [chain for chain in chains if len(chain) > 1]


def _same_width(first: Rectangle, second: Rectangle) -> bool:
    return abs(first[0] - second[0]) < SAME_WIDTH and abs(first[2] - second[2]) < SAME_WIDTH


def _table(chain: Sequence[Rectangle], pieces: Sequence[Piece], first: int) -> tuple[Grid | None, int]:
    """The table that begins with ``chain``, and how many rules it used up."""
    left, right = chain[0][0], chain[0][2]
    bands = [
        printed_rows(_between(pieces, left, right, above[1], below[1])) for above, below in itertools.pairwise(chain)
    ]
    head = bands[0]
    if not head or not _may_head(head):
        return _headed_by_row(head, (chain[0], chain[1]), first), 1
    body: list[_Row] = []
    edges: list[float] = []
    used = 1
    for band in bands[1:]:
        wider = _edges([*body, *band], left, right)
        if not band or not _reads_as_cells([*body, *band], wider) or (edges and len(wider) < len(edges)):
            break
        body, edges, used = [*body, *band], wider, used + 1
    if not body:
        return None, 1
    return _grid(head, body, edges, (chain[0], chain[used]), first), used + 1


def _may_head(head: Sequence[_Row]) -> bool:
    """Whether ``head`` may name columns; lines of "name: value" above a table do not."""
    named = sum(":" in piece.text or "：" in piece.text for row in head for piece in row)
    return len(head) <= HEADER_ROWS and max(len(row) for row in head) > 1 and named < 2


def _headed_by_row(rows: Sequence[_Row], ends: tuple[Rectangle, Rectangle], first: int) -> Grid | None:
    """The table between two rules whose header is its first row, with no rule under it."""
    last = max((index for index, row in enumerate(rows) if len(row) > 1), default=0)
    head, body = rows[:1], rows[1 : last + 1]  # single lines at the foot are notes
    if not body or not _may_head(head) or any(piece.text[0].isdigit() for piece in head[0]):
        return None
    edges = _edges([*head, *body], ends[0][0], ends[0][2])
    several = sum(len(row) > 2 for row in body)
    if len(edges) < 4 or several < MOST_ROWS * len(body) or not _reads_as_cells(body, edges):
        return None
    bottom = max(piece.y1 for piece in body[-1])
    return _grid(head, body, edges, (ends[0], (*ends[1][:1], bottom, ends[1][2], bottom)), first)


def _between(pieces: Sequence[Piece], left: float, right: float, top: float, bottom: float) -> list[Piece]:
    return [
        piece
        for piece in pieces
        if piece.upright and piece.cell < 0 and top < piece.middle < bottom and left < (piece.x0 + piece.x1) / 2 < right
    ]


def _edges(rows: Sequence[_Row], left: float, right: float) -> list[float]:
    """The middles of the white strips that run through all rows of several pieces, and the table's own edges."""
    spans = sorted((piece.x0, piece.x1, piece.size) for row in rows if len(row) > 1 for piece in row)
    edges, end = [left], 0.0
    for x0, x1, size in spans:
        if end and x0 - end > STRIP_EMS * size:
            edges.append((x0 + end) / 2)
        end = max(end, x1)
    return [*edges, right]


def _reads_as_cells(rows: Sequence[_Row], edges: Sequence[float]) -> bool:
    several = sum(len(row) > 1 for row in rows)
    if len(edges) < 3 or several < 2 or several < FULL_ROWS * len(rows):
        return False
    return sum(_prose(rows, low, high) for low, high in itertools.pairwise(edges)) < 2


def _prose(rows: Sequence[_Row], low: float, high: float) -> bool:
    widths = [piece.x1 - piece.x0 for row in rows for piece in row if low <= piece.x0 < high]
    return len(widths) >= PROSE_ROWS and median(widths) > PROSE_FILL * (high - low)


def _grid(
    head: Sequence[_Row], body: Sequence[_Row], edges: Sequence[float], ends: tuple[Rectangle, Rectangle], first: int
) -> Grid:
    cells: list[Cell] = []
    for index, row in enumerate(head):
        cells.extend(_cell(piece, index, edges, head) for piece in row)
    count = len(head)
    for rows in _bands(body, edges):
        top, bottom = min(piece.y0 for row in rows for piece in row), max(piece.y1 for row in rows for piece in row)
        if len(rows) == 1 and _crosses(rows[0], edges):
            cells.append(Cell((edges[0], top, edges[-1], bottom), (count, count + 1), (0, len(edges) - 1)))
        else:
            cells.extend(
                Cell((low, top, high, bottom), (count, count + 1), (column, column + 1))
                for column, (low, high) in enumerate(itertools.pairwise(edges))
            )
        count += 1
    top, bottom = ends[0][1], ends[1][1]
    return Grid(edges[0], top, edges[-1], bottom, tuple(edges), count, tuple(cells), first)


def _cell(piece: Piece, row: int, edges: Sequence[float], head: Sequence[_Row]) -> Cell:
    """A header cell: the columns that ``piece`` stands over."""
    bands = list(itertools.pairwise(edges))
    middle = (piece.x0 + piece.x1) / 2
    own = next((index for index, (low, high) in enumerate(bands) if low <= middle <= high), 0)
    over = [i for i, (low, high) in enumerate(bands) if min(piece.x1, high) - max(piece.x0, low) > (high - low) / 2]
    columns = (min([own, *over]), max([own, *over]) + 1) if len(head) > 1 else (own, own + 1)
    return Cell((piece.x0, piece.y0, piece.x1, piece.y1), (row, row + 1), columns)


def _bands(body: Sequence[_Row], edges: Sequence[float]) -> list[list[_Row]]:
    """The body cut at its sections."""
    bands: list[list[_Row]] = []
    for row in body:
        if not bands or _crosses(row, edges) or _crosses(bands[-1][0], edges):
            bands.append([])
        bands[-1].append(row)
    return bands


def _crosses(row: _Row, edges: Sequence[float]) -> bool:
    """Whether ``row`` is one piece that runs over a column's edge."""
    return len(row) == 1 and any(row[0].x0 < edge < row[0].x1 for edge in edges[1:-1])
