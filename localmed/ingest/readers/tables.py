"""Writes tables of any format as independent rows: each row repeats its headers and its section.

``Medicine: amoxicillin; Dose: 500 mg`` (Chinese: ``药物：阿莫西林；剂量：500mg``), like ``pdf/tables.py``.

Rules: no filled cell is dropped; empty cells are left out. A cell over several rows is repeated in each, a cell over
several columns has all their names, and a cell over the whole width is a section, repeated in the rows below. A header
of two levels is joined. A header over an empty column is written as a row. Header rows are those that the source marks,
else those that ``_guess_headers`` finds in documents (cautious: two columns may be names and values) and
``_sheet_headers`` in sheets.

A sheet is divided by its empty rows. Rows with one cell above a table are paragraphs, and so is a part of one column. A
part that begins in the same column and is no wider than the previous table continues under its header if that table
was a list (``LIST_ROWS``) or the part begins with figures: an empty row within a list costs nothing.

Not covered: headers at the side only; two tables side by side in one sheet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localmed.ingest.parsed import Block
from localmed.ingest.readers.text import has_chinese

HEADER_CHARACTERS = 80  # a marked header; the longest in drug tables holds ~70
PLAIN_HEADER_CHARACTERS = 30  # an unmarked header
SECTION_CHARACTERS = 60  # a longer full-width row is a note of the table
MOST_SPAN = 1_000  # columns or rows that a cell may claim, as HTML allows; more is a slip or an attack
LIST_ROWS = 3  # below a header; a shorter table may be the names and values above the real one
_LONGER = 2  # times a header's length, above which the cells below are text


@dataclass(frozen=True)
class Cell:
    """A cell with one line of clean text; 0-based ``row`` and ``column``; ``header``: the source marks it as one."""

    text: str
    row: int
    column: int
    height: int = 1
    width: int = 1
    header: bool = False


Row = Sequence[Cell]  # the cells of a row by column, including those that began in rows above


def table_blocks(cells: Sequence[Cell]) -> list[Block]:
    """Make blocks of kind ``row`` from the rows of a table."""
    rows, columns = rows_of(cells), width_of(cells)
    count = 0
    while count < len(rows) and all(cell.header for cell in rows[count]):
        count += 1
    if not any(not is_full(cell, columns) for row in rows[:count] for cell in row):
        count = _guess_headers(rows, columns)
    return _named_rows(rows[count:], columns, names_of(rows[:count], columns), rows[:count])


def rows_of(cells: Sequence[Cell]) -> list[Row]:
    """The rows with any text, from the top."""
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
    """The number of columns or rows that a cell claims by a source's ``number``."""
    valid = number.isdecimal() and number.isascii() and len(number) < 6
    return min(int(number), MOST_SPAN) if valid else otherwise


def width_of(cells: Sequence[Cell]) -> int:
    """The number of columns."""
    return max((cell.column + cell.width for cell in cells), default=0)


def names_of(rows: Sequence[Row], columns: int) -> tuple[str, ...]:
    """The name of each column: the texts above it in header ``rows``, except full-width ones."""
    names: list[list[str]] = [[] for _ in range(columns)]
    for row in rows:
        for cell in row:
            if not is_full(cell, columns):
                for column in range(cell.column, min(cell.column + cell.width, columns)):
                    if cell.text not in names[column]:
                        names[column].append(cell.text)
    return tuple(" ".join(parts) for parts in names)


def _named_rows(rows: Sequence[Row], columns: int, names: Sequence[str], head: Sequence[Row] = ()) -> list[Block]:
    """``rows`` under ``names``, after the rows of ``head`` with cells that appear in none of them."""
    lost = has_unused(rows, columns, names)
    blocks = [_block(row, (), "") for row in head if lost or any(is_full(cell, columns) for cell in row)]
    section = ""
    for row in rows:
        if is_full(row[0], columns):
            section = row[0].text if len(row[0].text) <= SECTION_CHARACTERS else section
            blocks.append(_block(row, (), ""))
        else:
            blocks.append(_block(row, names, section))
    return blocks


def has_unused(rows: Sequence[Row], columns: int, names: Sequence[str]) -> bool:
    """Whether a name appears in no row, because its column is empty apart from sections."""
    cells = (cell for row in rows for cell in row if not is_full(cell, columns))
    used = {column for cell in cells for column in range(cell.column, cell.column + cell.width)}
    return any(name and column not in used for column, name in enumerate(names))


def _guess_headers(rows: Sequence[Row], columns: int) -> int:
    """The number of header rows of a table that marks none: short names above figures or longer text."""
    if len(rows) < 2 or columns < 3 or len(rows[0]) < 2:
        return 0
    named = all(is_plain(cell.text) and not has_figure(cell.text) for cell in rows[0])
    return _count_levels(rows, columns) if named and any(differs(cell, rows[1:]) for cell in rows[0]) else 0


