"""Writes the rows of tables as independent text: each row repeats its headers and its section.

``Medicine: amoxicillin; Dose: 500 mg`` (Chinese: ``药物：阿莫西林；剂量：500mg``).

Rules: the first row is a header if it is bold, or short and without figures above a column of figures or longer text. A
header of two levels is joined. A cell over several rows is repeated in each; a cell over the whole width is a section,
repeated in the rows below. A table with the same columns at the top of the next page keeps its header and section, and
an empty first cell there takes the last one's text.

Not covered: headers at the side only; tables turned by 90 degrees on an upright page of text.

Cells without their text in any row are counted for a note to the librarian. A piece counts as read if a line of a row
lies at its place and contains its text, or if it belongs to a header. White space, leader dots and marks between cells
are ignored; figures are compared in compatibility form, because raised ones are rewritten. Whether a cell is in the
right row is measured by ``tests/benchmarks/pdf_peers.py`` only.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from localmed.domain import Message, message
from localmed.ingest.line_ends import JOINER
from localmed.ingest.parsed import Block, Line
from localmed.ingest.readers import tables
from localmed.ingest.readers.pdf.grid import SAME_EDGE, Grid
from localmed.ingest.readers.pdf.layout import rows as printed_rows
from localmed.ingest.readers.pdf.text import Cell, Piece, is_cjk, join_row, join_runs

TOP_OF_PAGE = 0.3  # of the page height: a table that begins lower continues no table of the previous page
MOST_COLUMNS = 0.6  # of the columns start a line at one height: a new row of a table ruled only around its body
SLACK_CHARACTERS = 2.5  # of white at a line's end in a cell: its margins and one more character
APART = f" {JOINER}"  # keeps the blank between the items of a Chinese cell, which are joined otherwise
MANY_COLUMNS = 3  # of a table without borders that needs a header to be certain
MOST_APART = 1 / 3  # of its rows that may lack their first cell
GO_ON = 2  # rows whose text may continue in the next; a single one may be a list
PROSE = 4  # words of a cell that begins a sentence
SAME_LINE, CLOSE_UP = 2.0, 0.8  # points: cells have white inside their borders
UNRULED_ROWS = 3  # a table with more ruled rows is ruled row by row
TOLERANCE = 1.0  # points; boxes are rounded to tenths
TALLEST = 14_400.0  # points of a page, by ISO 32000; a hostile font may be taller

_NUMBER_BEGUN = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*[,，]$")
_NUMBER_GOES_ON = re.compile(r"[,，.]\d")
_UNFINISHED = re.compile(r"\b(?:a|an|and|be|by|for|from|in|is|of|on|or|the|to|with)$|\w/$")
_BROKEN_OFF = re.compile(r"(?:\b(?:an|and|from|of|or|the|with)|\w/)$")  # no cell ends so
_VALUE = re.compile(r"[<>≤≥±+–−-]?\s?\d+(?![.)]\s|[\d.]*[)）、])")  # not a list label
_MARKS = re.compile(r"[\s;:,.…·\u2060]+")


@dataclass(frozen=True)
class _Slot(tables.Cell):
    """The printed lines of one row in one or more of its columns."""

    lines: tuple[Piece, ...] = ()

    @classmethod
    def of(cls, columns: tuple[int, int], lines: Iterable[Piece], depth: int = 1) -> _Slot:
        """``lines`` as one text in ``columns``, a header if all are bold; the cell covers ``depth`` rows."""
        kept = tuple(lines)
        bold = all(line.bold for line in kept)
        text = functools.reduce(join_runs, (line.text for line in kept), "")
        return cls(text, 0, columns[0], depth, columns[1] - columns[0], bold, kept)


_LEADER = re.compile(r"\s*(?:\.{2,}| …)$")  # dots before the next column
_Row = list[_Slot]  # by column


@dataclass(slots=True)
class Carry:
    """The state that a table passes to its continuation on the next page."""

    page: int = 0
    edges: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    section: str = ""
    first: str = ""
    lost: dict[int, int] = field(default_factory=dict)  # page -> cells with text in no row
    torn: bool = False  # the last table is uncertain, and so is its continuation
    doubtful: set[int] = field(default_factory=set)  # pages with an uncertain table


def table_blocks(grid: Grid, pieces: Sequence[Piece], page: int, top: bool, carry: Carry) -> list[Block]:
    """Make blocks of the rows of ``grid`` on ``page``; ``top``: it is the first table and begins at the page's top."""
    cut = _rows(grid, pieces)
    uneven = len(cut) > grid.height and not all(slot.lines for row in cut for slot in row)  # split without rules
    rows = [row for parts in cut if (row := [slot for slot in parts if slot.lines])]
    follows = top and carry.page == page - 1 and len(grid.edges) == len(carry.edges)
    goes_on = follows and _same_columns(grid.edges, carry.edges, grid.predicted)
    count = 0  # of header rows
    if goes_on and any(carry.names):  # the header may be repeated
        count = next((n for n in (1, 2) if tables.names_of(rows[:n], grid.width) == carry.names), 0)
    count = count or _header_count(grid, rows, goes_on)
    head, names = rows[:count], tables.names_of(rows[:count], grid.width)
    goes_on = goes_on and (not count or names == carry.names)
    if goes_on:
        names, rows = carry.names, rows[count:]
        if carry.first and rows and rows[0][0].column > 0:  # its label is on the previous page
            rows[0] = [_Slot.of((0, 1), [replace(rows[0][0].lines[0], text=carry.first)]), *rows[0]]
    else:
        carry.section, carry.first = "", ""
        rows = rows[count:] if count < len(rows) else rows
    unused = not goes_on and tables.has_unused(rows, grid.width, names)
    carry.page, carry.edges, carry.names = page, grid.edges, () if unused else names
    made = [_lines(grid, row, carry) for row in head] if unused else []
    carry.names = names
    made.extend(_lines(grid, row, carry) for row in rows)
    missing = count_lost_cells(pieces, made, names if goes_on else ())
    if missing:
        carry.lost[page] = carry.lost.get(page, 0) + missing
    uncertain = follows and (carry.torn or not (goes_on or any(names)))  # the names may be on the previous page
    carry.torn = bool(missing) or uncertain or uneven or _is_doubtful(grid, rows, names)
    if made and carry.torn:
        carry.doubtful.add(page)
    return [
        Block("row", tuple(map(make_line, row)), doubtful=carry.torn or any(line.ocr is not None for line in row))
        for row in made
    ]


