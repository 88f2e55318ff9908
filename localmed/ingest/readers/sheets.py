"""A sheet's cells as blocks: its tables as rows under their headers, the lines around them as paragraphs.

Rules: empty rows part a sheet. Rows with one cell above a table are paragraphs (its title, its notes), and so is a
part of one column. A part that begins in the same column and is no wider than the table before goes on with its
header, so that an empty row within a list costs nothing, if that table was a list (``LIST_ROWS``) or the part begins
with figures; otherwise its first row is its header where it holds names (``tables.conventional``).

Not covered: two tables side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localmed.ingest.parsed import Block
from localmed.ingest.readers import tables
from localmed.ingest.readers.tables import Cell, Row

LIST_ROWS = 3  # below a header: what is shorter may be the names and values above the real table


@dataclass(frozen=True, slots=True)
class _Header:
    first: int
    columns: int
    names: tuple[str, ...]
    rows: int  # below it

    def heads(self, rows: Sequence[Row], first: int, columns: int) -> bool:
        """Whether ``rows`` after an empty one still stand under it."""
        fits = any(self.names) and first == self.first and columns <= self.columns
        return fits and (self.rows >= LIST_ROWS or any(tables.figure(cell.text) for cell in rows[0]))


def blocks_of(cells: Sequence[Cell]) -> Iterator[Block]:
    """The blocks of one sheet."""
    header: _Header | None = None
    for part in _parts(cells):
        alone = next((at for at, row in enumerate(part) if len(row) > 1), len(part))
        yield from (Block.of("paragraph", row[0].text) for row in part[:alone])
        rows = part[alone:]
        if not rows:
            continue
        columns = max(cell.column + cell.width for row in rows for cell in row)
        first = min(cell.column for row in rows for cell in row)
        if header and not alone and header.heads(rows, first, columns):
            yield from tables.named_rows(rows, header.columns, header.names)
            continue
        count = tables.conventional(rows, columns)
        header = _Header(first, columns, tables.names_of(rows[:count], columns), len(rows) - count)
        yield from tables.named_rows(rows[count:], columns, header.names, rows[:count])


def _parts(cells: Sequence[Cell]) -> Iterator[list[Row]]:
    """Runs of rows without an empty one between them; a merged cell fills all its rows."""
    part: list[Row] = []
    before = -1
    filled = [cell for cell in cells if cell.text]
    numbers = sorted({row for cell in filled for row in range(cell.row, cell.row + cell.height)})
    for number, row in zip(numbers, tables.grid(_kept(filled, numbers)), strict=True):
        if part and number > before + 1:
            yield part
            part = []
        part.append(row)
        before = number
    if part:
        yield part


def _kept(filled: Sequence[Cell], numbers: Sequence[int]) -> list[Cell]:
    """``filled`` and an empty cell in the last row, so that a merged cell reaches down to it."""
    return [*filled, Cell("", numbers[-1], 0)] if numbers else []
