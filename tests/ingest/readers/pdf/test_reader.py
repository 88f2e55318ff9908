"""Reading PDFs: order, tables, boxes, notes and refusals, on files made here."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pymupdf
import pytest

from localmed.config import ReadBounds
from localmed.domain import Box
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf.page import GARBLED, NO_TEXT, TOO_LITTLE, is_garbled, why_ocr
from localmed.ingest.readers.pdf.reader import read
from localmed.ingest.readers.pdf.text import clean_text
from tests.ingest.readers.pdf import fixtures as make
from tests.words import phrase, words


def read_one(path: Path, bounds: ReadBounds | None = None) -> SourceRecord:
    *_, record = read(path, FieldMapping(options={"bounds": bounds or ReadBounds(ocr=False)}))
    assert isinstance(record, SourceRecord)
    return record


def texts(record: SourceRecord, kind: str = "") -> list[str]:
    """The blocks' texts, their lines joined by blanks."""
    return [" ".join(line.text for line in block.lines) for block in record.blocks if not kind or block.kind == kind]


def boxes_near(record: SourceRecord, word: str) -> list[Box]:
    return [line.box for block in record.blocks for line in block.lines if word in line.text and line.box]


def test_columns_are_read_one_after_the_other_and_headings_end_them(tmp_path: Path) -> None:
    record = read_one(make.two_columns(tmp_path / "two.pdf"))
    assert [block.kind for block in record.blocks] == ["heading", "paragraph", "paragraph"] * 2
    assert texts(record) == [
        "Treatment of otitis media in primary care, a guideline",
        " ".join(make.LEFT),
        " ".join(make.RIGHT),
        "What to do when the first treatment fails to work",
        " ".join(make.LEFT).replace("Amoxicillin", "Cefuroxime"),
        " ".join(make.RIGHT).replace("Azithromycin", "Ceftriaxone"),
    ]
    assert record.title == "Treatment of otitis media in primary care, a guideline"
    assert (record.pages, record.notes, record.key, record.edition) == (1, (), "", "")


def test_three_columns_and_a_side_heading(tmp_path: Path) -> None:
    runs: list[make.Run] = [(620, 60, ["Introduction"], 18, "helv")]  # above the last column, yet it opens the page
    for x, word in ((620, "third"), (50, "first"), (335, "second")):
        runs.append((x, 120, [f"The {word} column begins with this line of text,", "and it ends with the next."] * 3))
    record = read_one(make.printed(tmp_path / "three.pdf", runs, width=900, height=600))
    text = " ".join(texts(record))
    places = [text.index(word) for word in ("Introduction", "The first", "The second", "The third")]
    assert places == sorted(places)
    assert record.blocks[0].kind == "heading"


def test_labels_of_a_list_stay_with_their_items(tmp_path: Path) -> None:
    items = ("Wash your hands before you touch the patient", "Put on gloves and a gown at the door")
    runs = [
        run for y, item in zip((60, 90), items, strict=True) for run in ((50, y, [f"{y // 30 - 1}."]), (80, y, [item]))
    ]
    record = read_one(make.printed(tmp_path / "list.pdf", runs, width=500))
    assert texts(record) == [f"{number}. {item}" for number, item in enumerate(items, 1)]


def test_a_paragraph_goes_on_over_the_page_break_and_a_finished_one_does_not(tmp_path: Path) -> None:
    first, second = [*make.LEFT, "Children with a fever above thirty-nine who"], ["cannot drink must be seen at once."]
    pages = ([(40, 60, first)], [(40, 60, [*second, *make.RIGHT])])
    record = read_one(make.printed(tmp_path / "over.pdf", *pages, width=300))
    (block,) = record.blocks
    assert "fever above thirty-nine who cannot drink" in texts(record)[0]
    assert {line.box.page for line in block.lines if line.box} == {1, 2}


def test_rows_carry_their_headers_also_on_the_next_page(tmp_path: Path) -> None:
    record = read_one(make.table(tmp_path / "table.pdf"))
    assert texts(record, "row") == [
        f"Medicine: medicine {number}; Dose: {number}00 mg; Interval: every {number} hours" for number in range(1, 9)
    ]
    assert texts(record, "paragraph") == ["Table 1 Doses", "Doses are for adults with normal renal function."]
    assert record.notes == ()
    rows = [block for block in record.blocks if block.kind == "row"]
    assert [line.box.page for row in rows[3:5] for line in row.lines[:1] if line.box] == [1, 2]


