"""Tables of PDFs: which share of the cells the reader recovers, in the right row and under the right header.

Three kinds of truth. ``tables_pdf.json``: tables of public PDFs, written down cell by cell and read against the images
of their pages by eye; the texts are not part of the project, so only fingerprints are kept. The formulary of the
starter corpus: the Markdown that its PDF is set from. Formularies printed here, one a style: ruled, or with three rules
as in journals (booktabs), with and without the header again on the second page.

A cell is right if a row of the reader holds its text, whole and alone, under its header, and that row's first two
cells are those of its row; the section or merged cell that covers several rows is a cell of each. White space does not
count in Chinese cells. One person wrote the cells down; nobody else has checked them.

    python -m tests.benchmarks.tables_pdf TRANSCRIPT    # rows of "header<tab>text<tab>..." -> fingerprints as JSON
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pymupdf

from localmed.ingest.chunking import text_of
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf.reader import read
from tests.benchmarks.common import Place, Row, met

TRUTH = Path(__file__).with_suffix(".json")
CORPUS = Path(__file__).parents[2] / "corpora"
DIGEST = 16  # hex characters
TARGET = 0.97
NOTED = "pdf.cells_lost"  # the reader's note on lost cells

_WIDE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")

Cells = Sequence[tuple[str, str]]  # (header, text), left to right


def run(place: Place) -> list[Row]:
    """One row for the tables of public PDFs and the formulary together, one a file, one a style printed here."""
    rows, right, total = [], 0, 0
    for load in json.loads(TRUTH.read_text("utf-8")):
        texts, notes = row_texts(place.data / load["file"], load["pages"])
        good, all_cells = counted(load["rows"], texts)
        right, total = right + good, total + all_cells
        pages = f"pages {', '.join(map(str, load['pages']))}; notes on lost cells: {notes}"
        rows.append(_row(f"Table cells, {Path(load['file']).name}", good, all_cells, pages))
    texts, notes = row_texts(CORPUS / "starter" / "reference" / "formulary.pdf")
    good, all_cells = counted(map(fingerprints, formulary()), texts)
    right, total = right + good, total + all_cells
    rows.append(_row("Table cells, formulary.pdf", good, all_cells, f"two pages; notes on lost cells: {notes}"))
    how = "cells written down by eye (the formulary's from its source), in the right row under the right header"
    first = Row("Table cells of PDFs", f"{TARGET}", _share(right, total), met(right >= TARGET * total), how)
    return [first, *rows, *printed(place.work)]


def _row(what: str, good: int, total: int, how: str) -> Row:
    return Row(what, "", _share(good, total), "-", how)


def _share(good: int, total: int) -> str:
    return f"{good / total:.3f} ({good} of {total})"


def row_texts(path: Path, pages: Sequence[int] = ()) -> tuple[list[str], int]:
    """The text of each table row of ``path`` on ``pages`` (of all without), and how many notes name lost cells."""
    (record,) = (record for record in read(path, FieldMapping()) if isinstance(record, SourceRecord))
    rows = [block.lines for block in record.blocks if block.kind == "row"]
    kept = [lines for lines in rows if not pages or any(line.box and line.box.page in pages for line in lines)]
    return [text_of(lines)[0] for lines in kept], sum(note.code == NOTED for note in record.notes)


def counted(rows: Iterable[Iterable[str]], texts: Sequence[str]) -> tuple[int, int]:
    """How many of the cells whose fingerprints are ``rows`` some of ``texts`` holds, and how many cells there are."""
    values = {value for text in texts for value in _held(text)}
    cells = [cell for row in rows for cell in row]
    return sum(cell in values for cell in cells), len(cells)


def fingerprints(cells: Cells) -> list[str]:
    """One for each of ``cells``: of the row's first two texts, the cell's header and its text."""
    first, second = cells[0][1], cells[1][1]
    return [_digest(first, second, header, text) for header, text in cells]


def _digest(*parts: str) -> str:
    return sha256("\x1f".join(map(_plain, parts)).encode()).hexdigest()[:DIGEST]


def _plain(text: str) -> str:
    blank = "" if _WIDE.search(text) else " "
    return blank.join(unicodedata.normalize("NFKC", text).split())


def _held(text: str) -> Iterator[str]:
    """The fingerprints of all cells that a row's ``text`` may be read as: semicolons may also stand within cells."""
    parts = re.split(r"(；|; )", text)
    marks = range(0, len(parts), 2)
    spans = [(start, end) for start in marks for end in marks if start <= end]
    for (_, one), (two, end) in itertools.product([span for span in spans if span[0] == 0], spans):
        if two != one + 2:
            continue
        for (_, first), (_, second) in itertools.product(_cells(parts, 0, one), _cells(parts, two, end)):
            for start, stop in [(0, one), (two, end), *(span for span in spans if span[0] > end)]:
                for header, value in _cells(parts, start, stop):
                    yield _digest(first, second, header, value)


