"""The rows of ruled tables as text that stands alone: each carries its headers, and its section where there is one.

``Medicine: amoxicillin; Dose: 500 mg`` (Chinese: ``药物：阿莫西林；剂量：500mg``).

Rules: the first row is a header if it is set bold, or is short and without figures above a column of figures or longer
text. A header of two levels is joined. A cell that covers several rows is repeated in each; a cell that covers the
whole width is a section, repeated in the rows under it. A table that goes on at the top of the next page with the same
columns keeps its header and section, and an empty first cell there takes the last one's text.

Not covered: headers at the side only, and tables turned by 90 degrees on an upright page of text.

Cells in, cells out: a piece of a cell is kept if a line of some row stands where it is printed and holds its text, if
it is of a header that a row names, or of one that was already there on the page before. What is left over is counted
by cells, for a note to the librarian. White space, leader dots and marks between cells do not count; figures are
compared in compatibility form, since raised ones are rewritten. Whether a cell came into the right row no page says of
itself (``tests/benchmarks/pdf_peers.py``).
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
from localmed.ingest.readers.pdf.text import Cell, Piece, is_cjk, joined, set_together

TOP_OF_PAGE = 0.3  # of the page height: a table that begins lower does not go on from the page before
MOST_COLUMNS = 0.6  # of the columns start a line at one height: a new row of a table ruled only around its body
SLACK_CHARACTERS = 2.5  # of white at a line's end in a cell: its margins and a character that would have fitted
APART = f" {JOINER}"  # keeps the blank between the items of a Chinese cell, which else are joined
MANY_COLUMNS = 3  # of a table without borders that must have a header to be read with certainty
MOST_APART = 1 / 3  # of its rows that may lack their first cell
GO_ON = 2  # rows whose text may go on in the next; one may be a list
PROSE = 4  # words of a cell's text that is a sentence begun
SAME_LINE, CLOSE_UP = 2.0, 0.8  # points: cells have white inside their borders
UNRULED_ROWS = 3  # a table with more ruled rows is ruled row by row
TOLERANCE = 1.0  # points; boxes are rounded to tenths
TALLEST = 14_400.0  # points of a page, by ISO 32000; a hostile font may be taller

_NUMBER_BEGUN = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*[,，]$")
_NUMBER_GOES_ON = re.compile(r"[,，.]\d")
_WANTING = re.compile(r"\b(?:a|an|and|be|by|for|from|in|is|of|on|or|the|to|with)$|\w/$")
_BROKEN_OFF = re.compile(r"(?:\b(?:an|and|from|of|or|the|with)|\w/)$")  # no cell ends so
_VALUE = re.compile(r"[<>≤≥±+–−-]?\s?\d+(?![.)]\s|[\d.]*[)）、])")  # but no label of a list
_MARKS = re.compile(r"[\s;:,.…·\u2060]+")


@dataclass(frozen=True)
class _Slot(tables.Cell):
    """What one row shows in some of its columns: printed lines."""

    lines: tuple[Piece, ...] = ()

    @classmethod
    def of(cls, columns: tuple[int, int], lines: Iterable[Piece], depth: int = 1) -> _Slot:
        """``lines`` as one text in ``columns``; a header where all of it is bold. Its cell covers ``depth`` rows."""
        kept = tuple(lines)
        bold = all(line.bold for line in kept)
        text = functools.reduce(joined, (line.text for line in kept), "")
        return cls(text, 0, columns[0], depth, columns[1] - columns[0], bold, kept)


_LEADER = re.compile(r"\s*(?:\.{2,}| …)$")  # dots that lead the eye to the next column
_Row = list[_Slot]  # by column


@dataclass(slots=True)
class Carry:
    """What a table hands to its continuation on the next page."""

    page: int = 0
    edges: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    section: str = ""
    first: str = ""
    lost: dict[int, int] = field(default_factory=dict)  # page -> cells of which something is in no row
    torn: bool = False  # the last table was not read with certainty, and neither is what goes on from it
    doubtful: set[int] = field(default_factory=set)  # pages with a table that was not read with certainty


def table_blocks(grid: Grid, pieces: Sequence[Piece], page: int, top: bool, carry: Carry) -> list[Block]:
    """The rows of ``grid`` on ``page``; ``top`` says that it is the first table and stands at the page's top."""
    cut = _rows(grid, pieces)
    uneven = len(cut) > grid.height and not all(slot.lines for row in cut for slot in row)  # cut by its lines alone
    rows = [row for parts in cut if (row := [slot for slot in parts if slot.lines])]
    follows = top and carry.page == page - 1 and len(grid.edges) == len(carry.edges)
    goes_on = follows and _same_columns(grid.edges, carry.edges, grid.predicted)
    count = _repeated(grid, rows, carry.names) if goes_on else 0
    count = count or _header_count(grid, rows, goes_on)
    head, names = rows[:count], tables.names_of(rows[:count], grid.width)
    goes_on = goes_on and (not count or names == carry.names)
    if goes_on:
        names = carry.names
        rows = _with_first(rows[count:], carry.first)
    else:
        carry.section, carry.first = "", ""
        rows = rows[count:] if count < len(rows) else rows
    unused = not goes_on and tables.unused(rows, grid.width, names)
    carry.page, carry.edges, carry.names = page, grid.edges, () if unused else names
    made = [_lines(grid, row, carry) for row in head] if unused else []
    carry.names = names
    made.extend(_lines(grid, row, carry) for row in rows)
    missing = lost_cells(pieces, made, names if goes_on else ())
    if missing:
        carry.lost[page] = carry.lost.get(page, 0) + missing
    uncertain = follows and (carry.torn or not (goes_on or any(names)))  # its names may stand on the page before
    carry.torn = bool(missing) or uncertain or uneven or is_doubtful(grid, rows, names)
    if made and carry.torn:
        carry.doubtful.add(page)
    return [
        Block("row", tuple(map(placed, row)), doubtful=carry.torn or any(line.ocr is not None for line in row))
        for row in made
    ]