def make_line(piece: Piece) -> Line:
    """``piece`` as a line of a block."""
    return Line(piece.text, piece.box, piece.ocr)


# --- certainty of a table ---------------------------------------------------------------------------------------------


def _is_doubtful(grid: Grid, rows: Sequence[_Row], names: Sequence[str]) -> bool:
    """Whether the body ``rows`` of ``grid`` may be torn.

    Signs: a word or number is cut at a column's edge; sentences continue in the next row or break off; a cell contains
    several values; a second header; without borders also names apart from their amounts, or no column names.
    """
    if any(_is_cut(first, second) for row in rows for first, second in itertools.pairwise(row)):
        return True
    if sum(_goes_on(above, below) for above, below in itertools.pairwise(rows)) >= GO_ON:
        return True
    if any(_BROKEN_OFF.search(slot.text) or _is_stacked(slot) for row in rows for slot in row):
        return True
    body = [row for row in rows if not tables.is_full(row[0], grid.width)]
    apart = sum(row[0].column > 0 for row in body)
    if any(names) and any(_may_head(row) and _bold(row) and not _figures(row) for row in body):
        return True  # the header of another table, in a frame with this one
    unnamed = grid.width >= MANY_COLUMNS and not any(names)
    return grid.predicted and (unnamed or apart > MOST_APART * len(body))


def _goes_on(above: _Row, below: _Row) -> int:
    """Whether the text of a cell continues in the one below: ``GO_ON`` if a word is missing, 1 if possible, else 0."""
    under = {(slot.column, slot.width): slot.text for slot in below}
    for slot in above:
        text, after = slot.text.rstrip(), under.get((slot.column, slot.width), "").lstrip()
        if text and after and after != text:
            prose = len(text.split()) >= PROSE and text[-1].isalpha() and not is_cjk(text[-1])
            if _UNFINISHED.search(text):
                return GO_ON
            if text.endswith((",", "，", "、")) or (prose and after[0].islower()):
                return 1
    return 0