def _cells(parts: Sequence[str], start: int, end: int) -> Iterator[tuple[str, str]]:
    whole = "".join(parts[start : end + 1])
    yield "", whole
    for mark in ("：", ": "):
        header, separator, value = whole.partition(mark)
        if separator:
            yield header, value


def formulary() -> Iterator[Cells]:
    """The rows of the starter corpus's formulary, from its Markdown."""
    lines = (CORPUS / "starter_sources" / "formulary.md").read_text("utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")]
    for row in table[2:]:
        yield list(zip(table[0], row, strict=True))


HEADERS = ("Medicine", "Form", "Dose (mg/kg)", "Maximum (mg/day)", "Notes")
STYLES = (
    "ruled, header repeated",
    "ruled, header once",
    "booktabs, header repeated",
    "booktabs, header once",
    "no rules, header repeated",
)
EDGES = (40, 140, 240, 320, 410, 555)
LEADING = 12.0
BREAK = 18  # rows on the first page


def printed(work: Path) -> list[Row]:
    """What the reader makes of formularies printed here: 36 rows over two pages, cells of up to three lines."""
    measured = []
    for number, style in enumerate(STYLES):
        path = work / f"formulary-{number}.pdf"
        rows = _print(path, style.partition(",")[0], again=style.endswith("repeated"))
        texts, notes = row_texts(path)
        good, total = counted((fingerprints(list(zip(HEADERS, row, strict=True))) for row in rows), texts)
        how = f"printed by the benchmark over two pages; notes on lost cells: {notes}"
        measured.append(_row(f"Table cells, own formulary, {style}", good, total, how))
    return measured


def _medicines() -> list[tuple[str, ...]]:
    notes = ("take with food", "avoid below an eGFR of 30 mL/min; ask the pharmacist in renal failure", "none known")
    forms = ("tablet 5 mg", "capsule 250 mg or oral solution 125 mg/5 mL", "injection 10 mg/mL")
    rows: list[tuple[str, ...]] = []
    for number in range(1, 37):
        dose = f"{number / 4} to {number / 2}"
        name = f"Medicine {chr(65 + number % 26)}{number}"
        rows.append((name, forms[number % 3], dose, f"{25 * number}", notes[number * 7 % 3]))
    return rows


def _print(path: Path, rules: str, again: bool) -> list[tuple[str, ...]]:
    rows = _medicines()
    document = pymupdf.open()
    for index, part in enumerate((rows[:BREAK], rows[BREAK:])):
        page = document.new_page(width=595, height=842)
        page.insert_text((40, 40), f"Our formulary, part {index + 1}", fontsize=9)
        _print_rows(page, [HEADERS, *part] if again or not index else part, rules, headed=again or not index)
    document.save(str(path))
    document.close()
    return rows


def _print_rows(page: Any, rows: Sequence[Sequence[str]], rules: str, headed: bool) -> None:
    top = 60.0
    levels = [top]
    for number, row in enumerate(rows):
        cells = [
            _wrapped(text, right - left - 8) for text, (left, right) in zip(row, itertools.pairwise(EDGES), strict=True)
        ]
        for left, lines in zip(EDGES, cells, strict=False):
            for place, text in enumerate(lines):
                font = "hebo" if headed and not number else "helv"
                page.insert_text((left + 4, top + LEADING * (place + 0.8)), text, fontsize=8.5, fontname=font)
        top += LEADING * max(map(len, cells)) + 4
        levels.append(top)
    few = [levels[0], *([levels[1]] if headed else []), levels[-1]]
    for level in {"ruled": levels, "booktabs": few, "no rules": []}[rules]:
        page.draw_line((EDGES[0], level - 2), (EDGES[-1], level - 2))
    for edge in EDGES if rules == "ruled" else ():
        page.draw_line((edge, levels[0] - 2), (edge, levels[-1] - 2))


def _wrapped(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if pymupdf.get_text_length(longer, fontname="hebo", fontsize=8.5) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


if __name__ == "__main__":
    sheets = [line.split("\t") for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
    print(json.dumps([fingerprints(list(zip(row[::2], row[1::2], strict=True))) for row in sheets]))
