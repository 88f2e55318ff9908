"""Uncertain tables are marked, certain ones are not; a model finds tables without borders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymupdf
import pytest

from localmed.config import ChunkSettings
from localmed.domain import Document, digest
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf import grid, reader
from localmed.ingest.readers.pdf.grid import find_ruled
from localmed.ingest.readers.pdf.layout import Placed
from localmed.ingest.readers.pdf.scan import place_in_tables
from localmed.ingest.readers.pdf.text import Piece
from localmed.ingest.reading import passages, text_of
from tests.ingest.readers.pdf import fixtures

HEAD = ("Medicine", "Dose", "Interval")
YEARS, OTHER = ("What", "2020", "2021"), ("Name", "Code", "Start")
EDGES = (50, 230, 330, 480)
WHOLE = [
    ("amoxicillin", "500 mg", "every 8 hours"),
    ("doxycycline", "200 mg", "once a day"),
    ("warfarin", "as per INR", "daily"),
]


def drawn(path: Path, *tables: Sequence[Sequence[str]], edges: Sequence[Sequence[float]] = (), paper: int = 0) -> Path:
    """A ruled table a page, their first rows bold; ``paper``: how far down white is printed."""
    document = pymupdf.open()
    for number, rows in enumerate(tables):
        page = document.new_page(width=560, height=165 if paper else 500)
        if paper:
            page.draw_rect((0, 0, 560, paper), color=None, fill=(1, 1, 1))
        bold = [at for at, row in enumerate(rows) if row in (HEAD, YEARS, OTHER)]
        fixtures.ruled(page, 60, rows, bold, edges[number] if edges else EDGES)
        page.insert_text((50, 460), "Doses are for adults with normal renal function, and are reviewed.", fontsize=10)
    return fixtures.save(document, path)


def read(path: Path) -> SourceRecord:
    (record,) = (item for item in reader.read(path, FieldMapping()) if isinstance(item, SourceRecord))
    return record


def rows_of(record: SourceRecord) -> list[bool]:
    return [block.doubtful for block in record.blocks if block.kind == "row"]


def texts(record: SourceRecord) -> list[str]:
    return [text_of(block.lines)[0] for block in record.blocks if block.kind == "row"]


@pytest.mark.parametrize("more", [[], [("Study", "92\n[80 to 97]", "0.78 (0.69,\n0.89)")]], ids=["", "intervals"])
def test_a_table_that_is_whole_is_certain(tmp_path: Path, more: list[tuple[str, str, str]]) -> None:
    record = read(drawn(tmp_path / "a.pdf", [HEAD, *more, *WHOLE]))
    assert rows_of(record) == [False] * len([*more, *WHOLE])
    assert "pdf.tables_doubtful" not in {note.code for note in record.notes}


@pytest.mark.parametrize(
    "rows",
    [
        [HEAD, ("Advise paracetamol, or if preferred,", "500 mg", "four"), ("ibuprofen for pain, or", "1 g", "twice"),
         ("back-up antibiotic.", "250 mg", "daily")],  # a sentence cut at the rows' edges
        [YEARS, ("Births in the district", "98,", "452"), ("Deaths", "1,", "204")],
        [HEAD, ("Death\nStroke", "0.76 (0.60-0.97)\n0.78 (0.60-1.02)", "24\n22"), *[("Fall", "0.9", "3")] * 3],
        [HEAD, ("child", "5 mL\n10 mL", "daily"), *[("adult", "20 mL", "daily")] * 3],
        [HEAD, *WHOLE, ("doxycycline", "200 mg or", "daily")],
        [HEAD, *WHOLE, OTHER],
        [HEAD, ("Healthy\n850 mg", "1.03\n1.60", "\n2.75")],  # two rows of one box, and one of them has no value
    ],
    ids=["cut sentences", "a number in two cells", "two values in a cell", "two doses in a cell", "broken off",
         "another header", "no value at one line"],
)  # fmt: skip
def test_a_torn_table_is_told_and_its_rows_and_passages_are_not_certain(
    tmp_path: Path, rows: list[Sequence[str]]
) -> None:
    record = read(drawn(tmp_path / "a.pdf", rows))
    torn = rows_of(record)
    assert torn
    assert all(torn)
    assert "pdf.tables_doubtful" in {note.code for note in record.notes}
    document = Document("d", "c", "k", "T", "en", "a", "0" * 64, digest("a"), "application/pdf")
    made = [(one.table, one.doubtful) for one in passages(record, document, ChunkSettings())]
    assert made == [(True, True), (False, False)], "text beside it is certain"


def test_a_word_that_runs_over_a_border_is_no_two_cells(tmp_path: Path) -> None:
    document, page = fixtures.new_page(width=560, height=500)
    for number in range(4):
        page.draw_line((50, 60 + 20 * number), (480, 60 + 20 * number))
    for edge in (50, 70, 330, 480):
        page.draw_line((edge, 60), (edge, 120))
    for number, words in enumerate(("Healthy diet for adults", "Fruits and vegetables", "Nuts and whole grains")):
        page.insert_text((56, 74 + 20 * number), words, fontsize=12)
        page.insert_text((340, 74 + 20 * number), f"{number + 2} portions", fontsize=12)
    record = read(fixtures.save(document, tmp_path / "a.pdf"))
    assert rows_of(record) == [True] * 3


@pytest.mark.parametrize(
    ("first", "edges", "doubtful"),
    [
        ([HEAD, ("Co-amoxiclav or", "625 mg", "8-hourly"), ("doxycycline", "200 mg", "daily")], EDGES, [True] * 5),
        ([HEAD, *WHOLE], (50, 200, 360, 480), [False] * 3 + [True] * 3),  # its names stand over other columns
    ],
)
def test_what_goes_on_from_a_table_that_is_torn_or_has_other_columns_is_not_certain(
    tmp_path: Path, first: list[Sequence[str]], edges: Sequence[float], doubtful: list[bool]
) -> None:
    assert rows_of(read(drawn(tmp_path / "a.pdf", first, WHOLE, edges=(EDGES, edges)))) == doubtful


def test_white_behind_a_table_is_no_border_of_it(tmp_path: Path) -> None:
    """The white ends within the first row."""
    rows = [HEAD, ("co-trimoxazole\nby mouth", "500 mg", "every\n8 hours"), *WHOLE]
    plain, behind = read(drawn(tmp_path / "a.pdf", rows)), read(drawn(tmp_path / "b.pdf", rows, paper=91))
    assert len(texts(plain)) == 4
    assert texts(behind) == texts(plain)


def test_a_row_is_not_cut_where_its_lines_go_on(tmp_path: Path) -> None:
    document, page = fixtures.new_page(width=560, height=300)
    for height in (60, 90, 160, 230):
        page.draw_line((50, height), (480, height))
    for edge in EDGES:
        page.draw_line((edge, 60), (edge, 230))
    for edge, text in zip(EDGES, ("Person with", "Target", "Source"), strict=False):
        page.insert_text((edge + 4, 80), text, fontsize=10, fontname="hebo")
    for top, target in ((90, "130/80"), (160, "140/90")):  # the cells are centred, so that their lines do not meet
        fixtures.lines(page, 54, top + 22, ["kidney disease, and albumin to", "creatinine ratio of 70 mg/", "mmol"])
        fixtures.lines(page, 234, top + 22 + 13, ["Below", target])
        fixtures.lines(page, 334, top + 22 + 13, ["guideline on kidney", "disease (1.6.2)"])
    record = read(fixtures.save(document, tmp_path / "a.pdf"))
    rows = [("Below 130/80" in row, "Below 140/90" in row) for row in texts(record)]
    assert rows == [(True, False), (False, True)]


def test_a_long_row_over_the_whole_width_ends_the_section_before(tmp_path: Path) -> None:
    long = ("Drugs that are excreted by the kidney and for which levels are measured daily",)
    found = texts(read(drawn(tmp_path / "a.pdf", [("For everybody:",), WHOLE[0], long, WHOLE[1]])))
    assert [row.startswith("For everybody") for row in found] == [True, True, False, False]


def test_a_list_in_columns_whose_lines_do_not_meet_is_told(tmp_path: Path) -> None:
    """No borders, labels centred beside two lines each: read line by line, amounts would be beside other labels."""
    document, page = fixtures.new_page(width=560, height=400)
    fixtures.lines(
        page, 50, 60, ["Doses are for people with normal renal function, and are looked at again each year."]
    )
    for top, label in ((100, "adults:"), (140, "children:")):
        page.insert_text((50, top + 6.5), label, fontsize=10)
        fixtures.lines(page, 130, top, ["take two tablets every six hours", "while symptoms last"])
    page.insert_text((50, 170), "infants:", fontsize=10)
    page.insert_text((130, 170), "ask a doctor", fontsize=10)
    record = read(fixtures.save(document, tmp_path / "a.pdf"))
    torn = " ".join(text_of(block.lines)[0] for block in record.blocks if block.doubtful)
    assert all(words in torn for words in ("adults:", "children:", "two tablets", "symptoms last", "ask a"))
    assert not record.blocks[0].doubtful
    assert "pdf.tables_doubtful" in {note.code for note in record.notes}


# --- tables without borders, as the layout model sees them -----------------------------------------------------------


PLACES = (50, 160, 260, 380, 470)
ROWS = [
    ("Medicine", "Form", "Usual adult dose", "Maximum a day"),
    ("Amlodipine", "Tablet 5 mg", "5 mg once a day", "10 mg"),
    ("Bisoprolol", "Tablet 2.5 mg", "1.25 mg once a day", "10 mg"),
    ("Furosemide", "Tablet 40 mg", "40 mg in the morning", "80 mg"),
    ("Metformin", "Tablet 500 mg", "500 mg twice a day", "2000 mg"),
    ("Ramipril", "Capsule 2.5 mg", "2.5 mg once a day", "10 mg"),
    ("Warfarin", "Tablet 3 mg", "by the INR", "by the INR"),
]


def sheet(document: Any, shaded: bool = False) -> Any:
    page = document.new_page(width=595, height=500)
    page.insert_text((50, 50), "Our formulary lists what the ward keeps in stock.", fontsize=10)
    for number, row in enumerate(ROWS):
        top = 80 + 22 * number
        if shaded and number % 2:
            page.draw_rect((45, top - 14, 560, top + 8), color=None, fill=(0.88, 0.88, 0.88))
        for x, text in zip(PLACES, row, strict=False):
            page.insert_text((x, top), text, fontsize=10)
    return page


@pytest.mark.parametrize("shaded", [False, True])
def test_a_table_without_borders_and_bold_headers(tmp_path: Path, shaded: bool) -> None:
    """The model does not change the search for drawn borders."""
    document = pymupdf.open()
    first = find_ruled(sheet(document, shaded))
    document.save(tmp_path / "table.pdf")
    assert texts(read(tmp_path / "table.pdf")) == [
        "; ".join(f"{name}: {text}" for name, text in zip(ROWS[0], row, strict=True)) for row in ROWS[1:]
    ]
    assert find_ruled(document[0]) == first
    assert pymupdf._get_layout is None  # hooked in, it changes that search from the second page on


def test_a_table_without_rules_on_a_page_read_by_ocr() -> None:
    pieces = [
        Piece(x, 80 + 22 * number, x + 5.2 * len(text), 92 + 22 * number, text, size=10.0)
        for number, row in enumerate(ROWS)
        for x, text in zip(PLACES, row, strict=False)
    ]
    placed, (seen,), _ = place_in_tables(pieces, (), 595, 500)
    assert (seen.height, seen.width) == (len(ROWS), 4)
    assert [piece.cell for piece in placed] == list(seen.cells)


def test_a_header_that_reaches_over_the_edge_that_the_model_saw_joins_no_columns(monkeypatch: Any) -> None:
    printed = [
        *((77, 135, "Potassium"), (180, 318, "Calcium gluconate 10 %"), (382, 498, "Insulin with glucose")),
        *((75, 126, "6.5 to 6.9"), (141, 264, "30 mL over 10 minutes"), (361, 400, "10 units")),
        *((75, 126, "7.0 to 7.4"), (141, 264, "20 mL over 10 minutes"), (361, 400, "20 units")),
    ]
    pieces = [
        Piece(x0, 281 + 18 * (number // 3), x1, 299 + 18 * (number // 3), text, size=12.0)
        for number, (x0, x1, text) in enumerate(printed)
    ]
    seen = (Placed(75, 280, 512, 336), [75.0, 132.9, 350.6, 512.0], [280.0, 299.0, 317.0, 336.0])
    monkeypatch.setattr(grid, "_regions", lambda _: [seen])
    (table,) = grid.with_predicted(SimpleNamespace(rotation=0), pieces, [])
    assert [cell.columns for cell in table.cells] == [(0, 1), (1, 2), (2, 3)] * 3
    assert 133 <= table.edges[1] <= 143