def _sheet_headers(rows: Sequence[Row], columns: int) -> int:
    """The number of header rows of a sheet: its first row if it has several short, distinct names.

    A year among words is a name; other numbers and dates are not.
    """
    texts = [cell.text for cell in rows[0]]
    figures = sum(any(map(str.isdigit, text)) and not any(map(str.isalpha, text)) for text in texts)
    years = sum(len(text) == 4 and text.isdecimal() and "1900" <= text <= "2100" for text in texts)
    short = all(len(text) <= HEADER_CHARACTERS for text in texts)
    named = short and len(set(texts)) == len(texts) and figures == years and figures < len(texts)
    return _count_levels(rows, columns) if named and len(texts) > 1 and len(rows) > 1 else 0


def _count_levels(rows: Sequence[Row], columns: int) -> int:
    """1, or 2 if the first header row groups the columns that the second one names."""
    grouped = any(1 < cell.width < columns for cell in rows[0])
    second = grouped and len(rows) > 2 and not any(has_figure(cell.text) for cell in rows[1])
    return 2 if second else 1


def is_plain(text: str) -> bool:
    """Whether an unmarked ``text`` may be a header: short, and no sentence."""
    return len(text) <= PLAIN_HEADER_CHARACTERS and not text.endswith((".", "。", "；", ";"))


def differs(head: Cell, body: Sequence[Row]) -> bool:
    """Whether the column below ``head`` contains figures or much longer text."""
    below = [cell.text for row in body for cell in row if cell.column == head.column and cell.width == head.width]
    figures = sum(map(has_figure, below))
    return bool(below) and (figures > len(below) / 2 or sum(map(len, below)) > _LONGER * len(head.text) * len(below))


def is_full(cell: Cell, columns: int) -> bool:
    """Whether ``cell`` covers the whole width."""
    return columns > 1 and cell.width >= columns


def has_figure(text: str) -> bool:
    """Whether there is a figure before any bracket: units and years in brackets belong to names."""
    return any(character.isdigit() for character in text.partition("（")[0].partition("(")[0])


def _block(row: Row, names: Sequence[str], section: str) -> Block:
    parts = [section] if section else []
    for cell in row:
        name = name_of(cell, names)
        colon = "：" if has_chinese(name + cell.text) else ": "
        parts.append(f"{name}{colon}{cell.text}" if name else cell.text)
    return Block.of("row", ("；" if has_chinese("".join(parts)) else "; ").join(parts))


def name_of(cell: Cell, names: Sequence[str]) -> str:
    """The header of ``cell``: the ``names`` of its columns."""
    return " / ".join(dict.fromkeys(filter(None, names[cell.column : cell.column + cell.width]))).rstrip(":：")


# --- sheets ----------------------------------------------------------------------------------------------------------


def sheet_blocks(cells: Sequence[Cell]) -> Iterator[Block]:
    """Make blocks from the cells of one sheet."""
    names: tuple[str, ...] = ()  # of the last table
    start, width, length = 0, 0, 0  # its first column, end and rows below the header
    for part in _parts(cells):
        alone = next((at for at, row in enumerate(part) if len(row) > 1), len(part))
        yield from (Block.of("paragraph", row[0].text) for row in part[:alone])
        rows = part[alone:]
        if not rows:
            continue
        columns = max(cell.column + cell.width for row in rows for cell in row)
        first = min(cell.column for row in rows for cell in row)
        fits = any(names) and not alone and first == start and columns <= width
        if fits and (length >= LIST_ROWS or any(has_figure(cell.text) for cell in rows[0])):
            yield from _named_rows(rows, width, names)
            continue
        count = _sheet_headers(rows, columns)
        start, width, length, names = first, columns, len(rows) - count, names_of(rows[:count], columns)
        yield from _named_rows(rows[count:], columns, names, rows[:count])


def _parts(cells: Sequence[Cell]) -> Iterator[list[Row]]:
    """Runs of rows without an empty one between them; a merged cell fills all its rows."""
    part: list[Row] = []
    before = -1
    filled = [cell for cell in cells if cell.text]
    numbers = sorted({row for cell in filled for row in range(cell.row, cell.row + cell.height)})
    reaching = [*filled, Cell("", numbers[-1], 0)] if numbers else []  # so that a merged cell reaches down
    for number, row in zip(numbers, rows_of(reaching), strict=True):
        if part and number > before + 1:
            yield part
            part = []
        part.append(row)
        before = number
    if part:
        yield part
