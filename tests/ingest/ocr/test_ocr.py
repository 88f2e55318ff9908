"""Scanned pages: read by OCR with boxes and confidence, or named; a page that defeats the engine costs that page."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from localmed.config import ChunkSettings, ReadBounds
from localmed.domain import Box, Document
from localmed.domain.errors import InputError
from localmed.ingest import reading
from localmed.ingest.ocr import child as ocr
from localmed.ingest.ocr.child import over_gutters
from localmed.ingest.ocr.pages import GIVE_UP, Ocr, Scan, Seen
from localmed.ingest.parsed import Block, FieldMapping, Line, SourceRecord, Working
from localmed.ingest.parsing import Parser
from localmed.ingest.readers.pdf import reader as pdf
from localmed.ingest.readers.pdf import scan as pdf_scan
from localmed.ingest.readers.pdf.opening import open_document, raster
from localmed.ingest.readers.pdf.page import FOREIGN, Page, read_page
from localmed.ingest.readers.pdf.scan import place_in_tables
from localmed.ingest.readers.pdf.tables import Carry, table_blocks
from tests.ingest.readers.pdf import fixtures as make
from tests.words import phrase, said, words

ENGINE = str(Path(__file__).parents[1] / "fixtures" / "engine.py")
BOUNDS = ReadBounds(ocr_page_seconds=20)
NO_TEXT = "no text layer (a scan?)"
needs_engine = pytest.mark.extra("ocr")


def engine(do: dict[Any, str], bounds: ReadBounds = BOUNDS) -> Ocr:
    return Ocr(bounds, (sys.executable, "-P", ENGINE, json.dumps(do)))


def scanned(path: Path, document: Any, dpi: int = 150, rotate: int = 0) -> Path:
    """The pages of ``document`` as pictures, without their text."""
    copy = pymupdf.open()
    for page in document:
        sheet = copy.new_page(width=page.rect.width, height=page.rect.height)
        sheet.insert_image(sheet.rect, pixmap=page.get_pixmap(dpi=dpi), rotate=rotate, keep_proportion=False)
    return make.save(copy, path)


def pages_read(path: Path, reader: Ocr, bounds: ReadBounds = BOUNDS) -> list[Page]:
    with open_document(path) as document:
        pages = [read_page(document, index, 60_000) for index in range(document.page_count)]
    assert all(isinstance(scan, Working) for scan in pdf_scan.read_scans(path, pages, bounds, reader))
    return pages


def parsed(path: Path, bounds: ReadBounds = ReadBounds()) -> SourceRecord:  # noqa: B008  a frozen value
    with Parser() as parser:
        (record,) = parser.parse(path, bounds=bounds)
    assert isinstance(record, SourceRecord)
    return record


def lines_with(record: SourceRecord, word: str) -> list[Line]:
    return [line for block in record.blocks for line in block.lines if word in line.text]


def inside(line: Line, area: Any) -> bool:
    """Whether the line's box stands on ``area`` and not on the lines above and below it."""
    box = line.box
    return box is not None and abs((box.y0 + box.y1 - area.y0 - area.y1) / 2) < (area.y1 - area.y0) / 2


# --- with an engine of our own -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "report"),
    [
        ("hang", "took longer than 1 seconds (read.ocr_page_seconds)"),
        ("crash", "the engine's process failed (signal SIGSEGV)"),
        ("nonsense", phrase("ocr.no_page")),
        ("flood", phrase("ocr.no_page")),
        ("nothing", "OCR found no text"),
    ],
)
def test_a_page_that_defeats_the_engine_is_named_and_the_others_are_kept(
    tmp_path: Path, what: str, report: str
) -> None:
    path = make.scan(tmp_path / "scan.pdf", scanned=3)
    bounds = ReadBounds(ocr_page_seconds=1 if what == "hang" else 20)
    began = time.monotonic()
    first, second, third = pages_read(path, engine({2: what}, bounds), bounds)
    assert time.monotonic() - began < 15
    assert [page.pieces[0].text for page in (first, third)] == ["Give amoxicillin for ten days"] * 2
    assert report in words(second.flaw)
    assert not second.pieces


