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
EDGES = (50, 230, 330, 480)
WHOLE = [
    ("amoxicillin", "500 mg", "every 8 hours"),
    ("doxycycline", "200 mg", "once a day"),
    ("warfarin", "as per INR", "daily"),
]


def drawn(path: Path, rows: Sequence[Sequence[str]], head: Sequence[str] = HEAD, paper: float = 0.0) -> Path:
    """A ruled table; a line break in a cell begins a new line. ``paper``: how far down white is printed."""
    document = pymupdf.open()
    page = document.new_page(width=560, height=165 if paper else 500)
    if paper:
        page.draw_rect((0, 0, 560, paper), color=None, fill=(1, 1, 1))
    top, every = 60, [head, *rows]
    for number in range(len(every) + 1):
        page.draw_line((EDGES[0], top + 20 * number), (EDGES[-1], top + 20 * number))
    for edge in EDGES:
        page.draw_line((edge, top), (edge, top + 20 * len(every)))
    for number, row in enumerate(every):
        for edge, text in zip(EDGES, row, strict=False):
            font = "helv" if number and row[0] != "Name" else "hebo"
            lines = text.split("\n")
            for at, line in enumerate(lines):
                size, y = (9, 14) if len(lines) == 1 else (7, 8 + 8 * at)
                page.insert_text((edge + 4, top + 20 * number + y), line, fontsize=size, fontname=font)
    page.insert_text(
        (50, 460), "Doses are for adults with normal renal function, and are reviewed each year.", fontsize=10
    )
    return fixtures.save(document, path)


def read(path: Path) -> SourceRecord:
    (record,) = (item for item in reader.read(path, FieldMapping()) if isinstance(item, SourceRecord))
    return record


def rows_of(record: SourceRecord) -> list[bool]:
    return [block.doubtful for block in record.blocks if block.kind == "row"]


def test_a_table_that_is_whole_is_certain(tmp_path: Path) -> None:
    record = read(drawn(tmp_path / "a.pdf", WHOLE))
    assert rows_of(record) == [False] * 3
    assert "pdf.tables_doubtful" not in {note.code for note in record.notes}
    assert not any(rows_of(read(fixtures.table(tmp_path / "b.pdf"))))


@pytest.mark.parametrize(
    ("rows", "head"),
    [
        ([("Advise paracetamol, or if preferred,", "500 mg", "four"), ("ibuprofen for pain, or", "1 g", "twice"),
          ("back-up antibiotic.", "250 mg", "daily")], HEAD),  # a sentence cut at the rows' edges
        ([("Births in the district", "98,", "452"), ("Deaths", "1,", "204")], ("What", "2020", "2021")),
        ([("Death\nStroke", "0.76 (0.60-0.97)\n0.78 (0.60-1.02)", "24\n22"), *[("Fall", "0.9", "3")] * 3], HEAD),
        ([("child", "5 mL\n10 mL", "daily"), *[("adult", "20 mL", "daily")] * 3], HEAD),
        ([*WHOLE, ("doxycycline", "200 mg or", "daily")], HEAD),
        ([*WHOLE, ("Name", "Code", "Start")], HEAD),  # set bold
        ([("Healthy\n850 mg", "1.03\n1.60", "\n2.75")], HEAD),  # two rows of one box, and one of them has no value
    ],
    ids=["cut sentences", "a number in two cells", "two values in a cell", "two doses in a cell", "broken off",
         "another header", "no value at one line"],
)  # fmt: skip
def test_a_torn_table_is_told_and_its_rows_are_not_certain(
    tmp_path: Path, rows: list[Sequence[str]], head: Sequence[str]
) -> None:
    record = read(drawn(tmp_path / "a.pdf", rows, head))
    torn = rows_of(record)
    assert torn
    assert all(torn)
    assert "pdf.tables_doubtful" in {note.code for note in record.notes}


def test_a_passage_of_a_torn_table_is_one_and_text_beside_it_is_not(tmp_path: Path) -> None:
    record = read(
        drawn(tmp_path / "a.pdf", [("Births", "98,", "452"), ("Deaths", "1,", "204")], ("What", "2020", "2021"))
    )
    document = Document("d", "c", "k", "T", "en", "a", "0" * 64, digest("a"), "application/pdf")
    made = list(passages(record, document, ChunkSettings()))
    assert [(one.table, one.doubtful) for one in made] == [(True, True), (False, False)]


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


