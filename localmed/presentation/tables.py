"""Sets rows as they were read (``Drug: amoxicillin; Dose: 500 mg``) out as tables again, for a page.

Only for the eye: rows are split at their names, consecutive rows share a table, nothing is left out. Text before the
first name is the row's section. A table with too many columns stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

MOST_COLUMNS = 12  # more do not fit beside a page's picture

_PART = re.compile(r"; |；")
_NAMED = re.compile(r"([^:：]{1,80}?)(?:: |：)(.+)", re.DOTALL)

_Cells = list[tuple[str, str]]  # (name of the column, text); the section has no name


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with or without a header, or ``lines`` of text. A cell is its text and the columns that it spans."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[tuple[str, int], ...], ...] = ()
    lines: tuple[str, ...] = ()


def grids(rows: Sequence[str]) -> Iterator[Grid]:
    """Set ``rows`` out: a table for each run of rows with names, and for each run without."""
    for with_names, run in groupby(map(_cells, rows), lambda cells: any(name for name, _ in cells)):
        together = list(run)
        columns = tuple(dict.fromkeys(name for cells in together for name, _ in cells))
        width = len(columns) if with_names else max(map(len, together))
        if width > MOST_COLUMNS or (width == 1 and not with_names):
            yield Grid(lines=tuple("; ".join(map(_as_read, cells)) for cells in together))
        elif with_names:
            yield Grid(columns, tuple(_by_column(cells, columns) for cells in together))
        else:
            yield Grid(rows=tuple(_bare(cells, width) for cells in together))


def _cells(row: str) -> _Cells:
    """The cells of a row; a part without a name belongs to the cell before it."""
    cells: _Cells = []
    for part in _PART.split(row):
        match = _NAMED.fullmatch(part)
        if match:
            cells.append((match[1], match[2]))
        elif cells and cells[-1][0]:
            name, text = cells[-1]
            cells[-1] = (name, f"{text}; {part}")
        else:
            cells.append(("", part))
    return cells


def _as_read(cell: tuple[str, str]) -> str:
    return f"{cell[0]}: {cell[1]}" if cell[0] else cell[1]


def _by_column(cells: _Cells, columns: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple(("; ".join(text for name, text in cells if name == column), 1) for column in columns)


def _bare(cells: _Cells, width: int) -> tuple[tuple[str, int], ...]:
    """A row without names, a part a cell; the last cell takes the rest of the width."""
    texts = [text for _, text in cells]
    return (*((text, 1) for text in texts[:-1]), (texts[-1], width - len(texts) + 1))
