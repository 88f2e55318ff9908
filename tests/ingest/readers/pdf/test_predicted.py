"""Tables without borders, as the layout model sees them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymupdf
import pytest

from localmed.ingest.chunking import text_of
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf import grid
from localmed.ingest.readers.pdf.grid import find_ruled
from localmed.ingest.readers.pdf.layout import Placed
from localmed.ingest.readers.pdf.reader import read
from localmed.ingest.readers.pdf.scan import with_tables
from localmed.ingest.readers.pdf.text import Piece

EDGES = (50, 160, 260, 380, 470)
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
        for x, text in zip(EDGES, row, strict=False):
            page.insert_text((x, top), text, fontsize=10)
    return page


def rows(path: Path) -> list[str]:
    (record,) = (item for item in read(path, FieldMapping()) if isinstance(item, SourceRecord))
    return [text_of(block.lines)[0] for block in record.blocks if block.kind == "row"]


@pytest.mark.parametrize("shaded", [False, True])
def test_a_table_without_borders_and_bold_headers(tmp_path: Path, shaded: bool) -> None:
    """The model that sees it leaves the search for drawn borders as it is."""
    document = pymupdf.open()
    first = find_ruled(sheet(document, shaded))
    document.save(tmp_path / "table.pdf")
    assert rows(tmp_path / "table.pdf") == [
        "; ".join(f"{name}: {text}" for name, text in zip(ROWS[0], row, strict=True)) for row in ROWS[1:]
    ]
    assert find_ruled(document[0]) == first
    assert pymupdf._get_layout is None  # hooked in, it changes that search from the second page on


def test_a_table_without_rules_on_a_page_read_by_ocr() -> None:
    pieces = [
        Piece(x, 80 + 22 * number, x + 5.2 * len(text), 92 + 22 * number, text, size=10.0)
        for number, row in enumerate(ROWS)
        for x, text in zip(EDGES, row, strict=False)
    ]
    placed, (seen,), _ = with_tables(pieces, (), 595, 500)
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