def placed(piece: Piece) -> Line:
    """``piece`` as it is handed on."""
    return Line(piece.text, piece.box, piece.ocr)


# --- whether a table was read with certainty --------------------------------------------------------------------------


def is_doubtful(grid: Grid, rows: Sequence[_Row], names: Sequence[str]) -> bool:
    """Whether the body ``rows`` of ``grid`` show that they may be torn.

    A word or number is cut in two at a column's edge, or sentences go on in the next row or stop short; or a cell
    holds several values, one below the other; or, where no borders are drawn, names stand apart from their amounts,
    or the columns have no names; or other names stand in the middle.
    """
    if any(_is_cut(first, second) for row in rows for first, second in itertools.pairwise(row)):
        return True
    if sum(_goes_on(above, below) for above, below in itertools.pairwise(rows)) >= GO_ON:
        return True
    if any(_BROKEN_OFF.search(slot.text) or _is_stacked(slot) for row in rows for slot in row):
        return True
    body = [row for row in rows if not tables.full(row[0], grid.width)]
    apart = sum(row[0].column > 0 for row in body)
    if any(names) and any(_may_head(row) and _bold(row) and not _figures(row) for row in body):
        return True  # the header of another table, in a frame with this one
    unnamed = grid.width >= MANY_COLUMNS and not any(names)
    return grid.predicted and (unnamed or apart > MOST_APART * len(body))


def _one_word(piece: Piece, after: Piece) -> bool:
    """Whether what ends one cell's line is printed close up against what begins another's, as inside a word."""
    touches = abs(piece.middle - after.middle) < SAME_LINE and abs(after.x0 - piece.x1) < CLOSE_UP
    return touches and piece.text.rstrip()[-1:].isalnum() and after.text.lstrip()[:1].isalnum()


