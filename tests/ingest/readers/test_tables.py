"""Tables: every filled cell appears under the right names; CSV; sheets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.parsed import Block, FieldMapping, SourceRecord
from localmed.ingest.readers import csv_rows, tables
from localmed.ingest.readers.tables import Cell
from tests.words import pattern, words


def rows(blocks: Sequence[Block]) -> list[str]:
    return [block.lines[0].text for block in blocks]


def cells(*lines: str, header: int = 0) -> list[Cell]:
    """``"a|b"`` is a row of two cells; ``header`` rows are marked as such."""
    return [
        Cell(text, number, column, header=number < header)
        for number, line in enumerate(lines)
        for column, text in enumerate(line.split("|"))
    ]


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        (cells("Drug|Dose", "aspirin|75 mg", "|5 mg", header=1), ["Drug: aspirin; Dose: 75 mg", "Dose: 5 mg"]),
        (cells("药物|剂量", "阿司匹林|75mg", header=1), ["药物：阿司匹林；剂量：75mg"]),
        (cells("Drug|Dose|Note", "aspirin|75 mg|", header=1), ["Drug; Dose; Note", "Drug: aspirin; Dose: 75 mg"]),
        (cells("Drug|Dose", header=1), ["Drug; Dose"]),
        (
            cells("Drug|Route|Dose", "aspirin|oral|75", "heparin|iv|5000"),
            ["Drug: aspirin; Route: oral; Dose: 75", "Drug: heparin; Route: iv; Dose: 5000"],
        ),
        (cells("Drug|aspirin", "Dose|75 mg"), ["Drug; aspirin", "Dose; 75 mg"]),
        (cells("1|2|3", "4|5|6"), ["1; 2; 3", "4; 5; 6"]),
    ],
    ids=["marked", "Chinese", "a name over nothing", "a header alone", "guessed", "names and values", "figures"],
)
def test_each_row_carries_its_header(table: list[Cell], shown: list[str]) -> None:
    assert rows(tables.table_blocks(table)) == shown


def test_merged_cells_are_repeated_and_joined() -> None:
    table = [
        Cell("Drug", 0, 0, height=2, header=True),
        Cell("Dose (mg)", 0, 1, width=2, header=True),
        Cell("Adult", 1, 1, header=True),
        Cell("Child", 1, 2, header=True),
        Cell("Antibiotics", 2, 0, width=3),
        Cell("amoxicillin", 3, 0, height=2),
        Cell("500", 3, 1),
        Cell("250", 3, 2),
        Cell("as needed", 4, 1, width=2),
    ]
    assert rows(tables.table_blocks(table)) == [
        "Antibiotics",
        "Antibiotics; Drug: amoxicillin; Dose (mg) Adult: 500; Dose (mg) Child: 250",
        "Antibiotics; Drug: amoxicillin; Dose (mg) Adult / Dose (mg) Child: as needed",
    ]


@st.composite
def any_table(draw: st.DrawFn) -> list[Cell]:
    """Cells that do not overlap, some empty, some merged; each text occurs once."""
    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    taken: set[tuple[int, int]] = set()
    cells = []
    marked = draw(st.integers(0, 2))
    for row in range(height):
        for column in range(width):
            if (row, column) in taken:
                continue
            wide = draw(st.integers(1, 2))
            wide = 2 if wide == 2 and column + 1 < width and (row, column + 1) not in taken else 1
            high = draw(st.integers(1, 2))
            taken |= {(row + down, column + right) for down in range(high) for right in range(wide)}
            kind = draw(st.sampled_from(("", "figure", "word", "word")))
            text = {"": "", "figure": f"{row}{column}7 mg", "word": f"w{'abcde'[row]}{'abcde'[column]}x"}[kind]
            cells.append(Cell(text, row, column, high, wide, row < marked))
    return cells


@settings(max_examples=150, deadline=None)
@given(any_table())
def test_cells_in_are_cells_out(table: list[Cell]) -> None:
    expected = {cell.text for cell in table if cell.text}
    for blocks in (tables.table_blocks(table), list(tables.sheet_blocks(table))):
        shown = "\n".join(line.text for block in blocks for line in block.lines)
        assert all(text in shown for text in expected)
        assert bool(blocks) == bool(expected)


def test_a_sheet_is_parted_by_empty_rows() -> None:
    lines = ("Formulary 2026", "Drug|Dose", "aspirin|75 mg", "", "heparin|5000 IU", "", "Telephone numbers")
    assert rows(list(tables.sheet_blocks(cells(*lines, "Ward|Number|Hours", "A|100|8-16")))) == [
        "Formulary 2026",
        "Drug: aspirin; Dose: 75 mg",
        "Drug: heparin; Dose: 5000 IU",
        "Telephone numbers",
        "Ward: A; Number: 100; Hours: 8-16",
    ]
    above = cells("Version|three", "Owner|pharmacy", "|", "Drug|Route", "aspirin|oral", "heparin|iv")
    assert rows(list(tables.sheet_blocks(above)))[-2:] == ["Drug: aspirin; Route: oral", "Drug: heparin; Route: iv"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "gb18030", "utf-16"])
def test_csv_in_every_separator_and_encoding(tmp_path: Path, separator: str, encoding: str) -> None:
    path = tmp_path / "formulary.csv"
    lines = [("药物", "剂量", "备注"), ("阿司匹林", "75mg", '"饭后，\n每日一次"'), ("肝素", "", "皮下注射")]
    path.write_text("\r\n".join(separator.join(line) for line in lines), encoding=encoding)
    [record] = csv_rows.read(path, FieldMapping())
    assert isinstance(record, SourceRecord)
    assert rows(record.blocks) == ["药物：阿司匹林；剂量：75mg；备注：饭后， 每日一次", "药物：肝素；备注：皮下注射"]


def test_csv_rows_as_records_and_what_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "tips.tsv"
    path.write_text("code\tname\ttip\n7\tFever\tDrink.\n8\tCough\n9\tPain\tRest.\ttoo many\n", encoding="utf-8")
    assert readers.name_of(path) == "csv"
    mapping = FieldMapping({"id": "code", "title": "name", "text": "tip"})
    first, second, third = csv_rows.read(path, mapping)
    assert isinstance(first, SourceRecord)
    assert (first.key, first.title, rows(first.blocks)) == ("7", "Fever", ["Drink."])
    assert words(second) == ("row 3", "has no text")
    assert words(third) == ("row 4", "has more cells than the header")
    path.write_text('a,b\n"never closed,1\n', encoding="utf-8")
    with pytest.raises(InputError, match=pattern("reader.csv_broken")):
        list(csv_rows.read(path, FieldMapping()))
    path.write_text(" \n\n", encoding="utf-8")
    with pytest.raises(InputError, match=pattern("reader.no_text")):
        list(csv_rows.read(path, FieldMapping()))


@pytest.mark.parametrize(
    ("number", "span"), [("3", 3), ("99999", tables.MOST_SPAN), ("٣", 1), ("-2", 1), ("9" * 99, 1)]
)
def test_a_cell_claims_no_more_columns_than_there_may_be(number: str, span: int) -> None:
    assert tables.span(number, 1) == span
