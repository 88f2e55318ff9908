"""Tables that were not read with certainty: noticed and told, and a table that is whole is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from localmed.config import ChunkSettings
from localmed.domain import Document, digest
from localmed.ingest.chunking import passages, text_of
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf import reader
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
    document = pymupdf.open()
    page = document.new_page(width=560, height=500)
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
    """It ends within the first row."""
    rows = [HEAD, ("co-trimoxazole\nby mouth", "500 mg", "every\n8 hours"), *WHOLE]
    plain, behind = read(drawn(tmp_path / "a.pdf", rows)), read(drawn(tmp_path / "b.pdf", rows, paper=91))
    assert len(texts(plain)) == 4
    assert texts(behind) == texts(plain)


def test_a_row_is_not_cut_where_its_lines_go_on(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=560, height=300)
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
    """No borders, labels centred beside two lines each: read line by line, amounts stand beside other people."""
    document = pymupdf.open()
    page = document.new_page(width=560, height=400)
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
