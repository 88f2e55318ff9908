"""Office files written by the libraries themselves: text, tables, notes; hidden, hostile and locked content."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from localmed.config import ReadBounds
from localmed.domain.errors import InputError, LimitExceeded, details
from localmed.ingest import readers
from localmed.ingest.parsed import FieldMapping
from tests.ingest.readers.reading import one, shape
from tests.words import pattern, said, words

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def saved(made: Any, path: Path) -> Path:
    made.save(str(path))
    return path


def rezipped(path: Path, change: Callable[[str, bytes], bytes | None], **added: bytes) -> Path:
    """``path`` with its parts changed (None: dropped) and parts added."""
    target = path.with_name(f"changed-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
        for name, content in added.items():
            new.writestr(name, content)
    return target


def kept(name: str, content: bytes) -> bytes:
    return content


# --- Word ------------------------------------------------------------------------------------------------------


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    document = docx.Document()
    document.add_heading("Sepsis", 1)
    paragraph = document.add_paragraph("Platelets below 100 × 10")
    paragraph.add_run("9").font.superscript = True
    paragraph.add_run("/L")
    paragraph.add_run(" secret").font.hidden = True
    paragraph.runs[0].add_break(WD_BREAK.LINE)
    document.add_heading("抗生素", 2)
    table = document.add_table(rows=4, cols=3)
    for row, texts in zip(
        table.rows, ("Drug|Dose|Dose", "|Adult|Child", "amoxicillin|500 mg|250 mg", "|1 g|"), strict=True
    ):
        for cell, text in zip(row.cells, texts.split("|"), strict=True):
            cell.text = text
    table.cell(0, 1).merge(table.cell(0, 2)).text = "Dose"
    table.cell(0, 0).merge(table.cell(1, 0)).text = "Drug"
    table.cell(2, 0).merge(table.cell(3, 0)).text = "amoxicillin"
    for row in table.rows[:2]:
        row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph("Call the microbiologist.", style="List Bullet")
    return saved(document, tmp_path / "protocol.docx")


def test_docx_golden(protocol: Path) -> None:
    record = one(protocol)
    assert shape(record) == [
        ("heading", 1, "Sepsis"),
        ("paragraph", 0, "Platelets below 100 × 10 ⁹/L"),
        ("heading", 2, "抗生素"),
        ("row", 0, "Drug: amoxicillin; Dose Adult: 500 mg; Dose Child: 250 mg"),
        ("row", 0, "Drug: amoxicillin; Dose Adult: 1 g"),
        ("paragraph", 0, "Call the microbiologist."),
    ]
    assert (record.title, words(record.notes)) == ("Sepsis", (said("reader.hidden_text", count=1),))


def test_a_docx_is_called_by_the_paragraph_in_the_style_for_titles(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Falls on the ward", 0)  # Word's style "Title", without an outline level
    document.add_paragraph("Edition 2026-02.")
    document.add_heading("After a fall", 1)
    document.add_paragraph("Do not lift the patient.")
    record = one(saved(document, tmp_path / "falls.docx"))
    assert record.title == "Falls on the ward"
    assert [kind for kind, *_ in shape(record)] == ["heading", "paragraph", "heading", "paragraph"]


def test_docx_content_controls_boxes_changes_and_notes(tmp_path: Path) -> None:
    document = docx.Document()
    body = document.element.body
    for xml in (
        f"<w:sdt {W}><w:sdtContent><w:p><w:r><w:t>In a control.</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        f"<w:p {W}><w:ins><w:r><w:t>Give 5 mg</w:t></w:r></w:ins><w:del><w:r><w:delText>Give 50 mg</w:delText></w:r>"
        "</w:del><w:hyperlink><w:r><w:t> daily.</w:t></w:r></w:hyperlink></w:p>",
        f"<w:p {W}><w:r><w:t>Anchor.</w:t><w:pict><w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p>"
        "</w:txbxContent></w:pict></w:r></w:p>",
    ):
        body.insert(len(body) - 1, parse_xml(xml))
    document.core_properties.title = "Ward\u202e rules"
    record = one(saved(document, tmp_path / "rules.docx"))
    assert [text for _, _, text in shape(record)] == ["In a control.", "Give 5 mg daily.", "Anchor.", "In a box."]
    assert record.title == "Ward rules"
    assert words(record.notes) == (said("reader.tracked_changes", count=2),)


def test_docx_footnotes_follow_what_refers_to_them(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Give 2 g.")
    reference = OxmlElement("w:footnoteReference")
    reference.set(qn("w:id"), "2")
    paragraph.runs[0]._r.append(reference)
    document.add_paragraph("Later.")
    path = saved(document, tmp_path / "notes.docx")
    note = '<w:footnote w:id="2"><w:p><w:r><w:t>Halve it in renal failure.</w:t></w:r></w:p></w:footnote>'
    notes = f"<w:footnotes {W}>{note}</w:footnotes>"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    content = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"

    def change(name: str, data: bytes) -> bytes:
        if name == "word/_rels/document.xml.rels":
            link = f'<Relationship Id="rId99" Type="{kind}" Target="footnotes.xml"/></Relationships>'
            return data.replace(b"</Relationships>", link.encode())
        if name == "[Content_Types].xml":
            return data.replace(
                b"</Types>", f'<Override PartName="/word/footnotes.xml" ContentType="{content}"/></Types>'.encode()
            )
        return data

    changed = rezipped(path, change, **{"word/footnotes.xml": notes.encode()})
    assert [text for _, _, text in shape(one(changed))] == ["Give 2 g.", "Halve it in renal failure.", "Later."]


def test_macros_and_templates_are_noted_and_never_fetched(protocol: Path) -> None:
    template = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate" '
        b'Target="http://192.0.2.1/evil.dotm" TargetMode="External"/></Relationships>'
    )

    def with_macros(name: str, content: bytes) -> bytes:
        plain = b"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
        return content.replace(plain, b"application/vnd.ms-word.document.macroEnabled.main+xml")

    parts = {"word/vbaProject.bin": b"x", "word/_rels/settings.xml.rels": template, "word/embeddings/a.bin": b"x"}
    changed = rezipped(protocol, with_macros, **parts).rename(protocol.with_suffix(".docm"))
    record = one(changed)
    assert shape(record) == shape(one(protocol))
    assert words(record.notes[:3]) == (
        said("reader.macros"),
        said("reader.outside", count=1),
        said("reader.embedded", count=1),
    )


# --- PowerPoint ------------------------------------------------------------------------------------------------


def test_pptx_golden(tmp_path: Path) -> None:
    show = pptx.Presentation()
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "Stroke"
    first.placeholders[1].text = "Call at once\nNo delay"
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    second = show.slides.add_slide(show.slide_layouts[6])
    table = second.shapes.add_table(2, 2, 0, 0, Inches(4), Inches(1)).table
    for place, text in (((0, 0), "Drug"), ((0, 1), "Dose"), ((1, 0), "alteplase"), ((1, 1), "0.9 mg/kg")):
        table.cell(*place).text = text
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "In a group."
    data = CategoryChartData()
    data.categories = ["2024", "2025"]
    data.add_series("Cases", (3, 4.5))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(3), Inches(2), data)
    third = show.slides.add_slide(show.slide_layouts[5])
    third.shapes.title.text = "Old"
    third._element.set("show", "0")
    record = one(saved(show, tmp_path / "stroke.pptx"))
    assert shape(record) == [
        ("heading", 1, "Slide 1: Stroke"),
        ("paragraph", 0, "Call at once"),
        ("paragraph", 0, "No delay"),
        ("heading", 2, "Slide 1: notes"),
        ("paragraph", 0, "Say it slowly."),
        ("heading", 1, "Slide 2"),
        ("row", 0, "Drug: alteplase; Dose: 0.9 mg/kg"),
        ("paragraph", 0, "In a group."),
        ("row", 0, "2024; Cases: 3"),
        ("row", 0, "2025; Cases: 4.5"),
    ]
    assert (record.title, words(record.notes)) == ("Stroke", (said("reader.hidden_slides", count=1),))


# --- Excel -----------------------------------------------------------------------------------------------------


def test_xlsx_golden(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Formulary"
    sheet.append(["Hospital formulary"])
    sheet.append(["Drug", "Dose", "Share", "From"])
    sheet.append(["aspirin", 75, 0.125, datetime.date(2026, 3, 1)])
    sheet.append([None, 300.5, None, None])
    sheet.append(["hidden", 1, 1, 1])
    sheet.append(["heparin", "=B3*2", True, None])
    sheet.merge_cells("A3:A4")
    sheet["B3"].number_format = '0.0" mg"'
    sheet["C3"].number_format = "0.0%"
    sheet.row_dimensions[5].hidden = True
    sheet.column_dimensions["F"].hidden = True
    sheet["F3"] = "not shown"
    book.create_sheet("Old").append(["gone"])
    book["Old"].sheet_state = "hidden"
    record = one(saved(book, tmp_path / "formulary.xlsx"))
    assert shape(record) == [
        ("heading", 1, "Formulary"),
        ("paragraph", 0, "Hospital formulary"),
        ("row", 0, "Drug: aspirin; Dose: 75 mg; Share: 12.5%; From: 2026-03-01"),
        ("row", 0, "Drug: aspirin; Dose: 300.5"),
        ("row", 0, "Drug: heparin; Share: TRUE"),
    ]
    assert words(record.notes) == (
        said("reader.hidden_sheets", count=1),
        said("reader.hidden_rows", count=1),
        said("reader.hidden_columns", count=1),
        said("reader.formulas", count=1),
    )


def test_no_cell_of_a_large_sheet_is_lost(tmp_path: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Big")
    sheet.append([f"Column {column}" for column in range(8)])
    for row in range(500):
        sheet.append([f"r{row}c{column}" for column in range(8)])
    assert shape(one(saved(book, tmp_path / "big.xlsx")))[1:] == [
        ("row", 0, "; ".join(f"Column {column}: r{row}c{column}" for column in range(8))) for row in range(500)
    ]


# --- what is refused -------------------------------------------------------------------------------------------


def test_what_is_no_package_is_refused_by_name(tmp_path: Path, protocol: Path) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    doctype = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    bad = {
        "needs a password": ole + b"\x00" * 600 + "EncryptedPackage".encode("utf-16-le"),
        "from before 2007": ole + b"\x00" * 600,
        "is empty": b"",
        "is damaged": protocol.read_bytes()[:3000],
    }
    for why, content in bad.items():
        for ending in (".docx", ".pptx", ".xlsx"):
            path = tmp_path / f"bad{ending}"
            path.write_bytes(content)
            with pytest.raises(InputError, match=why):
                one(path)
    ours, strict = b"schemas.openxmlformats.org/wordprocessingml", b"purl.oclc.org/ooxml/wordprocessingml"
    changes: dict[str, Callable[[str, bytes], bytes | None]] = {
        "declares a document type": lambda name, content: doctype if name == "word/document.xml" else content,
        "Strict Open XML": lambda name, content: content.replace(ours, strict),
        pattern("reader.zip_no_office"): lambda name, content: None,
        "is damaged": lambda name, content: content[:-200] if name == "word/document.xml" else content,
    }
    for why, change in changes.items():
        with pytest.raises(InputError, match=why):
            one(rezipped(protocol, change))


def test_what_a_library_calls_a_damage_is_a_detail(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(InputError) as caught:
        list(readers.load("docx")(tmp_path / "a.docx", FieldMapping()))
    assert "BadZipFile" not in words(caught.value.full_message)
    assert details(caught.value.message) == ("BadZipFile",)


def test_a_package_with_a_part_missing_is_damaged(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "Sepsis"
    book = openpyxl.Workbook()
    book.active.append(["Drug", "Dose"])
    lost = (b't="inlineStr"><is><t>Drug</t></is>', b't="s"><v>7</v>')  # a shared string that is not there
    empty = f"<w:document {W}/>".encode()
    letter, deck_file, sheet = (
        saved(made, tmp_path / name)
        for made, name in ((docx.Document(), "letter.docx"), (deck, "deck.pptx"), (book, "book.xlsx"))
    )
    broken = (
        rezipped(letter, lambda name, content: empty if name == "word/document.xml" else content),
        rezipped(deck_file, lambda name, content: None if name.endswith("slide1.xml") else content),
        rezipped(sheet, lambda name, content: content.replace(*lost)),
    )
    for path in broken:
        with pytest.raises(InputError, match="is damaged"):
            one(path)


def test_a_package_that_swells_is_not_unpacked(tmp_path: Path, protocol: Path) -> None:
    bomb = rezipped(protocol, kept, **{"word/media/zeros.bin": bytes(20 * 2**20)})
    with pytest.raises(LimitExceeded, match=r"read\.archive_ratio"):
        one(bomb)
    with pytest.raises(LimitExceeded, match=r"read\.archive_bytes"):
        one(protocol, bounds=ReadBounds(archive_bytes=1000))
    with pytest.raises(LimitExceeded, match=r"read\.archive_members"):
        one(protocol, bounds=ReadBounds(archive_members=3))