def _goes_on(above: _Row, below: _Row) -> int:
    """How plainly the text of a cell goes on in the one below: ``GO_ON`` where a word is wanting, 1 where it may."""
    under = {(slot.column, slot.width): slot.text for slot in below}
    for slot in above:
        text, after = slot.text.rstrip(), under.get((slot.column, slot.width), "").lstrip()
        if text and after and after != text:
            prose = len(text.split()) >= PROSE and text[-1].isalpha() and not is_cjk(text[-1])
            if _WANTING.search(text):
                return GO_ON
            if text.endswith((",", "，", "、")) or (prose and after[0].islower()):
                return 1
    return 0


def _is_cut(first: _Slot, second: _Slot) -> bool:
    """Whether a word or number goes on from one cell into the next: "fo" and "r adults", "98," and "452"."""
    if any(itertools.starmap(_one_word, itertools.product(first.lines, second.lines))):
        return True
    left, right = first.text.rstrip(), second.text.lstrip()
    return bool(_NUMBER_BEGUN.search(left) and right[:1].isdigit()) or bool(
        left[-1:].isdigit() and _NUMBER_GOES_ON.match(right)
    )


def _is_stacked(slot: _Slot) -> bool:
    """Whether a cell's lines are values, each complete in itself, so that no row says what each is the value of."""
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
    """Whether two tables have the same columns; the layout model puts an edge anywhere in the white between two."""
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
        cells = (cell for cell in grid.cells if cell.rows[0] <= index < cell.rows[1])
        row = [_slot(cell, inside[cell]) for cell in cells]
        row.sort(key=lambda slot: (slot.column, slot.width))
        if any(slot.lines for slot in row):
            rows.extend(_split(row) if grid.height <= UNRULED_ROWS else [row])
    return rows


def _slot(cell: Cell, pieces: Sequence[Piece]) -> _Slot:
    lines = map(set_together, printed_rows(pieces))
    whole = (replace(line, text=_LEADER.sub("", line.text)) for line in lines)
    return _Slot.of(cell.columns, whole, cell.rows[1] - cell.rows[0])


def _split(row: _Row) -> list[_Row]:
    """``row`` cut where most columns start a line at one height, if each part has its label and is whole."""
    if len(row) < 2:
        return [row]
    lines = [line for slot in row for line in slot.lines]
    tops = sorted({round(line.middle) for line in lines})
    half = max(line.y1 - line.y0 for line in lines) / 2
    cuts: list[float] = []
    for top in tops:
        if _starting(row, top) >= max(2, MOST_COLUMNS * len(row)) and not (cuts and top - cuts[-1] < half):
            cuts.append(top)
    if len(cuts) < 2:
        return [row]
    limits = [float("-inf"), *[cut - half for cut in cuts[1:]], float("inf")]
    parts = [[_part(slot, low, high) for slot in row] for low, high in itertools.pairwise(limits)]
    labelled = all(part[0].lines for part in parts) or not row[0].lines
    return parts if labelled and not any(map(_goes_on, parts, parts[1:])) else [row]


def _part(slot: _Slot, low: float, high: float) -> _Slot:
    """What ``slot`` shows between two heights."""
    columns = (slot.column, slot.column + slot.width)
    return _Slot.of(columns, (line for line in slot.lines if low <= line.middle < high))


def _starting(row: _Row, top: float) -> int:
    return sum(any(abs(line.middle - top) <= 1.0 for line in slot.lines) for slot in row)


def _header_count(grid: Grid, rows: Sequence[_Row], goes_on: bool) -> int:
    """How many rows at the top are headers."""
    if len(rows) < 2 or not _may_head(rows[0]):
        return 0
    first = rows[0]
    if not _bold(first) and (goes_on or grid.width < 3 or not _heads(first, rows[1:])):
        return 0
    grouped = any(1 < slot.width < grid.width for slot in first)
    deepest = max(slot.height for slot in first)
    if grouped and 1 < deepest < len(rows):
        return deepest  # a header cell beside the grouped ones reaches down to the body
    second = grouped and len(rows) > 2 and _may_head(rows[1]) and (_bold(rows[1]) or not _figures(rows[1]))
    return 2 if second else 1


