"""Text as it was before print: broken words, mixed faces, rules over columns, footnotes, tables in two parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest

from localmed.domain import Box
from localmed.ingest import line_ends
from localmed.ingest.readers.pdf.grid import Grid, keep_tables
from localmed.ingest.readers.pdf.paragraphs import paragraphs
from localmed.ingest.readers.pdf.tables import Carry, count_lost_cells, table_blocks, table_notes
from localmed.ingest.readers.pdf.text import Cell, Piece, join_row
from localmed.ingest.reading import text_of
from tests.ingest.readers.pdf import fixtures as make
from tests.ingest.readers.pdf.test_reader import read_one
from tests.words import said, words

DOSES = [("Medicine", "Dose", "Interval"), ("apixaban", "5 mg", "12 hours"), ("warfarin", "3 mg", "24 hours")]


def texts(path: Path, kind: str = "") -> list[str]:
    """The blocks' texts as they are stored."""
    return [text_of(block.lines)[0] for block in read_one(path).blocks if not kind or block.kind == kind]


def test_a_hyphen_stays_where_the_document_writes_the_word_with_it(tmp_path: Path) -> None:
    lines = [
        "A non-invasive test of the body is done on clean",
        "skin. Where that fails a second non-",
        "invasive test follows, at a contaminated or clean-",
        "body site. The infection is treated, and each infec-",
        "tion is reported at once; haemo-",
        "dialysis goes on as it was planned before.",
    ]
    (text,) = texts(make.printed(tmp_path / "hyphens.pdf", [(40, 60, lines)], width=300))
    assert "second non-invasive test" in text
    assert "clean-body site" in text
    assert "each infection is" in text
    assert "haemodialysis" in text
    assert line_ends.JOINER not in text


def test_a_row_that_begins_small_and_bold_goes_on_in_the_next(tmp_path: Path) -> None:
    document, page = make.new_page(width=300, height=400)
    make.lines(page, 40, 60, ["The ward is open to visitors on every day of", "the week, and closed at night."])
    page.insert_text((40, 86), "FURTHER INFORMATION CONTACT:", fontsize=7, fontname="hebo")
    after = 44 + pymupdf.get_text_length("FURTHER INFORMATION CONTACT:", fontname="hebo", fontsize=7)
    page.insert_text((after, 86), "Maria", fontsize=10)
    make.lines(page, 40, 99, ["Vogel, head nurse of the second ward, on any", "weekday before noon."])
    read = texts(make.save(document, tmp_path / "faces.pdf"))
    assert read[-1] == (
        "FURTHER INFORMATION CONTACT: Maria Vogel, head nurse of the second ward, on any weekday before noon."
    )


@pytest.mark.slow
def test_a_rule_over_all_columns_ends_what_stands_above_it(tmp_path: Path) -> None:
    document, page = make.new_page(width=600, height=400)
    page.insert_text((50, 50), "Ward rules", fontsize=20)
    make.lines(page, 310, 48, ["Hospital bulletin", "Volume 7, number 3"])
    page.draw_line((50, 80), (550, 80))
    make.lines(page, 50, 100, [*make.LEFT[:3], "The dose is doubled in each child with a"])
    make.lines(page, 310, 100, ["perforation of the drum, and halved in those", *make.RIGHT[1:]])
    read = texts(make.save(document, tmp_path / "masthead.pdf"))
    assert any("in each child with a perforation of the drum" in text for text in read)
    assert read.index("Ward rules") < next(place for place, text in enumerate(read) if "Amoxicillin" in text)


