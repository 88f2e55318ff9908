"""Tables of any format as rows that stand alone: each row carries its headers, and its section where there is one.

``Medicine: amoxicillin; Dose: 500 mg`` (Chinese: ``药物：阿莫西林；剂量：500mg``), as ``pdf/tables.py`` writes them.

Rules: no filled cell is dropped. A cell that covers several rows is repeated in each, one that covers several columns
stands under all their names, one that covers the whole width is a section, repeated in the rows under it. A header of
two levels is joined. A header that would show in no row, since its column is empty, is written as a row itself. Empty
cells are left out. Which rows are headers is what the source marks; where it marks none, ``guessed`` for tables of
documents (careful: two columns may be names and values) and ``conventional`` for sheets (their first row, if words).

A sheet (``sheet_blocks``) is tables with lines around them. Empty rows part it. Rows with one cell above a table are
paragraphs (its title, its notes), and so is a part of one column. A part that begins in the same column and is no wider
than the table before goes on with its header, so that an empty row within a list costs nothing, if that table was a
list (``LIST_ROWS``) or the part begins with figures; otherwise its first row is its header where it holds names.

Not covered: headers at the side only; two tables side by side in one sheet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localmed.ingest.parsed import Block
from localmed.ingest.readers.text import has_chinese

HEADER_CHARACTERS = 80  # a marked header; the longest in drug tables holds ~70
PLAIN_HEADER_CHARACTERS = 30  # of one that nothing marks
SECTION_CHARACTERS = 60  # a full-width row that is longer is a note of the table
MOST_SPAN = 1_000  # columns or rows that a cell may claim, as HTML allows; more is a slip or an attack
LIST_ROWS = 3  # below a header: what is shorter may be the names and values above the real table
_LONGER = 2  # times a header's length: what stands under it is text


@dataclass(frozen=True)
class Cell:
    """A cell with one line of clean text; 0-based ``row`` and ``column``; ``header``: its source marks it as one."""

    text: str
    row: int
    column: int
    height: int = 1
    width: int = 1
    header: bool = False


Row = Sequence[Cell]  # the cells that show in a row, those that began above included, by column


def blocks_of(cells: Sequence[Cell]) -> list[Block]:
    """The rows of a table as blocks of kind ``row``."""
    rows, columns = grid(cells), width_of(cells)
    count = _marked(rows, columns) or guessed(rows, columns)
    return named_rows(rows[count:], columns, names_of(rows[:count], columns), rows[:count])


def grid(cells: Sequence[Cell]) -> list[Row]:
    """The rows that show anything, top down."""
    if not cells:
        return []
    last = max(cell.row for cell in cells)
    shown: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.text:
            for row in range(cell.row, min(cell.row + max(1, cell.height), last + 1)):
                shown[row].append(cell)
    return [sorted(shown[row], key=lambda cell: cell.column) for row in sorted(shown)]


def span(number: str, otherwise: int) -> int:
    """How many columns or rows a cell claims by a source's ``number``."""
    plain = number.isdecimal() and number.isascii() and len(number) < 6
    return min(int(number), MOST_SPAN) if plain else otherwise


def width_of(cells: Sequence[Cell]) -> int:
    """How many columns there are."""
    return max((cell.column + cell.width for cell in cells), default=0)


def names_of(rows: Sequence[Row], columns: int) -> tuple[str, ...]:
    """The name of each column: what stands above it in header ``rows``, without what covers the whole width."""
    names: list[list[str]] = [[] for _ in range(columns)]
    for row in rows:
        for cell in row:
            if not full(cell, columns):
                for column in range(cell.column, min(cell.column + cell.width, columns)):
                    if cell.text not in names[column]:
                        names[column].append(cell.text)
    return tuple(" ".join(parts) for parts in names)


def named_rows(rows: Sequence[Row], columns: int, names: Sequence[str], head: Sequence[Row] = ()) -> list[Block]:
    """``rows`` under ``names``; the header rows ``head`` before them where one of their cells would not show."""
    lost = unused(rows, columns, names)
    blocks = [_block(row, (), "") for row in head if lost or any(full(cell, columns) for cell in row)]
    section = ""
    for row in rows:
        if full(row[0], columns):
            section = row[0].text if len(row[0].text) <= SECTION_CHARACTERS else section
            blocks.append(_block(row, (), ""))
        else:
            blocks.append(_block(row, names, section))
    return blocks


def unused(rows: Sequence[Row], columns: int, names: Sequence[str]) -> bool:
    """Whether a name stands above a column that is empty but for sections, and so would show in no row."""
    cells = (cell for row in rows for cell in row if not full(cell, columns))
    used = {column for cell in cells for column in range(cell.column, cell.column + cell.width)}
    return any(name and column not in used for column, name in enumerate(names))


def guessed(rows: Sequence[Row], columns: int) -> int:
    """0 or the number of header rows of a table that marks none: short names above figures or longer text."""
    if len(rows) < 2 or columns < 3 or len(rows[0]) < 2:
        return 0
    first = rows[0]
    if any(figure(cell.text) or not plain(cell.text) for cell in first):
        return 0
    if not any(differs(cell, rows[1:]) for cell in first):
        return 0
    return _levels(rows, columns)