def test_a_page_whose_child_was_killed_is_tried_once_more_and_a_broken_engine_given_up(tmp_path: Path) -> None:
    path = make.scan(tmp_path / "scan.pdf", scanned=GIVE_UP + 2)
    pages = pages_read(path, engine({1: f"once {tmp_path / 'mark'}"}))
    assert (tmp_path / "mark").exists()
    assert [piece.text for page in pages for piece in page.pieces] == ["Give amoxicillin for ten days"] * len(pages)
    assert (pages[0].flaw, pages[0].lost) == (None, False)
    pages = pages_read(path, engine(dict.fromkeys(range(1, 9), "crash")))
    assert all(page.lost for page in pages)
    assert all("signal SIGSEGV" in words(page.flaw) for page in pages[:GIVE_UP])
    assert all("not tried" in words(page.flaw) for page in pages[GIVE_UP:])


def test_what_the_engine_is_not_sure_of_is_left_out_and_counted(tmp_path: Path) -> None:
    first, second = pages_read(make.scan(tmp_path / "scan.pdf", scanned=2), engine({1: "speck", 2: "doubtful"}))
    assert [piece.text for piece in first.pieces] == ["Give amoxicillin for ten days"]
    assert words(first.remarks) == (said("ocr.lines_left_out", count=1),)
    assert phrase("ocr.doubtful") in words(second.remarks)[0]


def test_pages_with_a_text_of_their_own_and_blank_ones_keep_it(tmp_path: Path) -> None:
    document = pymupdf.open(make.scan(tmp_path / "scan.pdf", scanned=1))
    document[0].insert_text((50, 110), "Give amoxicillin for ten days", fontsize=10)  # the engine reads hardly more
    make.lines(document.new_page(), 50, 60, make.LEFT)
    document.new_page()
    path = make.save(document, tmp_path / "text.pdf")
    stamp, text, blank = pages_read(path, engine({2: "crash", 3: "crash"}))
    assert [piece.text for piece in stamp.pieces] == ["Give amoxicillin for ten days"]
    assert text.pieces
    assert [(page.ocr, page.needs, page.flaw) for page in (stamp, text, blank)] == [(None, None, None)] * 3


@pytest.mark.parametrize("rotate", [0, 90])
def test_text_over_a_picture_stays_as_it_is_and_what_the_picture_says_is_added(tmp_path: Path, rotate: int) -> None:
    """The engine reads "ug" for "µg", in one line where the page has two pieces."""
    document = pymupdf.open(make.scan(tmp_path / "scan.pdf", scanned=1))
    page = document[0]
    page.set_rotation(rotate)
    for x, text in ((50, "Ketamine"), (105, "500 µg/kg")):
        page.insert_text(pymupdf.Point(x, 110) * page.derotation_matrix, text, fontsize=10, rotate=rotate)
    path = make.save(document, tmp_path / "slide.pdf")
    (read,) = pages_read(path, engine({1: "slide"}))
    pieces = sorted(read.pieces, key=lambda piece: (piece.y0 > 200, piece.x0))
    assert [piece.text for piece in pieces if piece.y0 < 200] == ["Ketamine", "500 µg/kg"]
    assert [piece.text for piece in pieces if piece.y0 > 200] == ["Flow chart of the emergency department"]
    assert [piece.ocr for piece in pieces] == [None, None, 0.9]
    assert all(abs((piece.box.y0 + piece.box.y1) / 2 - 106) < 6 for piece in pieces[:-1] if piece.box)