def test_a_footer_is_not_joined_with_the_header_of_the_next_page(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number, part in enumerate((make.LEFT, make.RIGHT), 1):
        page = document.new_page(width=300, height=400)
        make.lines(page, 40, 60, part)
        for y, left, right in ((30, "Hospital", "Otitis in children"), (380, "Edition 2024", f"Page {number} of 2")):
            page.insert_text((40, y), left, fontsize=10)
            page.insert_text((180, y), right, fontsize=10)
            page.draw_line((40, abs(y - 10)), (280, abs(y - 10)))
    read = texts(make.save(document, tmp_path / "leaflet.pdf"))
    assert "Edition 2024 Page 1 of 2" in read


def test_a_footnote_goes_on_at_the_foot_of_the_next_column(tmp_path: Path) -> None:
    first = ["1 The limit depends on the weight of the child and on"]
    second = ["the renal function, and is halved below a clearance of 30.", "2 In capsules."]
    notes: list[make.Run] = [(50, 150, first, 8, "helv"), (310, 150, second, 8, "helv")]
    read = texts(make.printed(tmp_path / "notes.pdf", [(50, 60, make.LEFT), (310, 60, make.RIGHT), *notes]))
    assert any("weight of the child and on the renal function" in text for text in read)


def test_accents_printed_over_letters_become_part_of_them(tmp_path: Path) -> None:
    document, page = make.new_page(width=400, height=300)
    width = pymupdf.get_text_length("M", fontsize=12)
    page.insert_text((50, 60), "M", fontsize=12)
    page.insert_text((50 + width, 60), "e", fontsize=12)
    page.insert_text((51 + width, 60), "´", fontsize=12)
    page.insert_text((50 + width + pymupdf.get_text_length("e", fontsize=12), 60), "niere disease", fontsize=12)
    assert texts(make.save(document, tmp_path / "accents.pdf")) == ["Méniere disease"]


@pytest.mark.slow
def test_a_table_without_upright_rules_goes_on_without_its_header(tmp_path: Path) -> None:
    document = pymupdf.open()
    rows = [(f"medicine {number}", f"{number}00 mg", f"every {number} hours") for number in range(1, 9)]
    make.ruled(document.new_page(width=500, height=400), 60, [DOSES[0], *rows[:4]], upright=False)
    make.ruled(document.new_page(width=500, height=400), 60, rows[4:], bold=(), upright=False)
    assert texts(make.save(document, tmp_path / "open.pdf")) == [
        f"Medicine: medicine {number}; Dose: {number}00 mg; Interval: every {number} hours" for number in range(1, 9)
    ]


def test_prose_and_other_columns_between_rules_as_wide_are_not_the_rest_of_a_table(tmp_path: Path) -> None:
    document = pymupdf.open()
    for _ in range(4):
        document.new_page(width=500, height=400)
    pages = list(document)
    for table, page, height in ((*pages[:2], 60), (*pages[2:], 40)):
        make.ruled(table, 60, DOSES, upright=False)
        for level in (60, 60 + height):
            page.draw_line((make.EDGES[0], level), (make.EDGES[-1], level))
    make.lines(pages[1], 60, 80, ["Doses are for adults with normal renal function, and are", "halved in others."])
    for y, row in ((74, ("Ward of the first floor", "open", "Monday")), (94, ("Ward of the second", "shut", "Friday"))):
        for x, text in zip((90, 240, 370), row, strict=True):
            pages[3].insert_text((x, y), text, fontsize=10)
    read = texts(make.save(document, tmp_path / "prose.pdf"))
    assert "Doses are for adults with normal renal function, and are halved in others." in read
    assert sum("Dose:" in text for text in read) == 4


def test_a_new_header_over_an_empty_column_is_not_lost(tmp_path: Path) -> None:
    document = pymupdf.open()
    second = [("Test", "Done on", "Result"), ("sodium", "Monday", ""), ("potassium", "Friday", "")]
    for table in (DOSES, second):
        make.ruled(document.new_page(width=500, height=400), 60, table)
    rows = texts(make.save(document, tmp_path / "form.pdf"), "row")
    assert any("Result" in text for text in rows)
    assert "Test: potassium; Done on: Friday" in rows


def test_a_header_over_nothing_but_sections_is_not_lost(tmp_path: Path) -> None:
    document, page = make.new_page()
    for y, row in (
        (60, ("Checked", "Answer", "Areas for improvement")),
        (100, ("gloves", "yes", "")),
        (120, ("gowns", "no", "")),
    ):
        for left, right, text in zip(make.EDGES, make.EDGES[1:], row, strict=False):
            page.draw_rect((left, y, right, y + 20))
            page.insert_text((left + 4, y + 14), text, fontsize=10, fontname="hebo" if y == 60 else "helv")
    page.draw_rect((make.EDGES[0], 80, make.EDGES[-1], 100))
    page.insert_text((make.EDGES[0] + 4, 94), "Protective equipment", fontsize=10)
    path = make.save(document, tmp_path / "checklist.pdf")
    assert any("Areas for improvement" in text for text in texts(path, "row"))
    assert not any("table cell" in note for note in words(read_one(path).notes))


def test_headings_side_by_side_over_columns_of_prose_are_no_table(tmp_path: Path) -> None:
    runs: list[make.Run] = []
    for x, word in ((50, "First"), (335, "Second"), (620, "Third")):
        prose = [f"The {word.lower()} column begins with this line of text,", "and goes on in the next one."] * 4
        runs += [(x, 60, [f"{word} part"], 10, "hebo"), (x, 76, prose)]
    assert not texts(make.printed(tmp_path / "columns.pdf", runs, width=900), "row")


def test_items_of_a_chinese_cell_stay_apart_and_broken_ones_do_not(tmp_path: Path) -> None:
    document, page = make.new_page()
    edges, levels = (50, 150, 320), (60, 90, 150)
    for level in levels:
        page.draw_line((edges[0], level), (edges[-1], level))
    for edge in edges:
        page.draw_line((edge, levels[0]), (edge, levels[-1]))
    for x, y, text in (
        (60, 80, "餐次"), (160, 80, "食谱"), (60, 110, "早餐"), (155, 104, "豆浆（250ml）"), (155, 120, "苹果（200g）"),
        (155, 136, "燕麦馒头和新鲜蔬菜的凉拌"), (155, 148, "小菜"),
    ):  # fmt: skip
        page.insert_text((x, y), text, fontsize=12, fontname="china-s")
    (row,) = texts(make.save(document, tmp_path / "cell.pdf"), "row")[-1:]
    assert "豆浆（250ml） 苹果（200g） 燕麦馒头和新鲜蔬菜的凉拌小菜" in row


def test_a_row_stands_where_its_pieces_are_shown() -> None:
    first = Piece(50, 10, 90, 20, "Give", box=Box(3, 10, 50, 20, 90), ocr=0.9, size=10)
    second = Piece(100, 12, 140, 21, "aspirin", box=Box(3, 12, 100, 21, 140), ocr=0.8, size=10)
    row = join_row([first, second, Piece(145, 12, 160, 21, "now", size=10)])
    assert (row.text, row.frame) == ("Give aspirin now", (50, 10, 160, 21))
    assert (row.box, row.ocr) == (Box(3, 10, 50, 21, 140), round((4 * 0.9 + 7 * 0.8) / 11, 3))


BOXES = ((50, 50, 150, 70), (150, 50, 250, 70), (50, 70, 150, 90), (150, 70, 250, 90), (150, 90, 250, 110))
CELLS = [Cell(*box, ((box[1] - 50) // 20, (box[1] - 30) // 20), (box[0] // 150, box[0] // 150 + 1)) for box in BOXES]


def in_cells(*texts: str) -> list[Piece]:
    return [Piece(*cell.frame, text, cell=cell, size=10) for cell, text in zip(CELLS, texts, strict=False)]


def test_what_no_row_shows_is_counted_by_cells() -> None:
    pieces = in_cells("Drug", "Dose", "aspirin", "75 mg", "75 mg")
    row = [replace(pieces[2], text="Drug: aspirin;"), replace(pieces[3], text="Dose: 75 mg")]
    assert count_lost_cells(pieces[:4], [row], ()) == 0
    assert count_lost_cells(pieces, [row], ()) == 1  # the same words at another place do not stand for it
    assert count_lost_cells(pieces[:4], [], ("Drug", "Dose")) == 2
    assert count_lost_cells(pieces[2:3], [[replace(pieces[2], y0=-1e12, y1=1e12)]], ()) == 0


@pytest.mark.parametrize(
    ("filled", "table"),
    [(("a", "b", "c", "d"), True), (("a", "b"), False), (("a", "", "c"), False), (("a", "b", "c", "d" * 700), False)],
    ids=["a table", "one row", "one column", "a frame"],
)
def test_what_reads_as_a_table(filled: tuple[str, ...], table: bool) -> None:
    grid = Grid(50, 50, 250, 90, (50, 150, 250), 2, tuple(CELLS[:4]))
    pieces = [piece for piece in in_cells(*filled) if piece.text]
    assert keep_tables([grid], lambda _: pieces) == ([grid] if table else [], pieces)


def test_a_cell_that_came_into_no_row_is_told() -> None:
    pieces = in_cells("aspirin", "75 mg", "warfarin", "3 mg")
    for height, lost in ((2, {}), (1, {7: 2})):  # a grid that says it has one row, but has cells in two
        carry = Carry()
        table_blocks(Grid(50, 50, 250, 90, (50, 150, 250), height, tuple(CELLS[:4])), pieces, 7, True, carry)
        assert carry.lost == lost
    assert words(list(table_notes(Carry(lost={7: 2})))) == [said("pdf.cells_lost", page=7, count=2)]


def test_two_tables_of_one_page_have_cells_of_their_own(tmp_path: Path) -> None:
    document, page = make.new_page()
    make.ruled(page, 40, [("Medicine", "Dose", "Interval"), ("aspirin", "75 mg", "once a day")])
    make.ruled(page, 160, [("Food", "Salt", "Portions"), ("bread", "1 g", "as often as wanted")])
    record = read_one(make.save(document, tmp_path / "two.pdf"))
    assert [text_of(block.lines)[0] for block in record.blocks] == [
        "Medicine: aspirin; Dose: 75 mg; Interval: once a day",
        "Food: bread; Salt: 1 g; Portions: as often as wanted",
    ]
    assert record.notes == ()


def test_a_face_that_is_drawn_in_many_fonts_breaks_no_sentence() -> None:
    """A browser prints Chinese in unnamed Type 3 fonts, one for each few hundred characters."""

    def row(text: str, y: float, width: float, font: int) -> Piece:
        return Piece(50.0, y, 50.0 + width, y + 9, text, f"Type3 ({font} 0 R)", size=9.0)

    rows = [
        row("探视时间", 90.0, 36.0, 3),
        row("重症医学科的探视时间为每天十六点，请先致电", 102.0, 200.0, 25),
        row("病房。进出病房请清洁双手；有发热的", 114.0, 200.0, 17),
        row("者请勿探视。", 126.0, 54.0, 50),
    ]
    assert [paragraph.text for paragraph in paragraphs(rows)] == [rows[0].text, "".join(one.text for one in rows[1:])]


def test_a_raised_figure_is_read_where_room_was_left_for_it(tmp_path: Path) -> None:
    document, page = make.new_page()
    before, after = "a filtration rate above 30 mL/min/1.73 m", ", the starting dose is 5 mg once a day"
    end = 50 + pymupdf.get_text_length(before, fontsize=12)
    page.insert_text((50, 100), before, fontsize=12)
    page.insert_text((end + 7, 100), after, fontsize=12)
    page.insert_text((end + 0.5, 96), "2", fontsize=10)
    make.lines(page, 50, 118, make.LEFT, 12)
    (text,) = texts(make.save(document, tmp_path / "raised.pdf"))
    assert "1.73 m²" in text.replace(" ²", "²")
    assert "the starting dose" in text


def test_a_bold_date_or_word_on_a_line_of_its_own_is_no_heading(tmp_path: Path) -> None:
    runs: list[make.Run] = [
        (50, 60, ["Measure the pressure in both arms when you see somebody for the first time, while"]),
        (50, 73, ["and"], 10, "hebo"),
        (50, 86, ["Repeat it a week later if the difference between the arms is more than 15 mmHg."]),
        (50, 99, ["[2019, amended 2022]"], 10, "hebo"),
        (50, 130, ["Treatment"], 10, "hebo"),
        (50, 143, make.LEFT),
    ]
    assert texts(make.printed(tmp_path / "bold.pdf", runs), "heading") == ["Treatment"]