def conventional(rows: Sequence[Row], columns: int) -> int:
    """0 or the number of header rows of a sheet: its first row with two cells or more, where those are names."""
    if len(rows) < 2 or len(rows[0]) < 2 or not _are_names([cell.text for cell in rows[0]]):
        return 0
    return _levels(rows, columns)


def _are_names(texts: Sequence[str]) -> bool:
    """Whether ``texts`` can head columns: short, each another, none a figure but a year among words."""
    figures = sum(_number(text) for text in texts)
    years = sum(len(text) == 4 and text.isdecimal() and "1900" <= text <= "2100" for text in texts)
    short = all(len(text) <= HEADER_CHARACTERS for text in texts)
    return short and len(set(texts)) == len(texts) and figures == years and figures < len(texts)


def _levels(rows: Sequence[Row], columns: int) -> int:
    """1, or 2 where the first header row groups columns whose own names stand in the second."""
    grouped = any(1 < cell.width < columns for cell in rows[0])
    second = grouped and len(rows) > 2 and not any(figure(cell.text) for cell in rows[1])
    return 2 if second else 1


def _marked(rows: Sequence[Row], columns: int) -> int:
    """How many rows at the top hold nothing but cells that the source marks as headers."""
    count = 0
    while count < len(rows) and all(cell.header for cell in rows[count]):
        count += 1
    named = any(not full(cell, columns) for row in rows[:count] for cell in row)
    return count if named else 0


def plain(text: str) -> bool:
    """Whether ``text`` may head a column though nothing marks it: short, and no sentence."""
    return len(text) <= PLAIN_HEADER_CHARACTERS and not text.endswith((".", "。", "；", ";"))


def differs(head: Cell, body: Sequence[Row]) -> bool:
    """Whether ``head`` stands above a column of figures or of much longer text."""
    below = [cell.text for row in body for cell in row if cell.column == head.column and cell.width == head.width]
    figures = sum(map(figure, below))
    return bool(below) and (figures > len(below) / 2 or sum(map(len, below)) > _LONGER * len(head.text) * len(below))


def full(cell: Cell, columns: int) -> bool:
    """Whether ``cell`` covers the whole width."""
    return columns > 1 and cell.width >= columns


def figure(text: str) -> bool:
    """Whether a figure stands outside brackets: units and years in brackets belong to names."""
    return any(character.isdigit() for character in text.partition("（")[0].partition("(")[0])


def _number(text: str) -> bool:
    """Whether ``text`` is a number or date: figures and what stands between them."""
    return any(map(str.isdigit, text)) and not any(map(str.isalpha, text))


def _block(row: Row, names: Sequence[str], section: str) -> Block:
    parts = [*([section] if section else []), *_named(row, names)]
    wide = has_chinese("".join(parts))
    return Block.of("row", ("；" if wide else "; ").join(parts))


def _named(row: Row, names: Sequence[str]) -> Iterator[str]:
    for cell in row:
        name = name_of(cell, names)
        colon = "：" if has_chinese(name + cell.text) else ": "
        yield f"{name}{colon}{cell.text}" if name else cell.text


def name_of(cell: Cell, names: Sequence[str]) -> str:
    """What heads ``cell``: the ``names`` of the columns that it covers."""
    return " / ".join(dict.fromkeys(filter(None, names[cell.column : cell.column + cell.width]))).rstrip(":：")


# --- sheets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Header:
    first: int
    columns: int
    names: tuple[str, ...]
    rows: int  # below it

    def heads(self, rows: Sequence[Row], first: int, columns: int) -> bool:
        """Whether ``rows`` after an empty one still stand under it."""
        fits = any(self.names) and first == self.first and columns <= self.columns
        return fits and (self.rows >= LIST_ROWS or any(figure(cell.text) for cell in rows[0]))


def sheet_blocks(cells: Sequence[Cell]) -> Iterator[Block]:
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
            yield from named_rows(rows, header.columns, header.names)
            continue
        count = conventional(rows, columns)
        header = _Header(first, columns, names_of(rows[:count], columns), len(rows) - count)
        yield from named_rows(rows[count:], columns, header.names, rows[:count])


def _parts(cells: Sequence[Cell]) -> Iterator[list[Row]]:
    """Runs of rows without an empty one between them; a merged cell fills all its rows."""
    part: list[Row] = []
    before = -1
    filled = [cell for cell in cells if cell.text]
    numbers = sorted({row for cell in filled for row in range(cell.row, cell.row + cell.height)})
    reaching = [*filled, Cell("", numbers[-1], 0)] if numbers else []  # so that a merged cell reaches down
    for number, row in zip(numbers, grid(reaching), strict=True):
        if part and number > before + 1:
            yield part
            part = []
        part.append(row)
        before = number
    if part:
        yield part