def test_a_garbled_text_layer_is_replaced_and_without_ocr_it_is_kept_with_a_note(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=500, height=700)
    make.lines(page, 50, 100, ["".join(chr(ord(letter) + 1) for letter in line) for line in make.LEFT * 3])
    path = make.save(document, tmp_path / "garbled.pdf")
    (read,) = pages_read(path, engine({}))
    assert [piece.text for piece in read.pieces] == ["Give amoxicillin for ten days"]
    assert words(pdf._notes([read], 0)) == ("page 1: read by OCR (garbled text layer), confidence 0.90",)
    (left,) = pages_read(path, engine({}), replace(BOUNDS, ocr=False))
    assert len(left.pieces) == 3 * len(make.LEFT)
    assert words(pdf._notes([left], 0)) == ("page 1: garbled text layer, may need OCR",)
    with pytest.raises(InputError, match=r"page 1: garbled.*read\.ocr = true"):
        list(pdf.read(path, FieldMapping(options={"bounds": replace(BOUNDS, ocr=False)})))


def test_a_page_that_is_only_called_garbled_is_not_lost(tmp_path: Path) -> None:
    document = pymupdf.open()
    make.lines(document.new_page(), 50, 60, make.LEFT)
    make.lines(document.new_page(), 50, 60, [f"{number} atggccaagttgacc agtgccgttccgg" for number in range(20)])
    path = make.save(document, tmp_path / "genes.pdf")
    (record,) = pdf.read(path, FieldMapping(options={"bounds": replace(BOUNDS, ocr=False)}))
    assert isinstance(record, SourceRecord)
    assert len(lines_with(record, "atggccaagttgacc")) == 20
    assert words(record.notes) == ("page 2: garbled text layer, may need OCR",)
    (_, lost) = pages_read(path, engine({2: "nonsense"}))
    assert (len(lost.pieces), lost.lost) == (20, True)
    assert "OCR failed" in words(lost.flaw)


LAYER = "Give ceftriaxone 50 mg/kg once a day for 10 days"


def layered(path: Path, text: str = LAYER) -> Path:
    """A picture over the whole page, and under it a text layer that says ``text`` on each line."""
    document = pymupdf.open()
    page = document.new_page(width=500, height=700)
    make.lines(page, 50, 60, [text] * 6)
    page.insert_image(page.rect, pixmap=pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 50, 70)))
    return make.save(document, path)


def test_a_text_layer_that_is_not_what_is_printed_is_replaced_and_a_sound_one_stays(tmp_path: Path) -> None:
    path = layered(tmp_path / "layer.pdf")
    for printed in (LAYER.replace("50 mg", "80 mg"), "Nothing of what the layer says stands here"):
        (page,) = pages_read(path, engine({"lines": printed}))
        assert page.needs == FOREIGN
        assert page.ocr
        assert "amoxicillin" in page.pieces[0].text
    (page,) = pages_read(path, engine({"lines": LAYER}))
    assert (page.needs, page.doubt, page.remarks, page.pieces[0].text) == (None, None, (), LAYER)
    (page,) = pages_read(path, engine({}), replace(BOUNDS, ocr=False))
    assert [remark.code for remark in page.remarks] == ["ocr.unchecked"], "one that cannot be compared is told"


def test_what_ocr_read_is_kept_by_page_and_not_read_again(tmp_path: Path) -> None:
    path = scanned(tmp_path / "scan.pdf", pymupdf.open(make.two_columns(tmp_path / "text.pdf")))
    kept = tmp_path / "kept"
    kept.mkdir()
    broken = engine({"1": "crash"})
    for reader in (engine({}), broken):
        reader._kept = kept
        scan = reader.read(path, 1)
        reader.close()
        assert isinstance(scan, Scan)
        assert scan.lines[0].text == "Give amoxicillin for ten days"
    (file,) = kept.iterdir()
    file.write_bytes(file.read_bytes().replace(b"ten days", b"two days"))  # what is altered is read again
    with engine({"1": "speck"}) as reader:
        reader._kept = kept
        again = reader.read(path, 1)
    assert isinstance(again, Scan)
    assert len(again.lines) == 2


