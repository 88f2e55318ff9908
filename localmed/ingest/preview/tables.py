"""Table rows as they were read (``Drug: amoxicillin; Dose: 500 mg``) set out as tables again, for a report page.

Only for the eye: a row is split at its names, rows that follow each other share a table, and nothing is left out. What
stands before the first name is the row's section. A table of too many columns is shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

MOST_COLUMNS = 12  # more do not fit beside a page's picture

_PART = re.compile(r"; |；")
_NAMED = re.compile(r"([^:：]{1,80}?)(?:: |：)(.+)", re.DOTALL)

_Cells = list[tuple[str, str]]  # (name of the column, text); the section has no name


def as_tables(rows: Sequence[str]) -> str:
    """``rows`` as HTML: a table for each run of rows with names, and for each run of rows without."""
    parts = []
    for named, run in groupby(map(_cells, rows), lambda cells: any(name for name, _ in cells)):
        together = list(run)
        if named and len(_columns(together)) > MOST_COLUMNS:
            parts += [f"<p>{escape('; '.join(map(_as_read, cells)))}</p>" for cells in together]
        else:
            parts.append(_table(together) if named else _bare(together))
    return "".join(parts)


def _cells(row: str) -> _Cells:
    """The cells of a row; a part without a name belongs to the one before it."""
    cells: _Cells = []
    for part in _PART.split(row):
        found = _NAMED.fullmatch(part)
        if found:
            cells.append((found[1], found[2]))
        elif cells and cells[-1][0]:
            name, text = cells[-1]
            cells[-1] = (name, f"{text}; {part}")
        else:
            cells.append(("", part))
    return cells


def _as_read(cell: tuple[str, str]) -> str:
    return f"{cell[0]}: {cell[1]}" if cell[0] else cell[1]


def _bare(rows: Sequence[_Cells]) -> str:
    """Rows without names, a part a cell; the last takes the rest of the width."""
    width = max(map(len, rows))
    if width == 1 or width > MOST_COLUMNS:
        return "".join(f"<p>{escape('; '.join(map(_as_read, cells)))}</p>" for cells in rows)
    body = []
    for cells in rows:
        wide = f' colspan="{width - len(cells) + 1}"' if len(cells) < width else ""
        texts = [f"<td>{escape(text)}</td>" for _, text in cells[:-1]]
        body.append(f"<tr>{''.join(texts)}<td{wide}>{escape(cells[-1][1])}</td></tr>")
    return f"<table><tbody>{''.join(body)}</tbody></table>"


def _columns(rows: Sequence[_Cells]) -> list[str]:
    return list(dict.fromkeys(name for cells in rows for name, _ in cells))


def _table(rows: Sequence[_Cells]) -> str:
    columns = _columns(rows)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = []
    for cells in rows:
        texts = {name: "; ".join(text for each, text in cells if each == name) for name in columns}
        body.append("<tr>" + "".join(f"<td>{escape(texts[name])}</td>" for name in columns) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