def _is_cut(first: _Slot, second: _Slot) -> bool:
    """Whether a word or number continues in the next cell: "fo" and "r adults", "98," and "452"."""
    for piece, after in itertools.product(first.lines, second.lines):
        touches = abs(piece.middle - after.middle) < SAME_LINE and abs(after.x0 - piece.x1) < CLOSE_UP
        if touches and piece.text.rstrip()[-1:].isalnum() and after.text.lstrip()[:1].isalnum():
            return True
    left, right = first.text.rstrip(), second.text.lstrip()
    return bool(_NUMBER_BEGUN.search(left) and right[:1].isdigit()) or bool(
        left[-1:].isdigit() and _NUMBER_GOES_ON.match(right)
    )


def _is_stacked(slot: _Slot) -> bool:
    """Whether a cell's lines are several complete values, so that their row labels are unknown."""
    values, depth, before = 0, 0, ""
    for text in (line.text for line in slot.lines):
        if not depth and text[:1].isalpha():
            return False  # words, in which numbers stand
        alike = not before[-1:].isalpha() or before.split()[-1] == text.split()[-1]  # "5 mL", "10 mL"
        values += bool(not depth and alike and before[-1:] not in tuple("-–−,/×") and _VALUE.match(text))
        depth = max(0, depth + sum(map(text.count, "([（")) - sum(map(text.count, ")]）")))
        before = text
    return values > 1


def _same_columns(first: Sequence[float], second: Sequence[float], predicted: bool) -> bool:
    """Whether two tables have the same columns; a predicted edge lies anywhere in the white between columns."""
    if len(first) != len(second) or len(first) < 2:
        return False
    narrowest = min(right - left for edges in (first, second) for left, right in itertools.pairwise(edges))
    apart = max(SAME_EDGE, narrowest / 2) if predicted else SAME_EDGE
    return all(abs(one - another) <= apart for one, another in zip(first, second, strict=True))


def _rows(grid: Grid, pieces: Sequence[Piece]) -> list[_Row]:
    inside: dict[Cell | None, list[Piece]] = defaultdict(list)
    for piece in pieces:
        inside[piece.cell].append(piece)
    rows: list[_Row] = []
    for index in range(grid.height):
        row: _Row = []
        for cell in (cell for cell in grid.cells if cell.rows[0] <= index < cell.rows[1]):
            lines = map(join_row, printed_rows(inside[cell]))
            whole = (replace(line, text=_LEADER.sub("", line.text)) for line in lines)
            row.append(_Slot.of(cell.columns, whole, cell.rows[1] - cell.rows[0]))
        row.sort(key=lambda slot: (slot.column, slot.width))
        if any(slot.lines for slot in row):
            rows.extend(_split(row) if grid.height <= UNRULED_ROWS else [row])
    return rows


def _split(row: _Row) -> list[_Row]:
    """Split ``row`` where most columns start a line at one height, if each part is complete and has a label."""
    if len(row) < 2:
        return [row]
    lines = [line for slot in row for line in slot.lines]
    tops = sorted({round(line.middle) for line in lines})
    half = max(line.y1 - line.y0 for line in lines) / 2
    cuts: list[float] = []
    for top in tops:
        starting = sum(any(abs(line.middle - top) <= 1.0 for line in slot.lines) for slot in row)
        if starting >= max(2, MOST_COLUMNS * len(row)) and not (cuts and top - cuts[-1] < half):
            cuts.append(top)
    if len(cuts) < 2:
        return [row]
    limits = [float("-inf"), *[cut - half for cut in cuts[1:]], float("inf")]
    parts = [
        [
            _Slot.of(
                (slot.column, slot.column + slot.width), [line for line in slot.lines if low <= line.middle < high]
            )
            for slot in row
        ]
        for low, high in itertools.pairwise(limits)
    ]
    labelled = all(part[0].lines for part in parts) or not row[0].lines
    return parts if labelled and not any(map(_goes_on, parts, parts[1:])) else [row]


def _header_count(grid: Grid, rows: Sequence[_Row], goes_on: bool) -> int:
    if len(rows) < 2 or not _may_head(rows[0]):
        return 0
    first = rows[0]
    differing = (slot for slot in first if not tables.has_figure(slot.text) and tables.differs(slot, rows[1:]))
    heads = all(tables.is_plain(slot.text) for slot in first) and any(differing)
    if not _bold(first) and (goes_on or grid.width < 3 or not heads):
        return 0
    grouped = any(1 < slot.width < grid.width for slot in first)
    deepest = max(slot.height for slot in first)
    if grouped and 1 < deepest < len(rows):
        return deepest  # a header cell beside the grouped ones extends down to the body
    second = grouped and len(rows) > 2 and _may_head(rows[1]) and (_bold(rows[1]) or not _figures(rows[1]))
    return 2 if second else 1