def test_a_line_that_runs_over_the_white_between_columns_is_parted(tmp_path: Path) -> None:
    picture = np.full((400, 800, 3), 255, np.uint8)
    left = [(20.0, 30.0 * row, 380.0, 30.0 * row + 20) for row in range(1, 8)]
    right = [(400.0, 30.0 * row, 780.0, 30.0 * row + 20) for row in range(1, 8)]
    joined = (20.0, 240.0, 780.0, 260.0)
    assert list(over_gutters(picture, [*left, *right, joined])) == [(380.0, 240.0, 400.0, 260.0)]
    picture[240:260, 380:400] = 0  # a heading over both columns
    assert not list(over_gutters(picture, [*left, *right, joined]))


def test_without_the_engine_the_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make.scan(tmp_path / "scan.pdf")
    monkeypatch.setattr(ocr, "PACKAGES", ("no_such_package",))
    with pytest.raises(InputError, match=r"no text layer on any page.*localmed\[ocr\]"):
        list(pdf.read(path, FieldMapping()))
    assert ocr.identity() == ""


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_boxes_are_those_of_the_page_as_displayed(turn: int) -> None:
    wide, tall = 500.0, 700.0
    place = {0: (100, 50), 1: (50, wide - 100), 2: (wide - 100, tall - 50), 3: (tall - 50, 100)}[turn]
    line = Seen("Word", 0.9, tuple((place[0] + x, place[1] + y) for x, y in ((0, 0), (0.5, 0), (0.5, 0.5), (0, 0.5))))
    (straight,) = pdf_scan._straighten(Scan(wide, tall, turn, (line,)), 1).lines
    assert straight.box
    assert abs(straight.box.x0 - 100) < 1
    assert abs(straight.box.y0 - 50) < 1


def test_a_passage_keeps_the_mean_confidence_of_its_lines() -> None:
    lines = (
        Line("Four", Box(1, 0, 0, 9, 9), 0.5),
        Line("letters more", Box(1, 0, 10, 9, 19), 0.9),
        Line("The file's own.", Box(2, 0, 0, 9, 9)),
    )
    record = SourceRecord(
        "", "T", (Block("paragraph", lines), Block("heading", (Line("H"),), 1), Block.of("paragraph", "x."))
    )
    document = Document("i", "c", "k", "T", "en", "s", "", reading.content_of(record), "pdf")
    first, second = reading.passages(record, document, ChunkSettings())
    assert first.ocr == round((4 * 0.5 + 12 * 0.9) / 16, 3)
    assert second.ocr is None


def test_a_slanted_table_gets_its_cells_and_strokes_of_letters_make_none() -> None:
    names = [["Medicine", "Dose"], ["Amoxicillin", "500 mg"], ["Cefuroxime", "250 mg"]]
    fall = 0.01  # points down for each to the right

    def seen(text: str, x: float, y: float) -> Seen:
        corners = ((x, y), (x + 80, y), (x + 80, y + 10), (x, y + 10))
        return Seen(text, 0.9, tuple((a - b * fall, b + a * fall) for a, b in corners))

    lines = tuple(seen(name, 60 + 110 * i, 105 + 20 * j) for j, row in enumerate(names) for i, name in enumerate(row))
    level = [(50.0, 100.0 + 20 * row, 270.0, 100.0 + 20 * row) for row in range(4)]
    upright = [(50.0 + 110 * column, 100.0, 50.0 + 110 * column, 160.0) for column in range(3)]
    letters = [(80.0, 104.0, 80.0, 158.0)]  # through three lines of text
    slanted = tuple(
        (x0 - y0 * fall, y0 + x0 * fall, x1 - y1 * fall, y1 + x1 * fall) for x0, y0, x1, y1 in level + upright + letters
    )
    straight = pdf_scan._straighten(Scan(500, 700, 0, lines, slanted), 1)
    pieces = [pdf_scan._set_type(line, (10, 8.5), {}) for line in straight.lines]
    placed, (grid,), _ = place_in_tables(pieces, straight.rules, straight.width, straight.height)
    assert (grid.height, grid.width) == (3, 2)
    assert [piece.cell for piece in placed] == list(grid.cells)
    carry = Carry()
    rows = table_blocks(grid, placed, 1, True, carry)
    assert rows
    assert all(row.doubtful and {line.ocr for line in row.lines} == {0.9} for row in rows)
    assert not carry.doubtful  # each table that OCR read is; only torn ones are told


