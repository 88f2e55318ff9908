"""Tables that were not read with certainty: noticed and told, and a table that is whole is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from localmed.config import ChunkSettings
from localmed.domain import Document, digest
from localmed.ingest.chunking import passages
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf import reader
from tests.ingest.readers.pdf import fixtures

HEAD = ("Medicine", "Dose", "Interval")
EDGES = (50, 230, 330, 480)


def drawn(path: Path, rows: Sequence[Sequence[str]], head: Sequence[str] = HEAD) -> Path:
    """A ruled table."""
    document = pymupdf.open()
    page = document.new_page(width=560, height=500)
    top, every = 60, [head, *rows]
    for number in range(len(every) + 1):
        page.draw_line((EDGES[0], top + 20 * number), (EDGES[-1], top + 20 * number))
    for edge in EDGES:
        page.draw_line((edge, top), (edge, top + 20 * len(every)))
    for number, row in enumerate(every):
        for edge, text in zip(EDGES, row, strict=False):
            font = "helv" if number else "hebo"
            page.insert_text((edge + 4, top + 20 * number + 14), text, fontsize=9, fontname=font)
    page.insert_text(
        (50, 460), "Doses are for adults with normal renal function, and are reviewed each year.", fontsize=10
    )
    return fixtures.save(document, path)


def read(path: Path) -> SourceRecord:
    (record,) = (item for item in reader.read(path, FieldMapping()) if isinstance(item, SourceRecord))
    return record


def rows_of(record: SourceRecord) -> list[bool]:
    return [block.doubtful for block in record.blocks if block.kind == "row"]


WHOLE = [
    ("amoxicillin", "500 mg", "every 8 hours"),
    ("doxycycline", "200 mg", "once a day"),
    ("warfarin", "as per INR", "daily"),
]


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
    ],
    ids=["cut sentences", "a number in two cells"],
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