def _heads(first: _Row, body: Sequence[_Row]) -> bool:
    """Whether ``first`` is short text above a column of figures or of much longer text."""
    differing = (slot for slot in first if not tables.figure(slot.text) and tables.differs(slot, body))
    return all(tables.plain(slot.text) for slot in first) and any(differing)


def _repeated(grid: Grid, rows: Sequence[_Row], names: tuple[str, ...]) -> int:
    """How many rows at the top repeat the header of the page before."""
    return next((n for n in (1, 2) if any(names) and tables.names_of(rows[:n], grid.width) == names), 0)


def _may_head(row: _Row) -> bool:
    return len(row) > 1 and all(len(slot.text) <= tables.HEADER_CHARACTERS for slot in row)


def _figures(row: _Row) -> bool:
    return any(character.isdigit() for slot in row if slot.column for character in slot.text)


def _bold(row: _Row) -> bool:
    return all(slot.header for slot in row)


def _with_first(rows: list[_Row], first: str) -> list[_Row]:
    """``rows`` with ``first`` in the first row's empty first cell: its label stands on the page before."""
    if not first or not rows or rows[0][0].column == 0:
        return rows
    return [[_Slot.of((0, 1), [replace(rows[0][0].lines[0], text=first)]), *rows[0]], *rows[1:]]


def _lines(grid: Grid, row: _Row, carry: Carry) -> list[Piece]:
    """The printed lines of ``row``, with its section and the names of its columns."""
    chinese = any(is_cjk(character) for slot in row for character in slot.text)
    if tables.full(row[0], grid.width):
        short = len(row[0].text) <= tables.SECTION_CHARACTERS
        carry.section, carry.first = row[0].text if short else "", ""  # a long one ends that before
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
    """Whether a Chinese line of a cell of ``width`` was ended on purpose: what comes next would have fitted."""
    if not is_cjk(above.text[-1]) or not is_cjk(below.text[0]):
        return False
    taken = above.x1 - above.x0
    return taken + SLACK_CHARACTERS * taken / len(above.text) < width


# --- text of cells that stands in no row ------------------------------------------------------------------------------


def lost_cells(pieces: Sequence[Piece], rows: Sequence[Sequence[Piece]], repeated: Iterable[str]) -> int:
    """How many cells hold something of a table's ``pieces`` that is neither in ``rows`` nor a ``repeated`` header."""
    lines = [(line, _bare(line.text)) for row in rows for line in row]
    heights: dict[int, list[tuple[Piece, str]]] = defaultdict(list)  # a page may have thousands of cells
    for line, text in lines:
        for height in range(int(max(0.0, line.y0 - TOLERANCE)), int(min(TALLEST, line.y1 + TOLERANCE)) + 1):
            heights[height].append((line, text))
    left = [piece for piece in pieces if not _shown(piece, heights[int(piece.middle)])]
    top = min((line.y0 for line, _ in lines), default=float("inf"))
    named = "\n".join([*(text for _, text in lines), *map(_bare, repeated)])
    return len({piece.cell for piece in left if piece.middle > top or _bare(piece.text) not in named})


def lost_notes(carry: Carry) -> Iterator[Message]:
    """What a librarian is told of the tables: how many cells stand in no row by page, and which may be torn."""
    for page, cells in carry.lost.items():
        yield message("pdf.cells_lost", page=page, count=cells)
    if pages := tuple(map(str, sorted(carry.doubtful))):
        yield message("pdf.tables_doubtful", pages=pages)


def _shown(piece: Piece, lines: Sequence[tuple[Piece, str]]) -> bool:
    text = _bare(piece.text)
    return not text or any(_covers(line, piece) and text in said for line, said in lines)


def _covers(line: Piece, piece: Piece) -> bool:
    across = line.x0 - TOLERANCE <= piece.centre <= line.x1 + TOLERANCE
    return across and line.y0 - TOLERANCE <= piece.middle <= line.y1 + TOLERANCE


def _bare(text: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))