@needs_engine
def test_the_rules_of_a_scanned_table_are_found_in_its_picture(tmp_path: Path) -> None:
    with open_document(make.table(tmp_path / "table.pdf")) as document:
        path = scanned(tmp_path / "scan.pdf", document)
    picture, *_ = raster(path, 1, ocr.DPI, ocr.MOST_PIXELS)
    drawn = ocr.rules(picture)
    level = [rule for rule in drawn if rule[2] - rule[0] > rule[3] - rule[1]]
    assert (len(level), len(drawn) - len(level)) == (6, 4)
    assert len(ocr._borders(drawn)) == 4


# --- with the engine itself --------------------------------------------------------------------------------------


def _page(texts: Sequence[str], font: str = "helv") -> Any:
    document = pymupdf.open()
    make.lines(document.new_page(width=400, height=250), 40, 60, texts, 12, font)
    return document


@needs_engine
@pytest.mark.parametrize(
    ("texts", "font", "word"), [(make.LEFT, "helv", "otitis"), (make.CHINESE, "china-s", "盐摄入量")], ids=["en", "zh"]
)
def test_a_scan_is_read_with_boxes_on_its_lines_and_says_so(
    tmp_path: Path, texts: list[str], font: str, word: str
) -> None:
    document = _page(texts, font)
    (area,) = document[0].search_for(word)
    record = parsed(scanned(tmp_path / "scan.pdf", document))
    assert words(record.notes[0]).startswith(f"page 1: read by OCR ({words(NO_TEXT)}), confidence ")
    (line,) = lines_with(record, word)
    assert inside(line, area)
    assert line.ocr is not None
    assert line.ocr > 0.9
    text = "".join(line.text for block in record.blocks for line in block.lines)
    assert text.replace(" ", "") == "".join(texts).replace(" ", "")


@needs_engine
@pytest.mark.slow
def test_a_scan_that_lies_on_its_head_is_read_from_top_to_bottom(tmp_path: Path) -> None:
    document = _page(make.LEFT)
    (area,) = document[0].search_for("otitis")
    record = parsed(scanned(tmp_path / "scan.pdf", document, rotate=180))
    assert record.blocks[0].lines[0].text.startswith("Amoxicillin")
    (line,) = lines_with(record, "otitis")
    shown = pymupdf.Rect(400 - area.x1, 250 - area.y1, 400 - area.x0, 250 - area.y0)
    assert inside(line, shown)


@needs_engine
def test_a_page_over_its_time_is_named_and_text_pages_are_kept(tmp_path: Path) -> None:
    record = parsed(make.scan(tmp_path / "mixed.pdf", text_pages=1, scanned=1), ReadBounds(ocr_page_seconds=0.01))
    assert "".join(lines_with(record, "Amoxicillin")[0].text.split())
    assert words(record.notes) == (
        f"page 2: {words(NO_TEXT)}, OCR failed: took longer than 0.01 seconds (read.ocr_page_seconds)",
    )
    assert record.lost == 1


@needs_engine
def test_a_model_that_is_not_the_one_tried_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ocr.MODELS, "Det", (ocr.MODELS["Det"][0], "0" * 64))
    with pytest.raises(RuntimeError, match="not the one"):
        ocr.load(1)
