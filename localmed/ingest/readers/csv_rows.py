"""Reads CSV and TSV: a table as rows with their headers, or a record a row if the manifest maps fields.

Rules: the separator (comma, semicolon, tab or bar) is the one that gives most of the first lines the same number of
columns; quoted cells may contain line ends. Without ``[fields]`` the file is one document, read as a sheet
(``tables.py``). With them each row is a record, its fields named by the first row (``json_records.py``).

Not covered: quotes other than ``"``; numbers stay as written.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import bounds_of, json_records, tables
from localmed.ingest.readers.encoding import text_of
from localmed.ingest.readers.tables import Cell
from localmed.ingest.readers.text import whole_text
from localmed.ingest.readers.values import one_line

_SEPARATORS = (",", ";", "\t", "|")
_TRIED = 30  # lines that decide on the separator


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield the table as one record, or a record for each row."""
    text, notes = whole_text(path)
    csv.field_size_limit(bounds_of(mapping).record_characters)
    rows = list(_rows(path, text))
    if mapping.fields:
        yield from json_records.make_records(_items(path, rows), mapping)
        return
    cells = [Cell(one_line(text), number, column) for number, row in enumerate(rows) for column, text in enumerate(row)]
    blocks = tuple(tables.sheet_blocks(cells))
    if not blocks:
        raise InputError("reader.no_text", name=path.name)
    yield SourceRecord("", path.stem, blocks, notes=notes)


def table(path: Path, data: bytes) -> list[list[str]]:
    """The rows of ``data``, the content of ``path``, each cell on one line; raise ``InputError`` if it is no table."""
    return [[one_line(cell) for cell in row] for row in _rows(path, text_of(path, data))]


def _count_alike(text: str, separator: str) -> tuple[int, int]:
    """The number of first rows with the commonest number of columns above one, and that number."""
    lines = "\n".join(text.split("\n", _TRIED)[:_TRIED])
    try:
        counts = Counter(len(row) for row in csv.reader(io.StringIO(lines), delimiter=separator) if len(row) > 1)
    except csv.Error:
        return 0, 0
    return max(((rows, columns) for columns, rows in counts.items()), default=(0, 0))


def _rows(path: Path, text: str) -> Iterator[list[str]]:
    separator = max(_SEPARATORS, key=lambda one: _count_alike(text, one))
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    try:
        yield from reader
    except csv.Error:
        raise InputError("reader.csv_broken", name=path.name, line=reader.line_num) from None


def _items(path: Path, rows: list[list[str]]) -> Iterator[json_records.Item]:
    if not rows:
        raise InputError("reader.no_text", name=path.name)
    names = [one_line(name) for name in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if any(map(str.strip, row)):
            where = message("reader.row", number=number)
            value: Any = dict(zip(names, row, strict=False))
            more = len(row) > len(names) and any(map(str.strip, row[len(names) :]))
            yield where, "", Fault(where, message("reader.more_cells")) if more else value
