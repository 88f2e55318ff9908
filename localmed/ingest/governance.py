"""Reads a librarian's governance spreadsheet: one row a file, read whole or refused with the wrong row numbers.

::

    file             owner     approver   effective from   review by    edition
    sepsis.pdf       Dr Lin    Dr Wu      2026-12-01       2028-12-01   2026-11

The first row names the columns, in English or Chinese (``readers/vocabulary.toml``), in any order; others are reported.
``file`` is the path within the imported folder, the name if it is unique there, or the start of a document's id. An
empty cell changes nothing, "-" clears the field. Dates are 2026-12-31, 2026/12/31 or 2026年12月31日; one that begins
with the day is refused. ``make_template`` writes an unprintable character (a control, a mark of direction, a blank at
an end) as its escape, ``\\u001b``; ``read_sheet`` takes that and the name itself.

CSV (any encoding and separator that an import reads) or XLSX (its first sheet). Not covered: formulas without a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localmed.config import ReadBounds
from localmed.domain import Document, Message, message
from localmed.domain.errors import InputError
from localmed.ingest.readers import csv_rows, values, xlsx
from localmed.library.catalogue import Catalogue, ImportedFile
from localmed.library.governed import DATES, FIELDS, value_of
from localmed.process.files import contents, csv_cell

SHEET_BYTES = 10 * 2**20  # a row has some 100 bytes
SHEET_ROWS = 20_000  # the files of the largest collections
CLEAR = "-"
COLUMNS = tuple(values.vocabulary()["governance"])
LEAST_ID = 6  # characters of a document's id
_ID = re.compile(rf"[0-9a-f]{{{LEAST_ID},32}}")
_PART = re.compile(r"\d+|[A-Za-z]+")  # of a date
_ESCAPED = re.compile(r"^\s+|\s+$|\\(?=u[0-9a-f]{4}|U[0-9a-f]{8})")  # besides unprintable characters


@dataclass(frozen=True, slots=True)
class Row:
    """One row by its number in the sheet (1: the header); ``values`` by field, "" clears it."""

    number: int
    file: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows with content, and the columns that were left alone."""

    rows: tuple[Row, ...]
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is refused; never a cell's text, which may be a name."""

    row: int
    reason: Message


def read_sheet(path: Path) -> Sheet:
    """The sheet in ``path``; raise ``InputError`` if it has no column of files."""
    table = _table(path)
    header = next((number for number, row in enumerate(table) if any(row)), None)
    if header is None:
        raise InputError("governance.empty", name=path.name)
    columns = [_field(cell) for cell in table[header]]
    known = [column for column in columns if column]
    twice = [name for name, number in Counter(known).items() if number > 1]
    if "file" not in known or len(known) < 2 or twice:
        if twice:
            raise InputError("governance.column_twice", name=path.name, column=twice[0], columns=COLUMNS)
        raise InputError("governance.no_columns", name=path.name, columns=COLUMNS)
    rows = tuple(
        row for number, cells in enumerate(table[header + 1 :], header + 2) if (row := _row(number, cells, columns))
    )
    unused = tuple(cell for cell, field in zip(table[header], columns, strict=True) if cell and not field)
    return Sheet(rows, unused)


def _table(path: Path) -> list[list[str]]:
    data = contents(path, SHEET_BYTES)
    bounds = ReadBounds(archive_bytes=10 * SHEET_BYTES)
    table = xlsx.table(path, bounds) if path.suffix.lower() in (".xlsx", ".xlsm") else csv_rows.table(path, data)
    if len(table) > SHEET_ROWS:
        raise InputError("governance.rows", name=path.name, most=SHEET_ROWS)
    return table


def _field(header: str) -> str:
    plain = re.sub(r"[\s_-]+", " ", header).strip().casefold()
    own = plain.replace(" ", "_")
    return own if own in COLUMNS else values.meaning("governance", plain)