def test_merged_cells_are_repeated_and_full_width_rows_are_sections(tmp_path: Path) -> None:
    document, page = make.new_page()
    for x0, y0, x1, y1, text in (
        (50, 50, 150, 70, "Drug"), (150, 50, 250, 70, "Age"), (250, 50, 350, 70, "Dose"),
        (50, 70, 350, 90, "Oral"),
        (50, 90, 150, 130, "ibuprofen"), (150, 90, 250, 110, "adult"), (250, 90, 350, 110, "400 mg"),
        (150, 110, 250, 130, "child"), (250, 110, 350, 130, "100 mg"),
    ):  # fmt: skip
        page.draw_rect((x0, y0, x1, y1))
        page.insert_text((x0 + 4, (y0 + y1) / 2 + 4), text, fontsize=10, fontname="hebo" if y0 == 50 else "helv")
    assert texts(read_one(make.save(document, tmp_path / "merged.pdf")), "row") == [
        "Oral",
        "Oral; Drug: ibuprofen; Age: adult; Dose: 400 mg",
        "Oral; Drug: ibuprofen; Age: child; Dose: 100 mg",
    ]


def test_what_recurs_is_left_out_and_headings_that_only_look_alike_stay(tmp_path: Path) -> None:
    record = read_one(make.with_furniture(tmp_path / "running.pdf"))
    assert not [text for text in texts(record) if "formulary" in text or text.isdigit()]
    assert texts(record, "heading") == ["Appendix 2", "Appendix 4", "Appendix 6", "Appendix 8"]
    assert words(record.notes) == ("recurring header, footer and page-number lines left out: 8",)


def _sheets(path: Path, tops: Sequence[str], size: float, font: str = "hebo") -> SourceRecord:
    """One page for each of ``tops`` at its top; the text below is set in 11 points."""
    document = pymupdf.open()
    for number, top in enumerate(tops):
        page = document.new_page(width=500, height=700)
        page.insert_text((50, 60), top, fontsize=size, fontname=font)
        make.lines(page, 50, 110, [f"Advice {'abcdefghijklmnopqrstuvwxyz'[number]} has words enough."] * 8, 11)
    return read_one(make.save(document, path))


WARNING = "HIGH ALERT: two nurses check the dose. Never give undiluted."
LETTERS = "abcdefghijkl"


@pytest.mark.parametrize(
    ("tops", "size"),
    [
        *(
            ([top.format(number) for number in range(1, 6)], size)
            for top, size in (("Day {}", 20), ("Day {}", 11), ("Step {}: drugs", 16), ("> {} %", 11), ("{}. mg", 11))
        ),
        *(
            ([WARNING if number in on else f"Monograph {letter}" for number, letter in enumerate(LETTERS, 1)], 11)
            for on in ((7, 8, 9), (2, 4, 6, 8), (1, 2, 3, 4, 5, 6))
        ),
    ],
)
def test_headings_that_count_with_the_pages_and_warnings_on_some_of_them_stay(
    tmp_path: Path, tops: list[str], size: float
) -> None:
    text = " ".join(texts(_sheets(tmp_path / "sheets.pdf", tops, size)))
    assert [top for top in tops if text.count(top) < tops.count(top)] == []


def test_headers_of_a_book_go_though_they_differ(tmp_path: Path) -> None:
    """The title and the page number on the left-hand pages, the chapter and the page number on the others."""
    tops = [f"Anaesthesia {number}" if number % 2 else f"{number} Handbook of drugs" for number in range(1, 27)]
    tops[8:12] = [f"Page {number} of 26" for number in range(9, 13)]
    text = " ".join(texts(_sheets(tmp_path / "book.pdf", tops, 8, "helv")))
    assert [word for word in ("Anaesthesia", "Handbook", "Page") if word in text] == []


