"""Reads Excel files (.xlsx, .xlsm): each sheet under its name, its tables (``tables.py``) as rows with their headers.

Rules: number formats that change the meaning are applied: dates become ISO, percentages get their sign, units from the
format stay beside the number. A formula is read as its stored value; formulas without one are counted in a note. Merged
cells are one cell. Hidden sheets, rows and columns are left out and noted.

Not covered: charts, pictures and comments (noted); rounding and colours of number formats.
"""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from localmed.config import ReadBounds
from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import bounds_of, office, tables
from localmed.ingest.readers.tables import Cell

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RANGE = re.compile(r"[A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7}")
_QUOTED = re.compile(r'"([^"]*)"')
_DATE_ONLY = re.compile(r"[hs]", re.IGNORECASE)
_FIGURES = 15  # significant digits of a spreadsheet's number; more are noise of binary fractions
# Errors of openpyxl in a damaged sheet: LookupError for missing shared strings and parts.
_BROKEN = (StopIteration, LookupError, ValueError, TypeError, ParseError, zipfile.BadZipFile)


@dataclass(slots=True)
class _Layout:
    """The merged and hidden parts of a sheet; 1-based rows and columns."""

    merged: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # top left -> (height, width)
    rows: set[int] = field(default_factory=set)  # hidden
    columns: list[tuple[int, int]] = field(default_factory=list)  # hidden, first to last
    unstored: int = 0  # formulas without a value


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield the file as one record."""
    notes = office.check(path, bounds_of(mapping))
    blocks: list[Block] = []
    layouts: list[_Layout] = []
    with _open_book(path) as book:
        for sheet in book.worksheets:
            if sheet.sheet_state == "visible":
                layouts.append(_read_layout(path, sheet._worksheet_path))
                parts = list(tables.sheet_blocks(_cells(sheet, layouts[-1])))
                blocks += [Block.of("heading", office.line(sheet.title), 1), *parts] if parts else []
    if not blocks:
        raise InputError("reader.no_text", name=path.name)
    notes += _notes(path, book, layouts)
    title = office.line(book.properties.title) or path.stem
    yield SourceRecord("", title, tuple(blocks), notes=tuple(notes))


def table(path: Path, bounds: ReadBounds) -> list[list[str]]:
    """The rows of the first visible sheet, including hidden ones; raise ``InputError`` if it cannot be opened."""
    office.check(path, bounds)
    with _open_book(path) as book:
        sheet = next(worksheet for worksheet in book.worksheets if worksheet.sheet_state == "visible")
        return [[_show(cell.value, cell.number_format or "") for cell in row] for row in sheet.iter_rows()]


def _show(value: Any, number_format: str) -> str:
    """A cell's value as text, by its number format."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time() and not _DATE_ONLY.search(number_format)
        return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
    if not isinstance(value, int | float):
        return office.line(str(value))
    section = number_format.split(";")[0]
    if "%" in _QUOTED.sub("", section):
        return f"{_plain(value * 100)}%"
    # the format's text in quotation marks before and after the number, units mostly
    place = re.search(r"[0#?]|General", _QUOTED.sub(lambda match: "\x00" * len(match[0]), section))
    quoted = [(match.start() < place.start(), match[1]) for match in _QUOTED.finditer(section)] if place else []
    before, after = ("".join(text for first, text in quoted if first == side) for side in (True, False))
    return office.line(f"{before}{_plain(value)}{after}")


def _plain(value: float) -> str:
    if isinstance(value, int) or (value.is_integer() and abs(value) < 10**_FIGURES):
        return str(int(value))
    return format(value, f".{_FIGURES}g")


@contextmanager
def _open_book(path: Path) -> Iterator[Any]:
    """The workbook of an original; openpyxl opens only files with an ending, so it gets the open file."""
    import openpyxl

    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # openpyxl warns of unknown styles and extensions
        options = {"read_only": True, "data_only": True, "keep_links": False}
        book = office.open_package(path, lambda _: openpyxl.load_workbook(file, **options))
        try:
            yield book
        except _BROKEN as error:
            raise office.damaged(path, error) from None
        finally:
            book.close()


def _cells(sheet: Any, layout: _Layout) -> list[Cell]:
    """The visible cells, 0-based; hidden rows leave no gap that would divide a table."""
    filled: list[tuple[int, int, str]] = []
    for row in sheet.iter_rows():
        for cell in row:
            if cell.value is None or cell.row in layout.rows:
                continue
            if not any(first <= cell.column <= last for first, last in layout.columns):
                filled.append((cell.row, cell.column, _show(cell.value, cell.number_format or "")))
    covered = {row + layout.merged.get((row, column), (1, 1))[0] - 1 for row, column, _ in filled}
    rows = sorted({row for row, _, _ in filled} | covered)
    skipped = sorted(layout.rows)
    place = {row: row - 1 - sum(hidden < row for hidden in skipped) if skipped else row - 1 for row in rows}
    cells = []
    for row, column, text in filled:
        height, width = layout.merged.get((row, column), (1, 1))
        height = sum(row + down not in layout.rows for down in range(height))
        cells.append(Cell(text, place[row], column - 1, height, width))
    return cells


def _read_layout(path: Path, part: str) -> _Layout:
    from defusedxml.ElementTree import iterparse
    from openpyxl.utils.cell import range_boundaries

    layout = _Layout()
    with zipfile.ZipFile(path) as package, package.open(part.lstrip("/")) as file:
        for _, element in iterparse(file, forbid_dtd=True):
            if element.tag == _S + "c":
                formula, value = element.find(_S + "f"), element.find(_S + "v")
                layout.unstored += formula is not None and (value is None or not value.text)
            elif element.tag == _S + "row":
                if element.get("hidden") in ("1", "true"):
                    layout.rows.add(int(element.get("r", "0")))
                element.clear()
            elif element.tag == _S + "col" and element.get("hidden") in ("1", "true"):
                layout.columns.append((int(element.get("min", "0")), int(element.get("max", "0"))))
            elif element.tag == _S + "mergeCell" and _RANGE.fullmatch(element.get("ref", "")):
                left, top, right, bottom = range_boundaries(element.get("ref"))
                layout.merged[top, left] = (bottom - top + 1, right - left + 1)
    return layout


def _notes(path: Path, book: Any, layouts: list[_Layout]) -> Iterator[Message]:
    hidden = sum(sheet.sheet_state != "visible" for sheet in book.worksheets)
    rows = sum(len(layout.rows) for layout in layouts)
    columns = sum(last - first + 1 for layout in layouts for first, last in layout.columns)
    unstored = sum(layout.unstored for layout in layouts)
    if hidden:
        yield message("reader.hidden_sheets", count=hidden)
    if rows:
        yield message("reader.hidden_rows", count=rows)
    if columns:
        yield message("reader.hidden_columns", count=columns)
    if unstored:
        yield message("reader.formulas", count=unstored)
    with zipfile.ZipFile(path) as package:
        names = package.namelist()
    unread = sum("/charts/chart" in name or "/media/" in name or "/comments" in name for name in names)
    if unread:
        yield message("reader.charts", count=unread)