def _row(number: int, cells: Sequence[str], columns: Sequence[str]) -> Row | None:
    named = {
        field: csv_cell(cell.strip()) for field, cell in zip(columns, cells, strict=False) if field and cell.strip()
    }
    if not named:
        return None
    file = named.pop("file", "")
    return Row(number, file, {field: _value(field, cell) for field, cell in named.items()})


def _value(field: str, cell: str) -> str:
    if cell == CLEAR:
        return ""
    if field not in DATES:
        return cell
    date, parts = values.edition(cell), len(_PART.findall(cell))
    # A date of which a part makes no sense is refused as written: a month 31 would become the whole year
    whole = parts < 2 or len(date) >= (7 if parts == 2 else 10)
    return date if whole and not (len(date) == 4 and len(cell) >= 8) else cell


def match_rows(
    catalogue: Catalogue, collection: str, rows: Iterable[Row]
) -> tuple[list[tuple[Row, tuple[Document, ...]]], list[Fault]]:
    """The documents of each row; and faults for rows that match none or several files, or a file of an earlier row."""
    files = catalogue.files(collection)
    matches, faults = list[tuple[Row, tuple[Document, ...]]](), list[Fault]()
    taken: dict[str, int] = {}
    for row in rows:
        documents = _documents(catalogue, collection, files, row.file)
        if isinstance(documents, Message):
            faults.append(Fault(row.number, documents))
            continue
        earlier = next((taken[document.id] for document in documents if document.id in taken), 0)
        if earlier:
            faults.append(Fault(row.number, message("governance.same_document", row=earlier)))
            continue
        taken |= dict.fromkeys((document.id for document in documents), row.number)
        matches.append((row, documents))
    return matches, faults


def _documents(
    catalogue: Catalogue, collection: str, files: Mapping[str, ImportedFile], name: str
) -> tuple[Document, ...] | Message:
    if not name:
        return message("governance.no_file")
    paths = [path for path, file in files.items() if _names(name, path, _within(path, file.root))]
    paths = paths or [path for path in files if _names(name, Path(path).name)]
    if len(paths) > 1:
        return message("governance.several_files", count=len(paths), collection=collection)
    if paths and (documents := catalogue.of_file(collection, paths[0])):
        return tuple(documents)
    if _ID.fullmatch(name):
        matching = [document for document in catalogue.documents(collection) if document.id.startswith(name)]
        if len(matching) == 1:
            return tuple(matching)
    return message("governance.unknown_file", collection=collection)


def _names(cell: str, *names: str) -> bool:
    """Whether a cell is one of ``names``, written plainly or as ``make_template`` writes it."""
    return cell in names or cell in map(escape_unprintable, names)


def escape_unprintable(text: str) -> str:
    """``text`` on one line with an escape for each unprintable character; different texts stay different."""
    marked = _ESCAPED.sub(lambda match: "".join(map(_escape, match[0])), text)
    return "".join(character if character.isprintable() else _escape(character) for character in marked)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _within(path: str, root: str) -> str:
    return str(Path(path).relative_to(root)) if root and Path(path).is_relative_to(root) else path


def make_template(catalogue: Catalogue, collection: str) -> list[list[str]]:
    """All files of a collection as a sheet that ``read_sheet`` takes, without server paths; the header first."""
    rows = [[name.replace("_", " ") for name in ("file", *FIELDS)]]
    files = catalogue.files(collection)
    names = Counter(Path(path).name for path in files)
    for path, file in sorted(files.items()):
        documents = catalogue.of_file(collection, path)
        stored = {tuple(value_of(document, field) for field in FIELDS) for document in documents}
        cells = next(iter(stored)) if len(stored) == 1 else ("",) * len(FIELDS)  # of several records, what all share
        if documents:
            within, name = _within(path, file.root), Path(path).name
            own = within if within != path else name if names[name] == 1 else documents[0].id
            rows.append([escape_unprintable(own), *map(escape_unprintable, cells)])
    return rows


def differs(document: Document, field: str, value: str) -> bool:
    """Whether ``value`` differs from the document's field, written plainly or as ``make_template`` writes it."""
    return not _names(value, value_of(document, field))