def test_what_goes_on_from_a_torn_table_is_not_certain_either(tmp_path: Path) -> None:
    document = pymupdf.open()
    for rows in ([HEAD, ("Co-amoxiclav or", "625 mg", "8-hourly"), ("doxycycline", "200 mg", "daily")], WHOLE):
        page = document.new_page(width=560, height=400)
        for number in range(len(rows) + 1):
            page.draw_line((EDGES[0], 40 + 20 * number), (EDGES[-1], 40 + 20 * number))
        for edge in EDGES:
            page.draw_line((edge, 40), (edge, 40 + 20 * len(rows)))
        for number, row in enumerate(rows):
            for edge, text in zip(EDGES, row, strict=False):
                font = "hebo" if row is HEAD else "helv"
                page.insert_text((edge + 4, 54 + 20 * number), text, fontsize=9, fontname=font)
        page.insert_text((50, 380), "Doses are for adults with normal renal function.", fontsize=10)
    assert rows_of(read(fixtures.save(document, tmp_path / "a.pdf"))) == [True] * 5


def texts(record: SourceRecord, kind: str) -> list[str]:
    return [text_of(block.lines)[0] for block in record.blocks if block.kind == kind]


def test_a_value_with_its_interval_is_one(tmp_path: Path) -> None:
    rows = [("Study 1", "92\n[80 to 97]", "0.78 (0.69,\n0.89)"), *[("Study 2", "86", "83")] * 3]
    assert rows_of(read(drawn(tmp_path / "a.pdf", rows))) == [False] * 4


def test_white_behind_a_table_is_no_border_of_it(tmp_path: Path) -> None:
    """It ends within the first row."""
    rows = [("co-trimoxazole\nby mouth", "500 mg", "every\n8 hours"), *WHOLE]
    plain, behind = read(drawn(tmp_path / "a.pdf", rows)), read(drawn(tmp_path / "b.pdf", rows, paper=91))
    assert len(texts(plain, "row")) == 4
    assert texts(behind, "row") == texts(plain, "row")


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
    assert [("Below 130/80" in row, "Below 140/90" in row) for row in texts(record, "row")] == [
        (True, False),
        (False, True),
    ]


def test_names_that_stand_on_the_page_before_are_missed(tmp_path: Path) -> None:
    """A table goes on with columns of other widths: its rows have no names there."""
    document = pymupdf.open()
    for edges, rows in ((EDGES, [HEAD, *WHOLE]), ((50, 200, 360, 480), WHOLE)):
        page = document.new_page(width=560, height=400)
        for number in range(len(rows) + 1):
            page.draw_line((edges[0], 40 + 20 * number), (edges[-1], 40 + 20 * number))
        for edge in edges:
            page.draw_line((edge, 40), (edge, 40 + 20 * len(rows)))
        for number, row in enumerate(rows):
            for edge, text in zip(edges, row, strict=False):
                page.insert_text(
                    (edge + 4, 54 + 20 * number), text, fontsize=9, fontname="hebo" if row is HEAD else "helv"
                )
    assert rows_of(read(fixtures.save(document, tmp_path / "a.pdf"))) == [False] * 3 + [True] * 3


def test_a_long_row_over_the_whole_width_ends_the_section_before(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=560, height=400)
    rows = [
        ("For everybody:",),
        WHOLE[0],
        ("Drugs that are excreted by the kidney and for which levels are measured every day",),
        WHOLE[1],
    ]
    for number in range(len(rows) + 1):
        page.draw_line((50, 60 + 20 * number), (480, 60 + 20 * number))
    for number, row in enumerate(rows):
        for edge in EDGES if len(row) > 1 else (EDGES[0], EDGES[-1]):
            page.draw_line((edge, 60 + 20 * number), (edge, 80 + 20 * number))
        for edge, text in zip(EDGES, row, strict=False):
            page.insert_text((edge + 4, 74 + 20 * number), text, fontsize=9)
    found = texts(read(fixtures.save(document, tmp_path / "a.pdf")), "row")
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