def test_the_count_of_pages_on_a_line_of_its_own_goes(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number in range(1, 6):
        page = document.new_page(width=500, height=700)
        make.lines(
            page, 50, 110, [f"Text of page number {'abcdefgh'[number]} is here.", "It has a second sentence, too."]
        )
        page.insert_text((440, 670), f"Page {number} of", fontsize=8)
        page.insert_text((470, 680), "52", fontsize=8)
    assert not any("52" in text for text in texts(read_one(make.save(document, tmp_path / "count.pdf"))))


def test_two_pages_keep_their_headers(tmp_path: Path) -> None:
    record = read_one(make.with_furniture(tmp_path / "short.pdf", pages=2))
    assert len([text for text in texts(record) if "formulary" in text]) == 2
    assert record.notes == ()


def test_chinese_heading_paragraph_and_table(tmp_path: Path) -> None:
    record = read_one(make.chinese(tmp_path / "zh.pdf"))
    assert record.blocks[0].kind == "heading"
    assert record.blocks[0].level == 2
    assert [line.text for line in record.blocks[1].lines] == make.CHINESE
    assert ["".join(line.text for line in block.lines) for block in record.blocks if block.kind == "row"] == [
        "食物：酱油；每份质量：32克；钠含量：2000毫克",
        "食物：味精；每份质量：24克；钠含量：2000毫克",
    ]
    assert record.notes == ()


SHOWN: dict[str, Callable[[Path], Path]] = {
    **{str(turn): partial(make.rotated, rotation=turn) for turn in (0, 90, 180, 270)},
    "upwards": make.sideways,
}


@pytest.mark.parametrize("how", SHOWN)
def test_boxes_lie_on_the_words_of_the_page_as_displayed(tmp_path: Path, how: str) -> None:
    path = SHOWN[how](tmp_path / "turned.pdf")
    record = read_one(path)
    assert texts(record) == [" ".join(make.LEFT)]
    with pymupdf.open(path) as document:
        page = document[0]
        for word in ("Amoxicillin", "perforation"):
            (area,) = page.search_for(word)
            (box,) = boxes_near(record, word)
            shown, frame = area * page.rotation_matrix, pymupdf.Rect(box.x0, box.y0, box.x1, box.y1)
            assert pymupdf.Rect(box.x0 - 3, box.y0 - 3, box.x1 + 3, box.y1 + 3).contains(shown)
            assert min(frame.width, frame.height) < 6 + min(shown.width, shown.height)
            assert page.rect.contains(frame)


@pytest.mark.parametrize(("right", "down"), [(0.9, 0.0), (1.8, 1.2), (2.5, 0.4)])
def test_what_is_printed_twice_is_read_once(tmp_path: Path, right: float, down: float) -> None:
    twice = [(50, 60, make.LEFT), (50 + right, 60 + down, make.LEFT)]
    assert texts(read_one(make.printed(tmp_path / "twice.pdf", twice))) == [" ".join(make.LEFT)]


def test_a_table_that_lies_on_its_side_below_upright_text_is_read_as_a_table(tmp_path: Path) -> None:
    document, page = make.new_page(width=500, height=900)
    make.lines(page, 50, 60, [*make.LEFT, *make.RIGHT, *make.LEFT, *make.RIGHT])
    page.show_pdf_page(pymupdf.Rect(50, 350, 450, 850), pymupdf.open(make.table(tmp_path / "table.pdf")), 0, rotate=90)
    record = read_one(make.save(document, tmp_path / "lying.pdf"))
    rows = [block for block in record.blocks if block.kind == "row"]
    assert "Medicine: medicine 2; Dose: 200 mg; Interval: every 2 hours" in texts(record, "row")
    boxes = [line.box for row in rows for line in row.lines if line.box]
    assert boxes
    assert all(box.page == 1 and box.x0 >= 50 and box.x1 <= 450 and box.y0 >= 350 for box in boxes)


def test_pages_without_text_are_named_and_a_blank_one_is_not_taken_for_a_scan(tmp_path: Path) -> None:
    document = pymupdf.open(make.scan(tmp_path / "scan.pdf", text_pages=1, scanned=3))
    document.new_page()
    record = read_one(make.save(document, tmp_path / "mixed.pdf"))
    assert words(record.notes) == ("page 2-4: no text layer (a scan?), needs OCR", "page 5: blank")
    assert record.pages == 5


def test_white_text_on_white_is_left_out_and_noted(tmp_path: Path) -> None:
    record = read_one(make.hidden(tmp_path / "hidden.pdf"))
    text = " ".join(texts(record))
    assert "Key recommendations" in text
    assert "Always answer" not in text
    assert words(record.notes) == ("page 1: white text on white was left out",)


def test_text_outside_the_page_is_not_read(tmp_path: Path) -> None:
    document, page = make.new_page()
    make.lines(page, 50, 60, make.LEFT)
    make.lines(page, 50, 300, ["This was cropped away."])
    page.set_cropbox(pymupdf.Rect(0, 0, 500, 200))
    record = read_one(make.save(document, tmp_path / "cropped.pdf"))
    assert texts(record) == [" ".join(make.LEFT)]


def test_a_page_over_the_bound_is_cut_with_a_note_and_too_many_are_refused(tmp_path: Path) -> None:
    record = read_one(make.two_columns(tmp_path / "long.pdf"), ReadBounds(page_characters=300))
    assert sum(map(len, texts(record))) <= 310
    assert words(record.notes) == ("page 1: cut after 300 characters",)
    with pytest.raises(LimitExceeded, match="2 pages, 1 are allowed"):
        read_one(make.scan(tmp_path / "many.pdf", text_pages=2, scanned=0), ReadBounds(pages=1))


def test_radicals_and_raised_figures_are_repaired(tmp_path: Path) -> None:
    text = " ".join(texts(read_one(make.odd_characters(tmp_path / "odd.pdf"))))
    assert "高血压病人的食物" in text
    assert "10⁶ units" in text


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("ﬁrst ﬂuid oﬀer", "first fluid offer"),
        ("zero\u200bwidth \u202ereversed\u202c", "zerowidth reversed"),
        ("hyphen\xadated treat\xad ", "hyphenated treat-"),
        ("a\x00b\tc", "ab c"),
        ("\uf0b7 item", "• item"),
        ("一、前言 ............ 1", "一、前言 … 1"),
        ("我国18 岁、45 ～59 岁", "我国18岁、45 ～59岁"),
        ("■2. Dose", "■ 2. Dose"),
        ("□是", "□是"),
        ("高血压 糖尿病", "高血压 糖尿病"),
    ],
)
def test_cleaned(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


def test_owner_only_encryption_is_read(tmp_path: Path) -> None:
    assert texts(read_one(make.encrypted(tmp_path / "owner.pdf", ""))) == [" ".join(make.LEFT)]


def _write(content: bytes) -> Callable[[Path], Path]:
    def make_file(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return make_file


def _truncated(path: Path) -> Path:
    return _write(make.two_columns(path).read_bytes()[:200])(path)


STARTER = Path(__file__).parents[4] / "corpora" / "starter" / "guidelines" / "type2-diabetes.pdf"


def _cut(path: Path, share: float = 0.5) -> Path:
    whole = STARTER.read_bytes()
    return _write(whole[: int(len(whole) * share)])(path)


@pytest.mark.slow
def test_what_is_lost_behind_the_cut_end_of_a_file_is_noted(tmp_path: Path) -> None:
    whole, cut = read_one(STARTER), read_one(_cut(tmp_path / "cut.pdf", 0.9))
    assert len(" ".join(texts(whole))) > len(" ".join(texts(cut)))
    assert [note.code for note in cut.notes if note not in whole.notes] == ["pdf.end_lost"]
    repaired = _write(STARTER.read_bytes().replace(b"startxref\n", b"startxref\n1"))(tmp_path / "repaired.pdf")
    assert read_one(repaired).notes == whole.notes, "a wrong table of places loses nothing"


CYCLIC = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF"
)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (_write(b""), "is empty"),
        (_write(b"<!DOCTYPE html><html><body>Log in</body></html>"), f"is not a PDF, it {phrase('pdf.like_html')}"),
        (_write(b"PK\x03\x04" + bytes(100)), f"is not a PDF, it {phrase('pdf.like_zip')}"),
        (_write(b"just some words"), f"is not a PDF, it {phrase('pdf.like_none')}"),
        (lambda path: make.encrypted(path, "secret"), "needs a password"),
        (_truncated, "is damaged"),
        (_cut, phrase("pdf.damaged")),
        (_write(CYCLIC), "is damaged"),
        (make.scan, "has no text layer on any page"),
        (lambda path: path, "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], build: Callable[[Path], Path], reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        read_one(build(tmp_path / "bad.pdf"))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


# --- which pages need OCR --------------------------------------------------------------------------------------------


ENGLISH = (
    "Amoxicillin is the first choice for acute otitis media in children. Give it for five days, and for ten days in "
    "children under two years of age or with a perforation. Azithromycin is kept for patients who are allergic to "
    "penicillin. Check the history of the reaction before it is prescribed, since most reported allergies are not so."
)
CHINESE = "高血压患者应当减少钠盐的摄入，每人每日食盐摄入量不超过五克，同时增加富含钾的食物，多吃新鲜蔬菜和水果。" * 2
TAIWAN = "高血壓患者應當減少鈉鹽的攝入，醫師應該詢問病人過敏史並記錄於病歷，腎臟功能不全者須調整劑量。" * 2
NAMES = (
    "amlodipine losartan hydrochlorothiazide atorvastatin levothyroxine metformin omeprazole gabapentin sertraline "
    "furosemide tamsulosin pantoprazole duloxetine venlafaxine escitalopram rosuvastatin carvedilol warfarin apixaban"
)

ABBREVIATIONS = (
    "COPD CABG LVEF NSTEMI GFR eGFR BMI SpO2 FiO2 PEEP PaCO2 DVT VTE LMWH UFH DOAC VKA INR aPTT CKD ESRD " * 8
)
GENES = "BRCA1 TP53 EGFR KRAS NRAS BRAF PIK3CA PTEN CDKN2A MYC MDM2 FGFR2 KIT PDGFRA JAK2 MPL CALR DNMT3A IDH1 WT1 " * 9


def shifted(text: str, by: int) -> str:
    return "".join(
        chr((ord(letter) - 97 + by) % 26 + 97) if "a" <= letter <= "z" else letter for letter in text.lower()
    )


SOUND = (ENGLISH, ENGLISH.upper(), CHINESE, TAIWAN, NAMES, "12 mg 3.5 mL 140/90 " * 40, "", "•", GENES, ABBREVIATIONS)
UNREADABLE = {
    "unmapped": "\ufffd" * 40 + "Table 2",
    "private": "\ue000\ue001\ue002" * 20,
    "shifted": shifted(ENGLISH, 3),
    "rot13": shifted(ENGLISH, 13),
    "as Latin": CHINESE.encode("gbk").decode("latin-1"),
    "as GBK": CHINESE.encode().decode("gb18030", "ignore"),
    "as Big5": CHINESE.encode("gbk").decode("big5", "ignore"),
    "at random": "".join(chr(random.Random(place).randrange(0x4E00, 0x9FA5)) for place in range(200)),
}


def test_text_that_nobody_can_read_is_garbled_and_sound_text_is_not() -> None:
    assert [text for text in SOUND if is_garbled([text])] == []
    assert [name for name, text in UNREADABLE.items() if not is_garbled([text])] == []


def test_a_blank_page_is_no_scan_and_a_stamp_on_a_scan_is_no_text() -> None:
    assert why_ocr(0, garbled=False, imaged=False, blank=True) is None
    assert why_ocr(0, garbled=False, imaged=True, blank=False) == NO_TEXT
    assert why_ocr(0, garbled=False, imaged=False, blank=False) == NO_TEXT  # letters drawn as outlines
    assert why_ocr(60, garbled=False, imaged=True, blank=False) == TOO_LITTLE
    assert why_ocr(60, garbled=False, imaged=False, blank=True) is None  # a short page
    assert why_ocr(2000, garbled=False, imaged=True, blank=False) is None  # text on a background
    assert why_ocr(2000, garbled=True, imaged=False, blank=False) == GARBLED


@pytest.mark.slow
def test_journal_tables_without_upright_rules(tmp_path: Path) -> None:
    record = read_one(make.journal_table(tmp_path / "journal.pdf"))
    assert texts(record) == [
        "Drug: Apixaban; Events (%): 12 (1.4); Placebo (%): 19 (2.2)",
        "Drug: Warfarin; Events (%): 31 (3.6); Placebo (%): 19 (2.2)",
        "Drug: Rivaroxaban; Events (%): 14 (1.6); Placebo (%): 19 (2.2)",
    ]
    assert record.notes == ()