def _may_head(row: _Row) -> bool:
    return len(row) > 1 and all(len(slot.text) <= tables.HEADER_CHARACTERS for slot in row)


def _figures(row: _Row) -> bool:
    return any(character.isdigit() for slot in row if slot.column for character in slot.text)


def _bold(row: _Row) -> bool:
    return all(slot.header for slot in row)


def _lines(grid: Grid, row: _Row, carry: Carry) -> list[Piece]:
    chinese = any(is_cjk(character) for slot in row for character in slot.text)
    if tables.is_full(row[0], grid.width):
        short = len(row[0].text) <= tables.SECTION_CHARACTERS
        carry.section, carry.first = row[0].text if short else "", ""  # a long one ends the section before
        return list(row[0].lines)
    if row[0].column == 0:
        carry.first = row[0].text
    stop = "；" if chinese else ";"
    lines = [replace(row[0].lines[0], text=carry.section + stop)] if carry.section else []
    for slot in row:
        width = grid.edges[slot.column + slot.width] - grid.edges[slot.column]
        ends = [_ended(above, below, width) for above, below in itertools.pairwise(slot.lines)]
        texts = [line.text + APART * ended for line, ended in zip(slot.lines, [*ends, False], strict=True)]
        if name := tables.name_of(slot, carry.names):
            texts[0] = f"{name}：{texts[0]}" if chinese else f"{name}: {texts[0]}"
        if slot is not row[-1]:
            texts[-1] = texts[-1].rstrip(";；") + stop
        lines.extend(replace(line, text=text) for line, text in zip(slot.lines, texts, strict=True))
    return lines


def _ended(above: Piece, below: Piece, width: float) -> bool:
    """Whether a Chinese line of a cell of ``width`` was ended on purpose: the next character would have fitted."""
    if not is_cjk(above.text[-1]) or not is_cjk(below.text[0]):
        return False
    taken = above.x1 - above.x0
    return taken + SLACK_CHARACTERS * taken / len(above.text) < width


# --- cells with text in no row ----------------------------------------------------------------------------------------


def count_lost_cells(pieces: Sequence[Piece], rows: Sequence[Sequence[Piece]], repeated: Iterable[str]) -> int:
    """Count the cells with ``pieces`` of a table that are neither in ``rows`` nor in a ``repeated`` header."""
    lines = [(line, _bare(line.text)) for row in rows for line in row]
    heights: dict[int, list[tuple[Piece, str]]] = defaultdict(list)  # a page may have thousands of cells
    for line, text in lines:
        for height in range(int(max(0.0, line.y0 - TOLERANCE)), int(min(TALLEST, line.y1 + TOLERANCE)) + 1):
            heights[height].append((line, text))
    left = [piece for piece in pieces if not _is_in(piece, heights[int(piece.middle)])]
    top = min((line.y0 for line, _ in lines), default=float("inf"))
    named = "\n".join([*(text for _, text in lines), *map(_bare, repeated)])
    return len({piece.cell for piece in left if piece.middle > top or _bare(piece.text) not in named})


def table_notes(carry: Carry) -> Iterator[Message]:
    """Notes for the librarian: the number of lost cells by page, and the pages with uncertain tables."""
    for page, cells in carry.lost.items():
        yield message("pdf.cells_lost", page=page, count=cells)
    if pages := tuple(map(str, sorted(carry.doubtful))):
        yield message("pdf.tables_doubtful", pages=pages)


def _is_in(piece: Piece, lines: Sequence[tuple[Piece, str]]) -> bool:
    """Whether one of ``lines`` lies at ``piece`` and contains its text."""
    text = _bare(piece.text)
    return not text or any(
        line.x0 - TOLERANCE <= piece.centre <= line.x1 + TOLERANCE
        and line.y0 - TOLERANCE <= piece.middle <= line.y1 + TOLERANCE
        and text in whole
        for line, whole in lines
    )


def _bare(text: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))
