"""Plain text and Markdown: encodings, nonsense refused, invisible characters, headings, tables, front matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import SourceRecord
from localmed.ingest.readers import encoding, markdown, text, values
from localmed.ingest.reading import _language, stated_edition
from tests.fakes import documents, import_into, write
from tests.ingest.readers.reading import FIXTURES, one, shape, texts, written

ZH = "高血压患者应当限制食盐，每日摄入量不超过五克。\n医生须告知病人并记录血压。"


def of(content: str) -> list[tuple[str, int, str]]:
    return shape(SourceRecord("", "", tuple(text.blocks_of(content))))


@pytest.mark.parametrize(
    "data",
    [
        ZH.encode(),
        b"\xef\xbb\xbf" + ZH.encode(),
        ZH.encode("gbk"),
        b"\xff\xfe" + ZH.encode("utf-16-le"),
        ZH.encode("utf-16-le"),
        ZH.replace("\n", "\r\n").encode(),
        ZH.replace("，", "\u200b，\u202e\x00").encode(),
        ZH.replace("，", "，\x1b[31m\u2066").encode(),
    ],
)
def test_one_text_in_every_encoding(data: bytes) -> None:
    assert encoding.decode(data) == ZH


@pytest.mark.parametrize(
    ("written", "codec"),
    [
        ("The patient’s dose is 5 µg – “as needed”. Naïve patients, café.", "cp1252"),
        ("The dose is 5 mg daily.\nStop if it hurts.", "utf-16-le"),
        ("糖尿病感染记录患者服用。", "utf-16-le"),
        ("Bệnh nhân tăng huyết áp nên hạn chế muối, không quá năm gam mỗi ngày.", "utf-8"),
        ("高血壓患者應當限制食鹽，每日攝入量不超過五克。醫生須告知病人並記錄血壓。" * 3, "big5"),
        ("Doses ≥ 5 µg/mL ↑, P < 0.01 (α = 0.05) 👍", "utf-8"),
    ],
)
def test_no_text_is_taken_for_another_language_or_nonsense(written: str, codec: str) -> None:
    assert encoding.decode(written.encode(codec)) == written


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (ZH.encode("gbk").decode("latin-1").encode(), "garbled"),
        (ZH.encode().decode("gb18030", "ignore").encode(), "garbled"),
        (("锟斤拷锟斤拷" + "\n").encode() * 9, "garbled"),
        (("文字\ufffd\ufffd" * 9).encode(), "the text cannot be read"),
        (b"PK\x03\x04" + b"\x00\x01\x02\x07" * 500, "the text cannot be read"),
        (ZH.encode("gbk") + b"\xff\xff" + ZH.encode(), "encoding"),
    ],
)
def test_nonsense_is_refused_and_not_shown(data: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        encoding.decode(data)
    assert str(refused.value).isascii()


@pytest.mark.parametrize("ending", ["txt", "md", "html", "csv"])
def test_a_file_cut_inside_a_character_says_so(tmp_path: Path, ending: str) -> None:
    record = one(written(tmp_path / f"cut.{ending}", ZH.encode()[:-2]))
    assert record.notes == (message("reader.cut_short"),)
    assert record.blocks[-1].lines[-1].text.endswith("医生须告知病人并记录血压")


def test_page_breaks_end_paragraphs_and_nothing_invisible_stays() -> None:
    hidden = "a\u00ad\u200d\ufeff\U000e0041\x07b\x0cc\u2028d\re"
    assert encoding.clean(hidden) == "ab\n\nc\nd\ne"
    assert encoding.clean("plain") == "plain"


def test_headings_and_paragraphs_with_their_printed_lines() -> None:
    assert of("one\n  two  \n\n\nthree\n") == [("paragraph", 0, "one|two"), ("paragraph", 0, "three")]
    assert of("Title\n=====\nbody\nPart\n----\nmore") == [
        ("heading", 1, "Title"),
        ("paragraph", 0, "body"),
        ("heading", 2, "Part"),
        ("paragraph", 0, "more"),
    ]
    numbered = "DOSAGE AND USE\ntext\n\n2.1 Adults\n\n第一章 总则\n\n一、适应证\n\n（二）用法"
    assert [level for _, level, _ in of(numbered)] == [2, 0, 2, 1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [
        "A SHORT SHOUT.",
        "2 Tablets daily, then stop",
        "一、每日两次，每次一片。",
        "1. Give oxygen. Then wait",
        "第一章的内容说明了很多事情并且这一行实在是太长了所以它不可能是一个标题",
    ],
)
def test_what_is_no_heading(line: str) -> None:
    assert all(kind == "paragraph" for kind, _, _ in of(f"{line}\n\nbody"))


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("named.txt", "Asthma in adults\n\nBody text here.", "Asthma in adults"),
        ("named.txt", "第一章 总则\n正文。", "第一章 总则"),
        ("named.txt", "This begins at once and is a sentence.\n\nMore.", "named"),
        ("named.txt", "only one paragraph", "named"),
        ("named.md", "# Fever `in` *adults*\n\ntext", "Fever in adults"),
    ],
)
def test_titles(tmp_path: Path, name: str, content: str, title: str) -> None:
    assert one(written(tmp_path / name, content)).title == title


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("empty.txt", " \n\x00\n", "no text"),
        ("empty.md", " \n\x00\n", "no text"),
        ("a.md", "---\nstatus: perhaps\n---\ntext", "status"),
    ],
)
def test_a_file_without_text_or_with_a_status_nobody_knows_is_refused(
    tmp_path: Path, name: str, content: str, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        one(written(tmp_path / name, content))


def test_markdown_golden() -> None:
    record = one(FIXTURES / "guideline.md")
    assert (record.title, record.edition, record.language) == ("Example guideline", "2023-06-01", "zh")
    assert (record.status, record.replaced_by) == ("superseded", "guideline-2025")
    assert shape(record) == [
        ("heading", 1, "高血压"),
        ("paragraph", 0, "Begin low, go|slow; see the table."),
        ("paragraph", 0, "first item"),
        ("paragraph", 0, "second item"),
        ("paragraph", 0, "with a second paragraph"),
        ("heading", 2, "用药"),
        ("row", 0, "药物：甲；剂量：5 mg"),
        ("row", 0, "药物：乙；剂量：10 mg；备注：一日一次"),
        ("paragraph", 0, "kept words"),
        ("paragraph", 0, "code line"),
    ]


def test_markdown_tables_ragged_rows_and_what_is_no_front_matter(tmp_path: Path) -> None:
    table = "| Drug | Dose |\n|---|---|\n| *A* | 5 mg |\n| B |\n| C | 1 | extra |\n"
    assert texts(one(written(tmp_path / "a.md", table))) == ["Drug: A; Dose: 5 mg", "Drug: B", "Drug: C; Dose: 1"]
    body = "---\nThis is a sentence.\n---\n\ntext"
    assert markdown._split_front_matter(body) == ({}, body)
    assert markdown._split_front_matter("---\ntitle: x: y\n---\nbody") == ({"title": "x: y"}, "body")


FRENCH = "Le traitement de la pneumonie est donné pour cinq jours, sauf chez les patients qui ne vont pas."


@pytest.mark.parametrize(
    ("prose", "language"),
    [
        (FRENCH, "fr"),
        ("Treat pneumonia for five days, and stop if the patient has had no fever for 48 hours.", "en"),
        ("肺炎的疗程为五天，体温正常48小时后停药。", "zh"),
        ("肺炎の治療は五日間とし、解熱後四十八時間で中止する。患者の状態を確認すること。", "und"),
        ("Лечение пневмонии продолжают пять дней.", "und"),
        ("hoito kestää viisi päivää ja lopetetaan kun potilas voi hyvin kuume laskenut " * 10, "und"),
        ("Amoxicillin 500 mg. Doxycycline 100 mg.", "en"),
        ("Recommandations cliniques\nDiagnostic différentiel\nTraitement médicamenteux\nEffets indésirables", "fr"),
        ("Sjögren syndrome, Ménière disease, Guillain-Barré syndrome", "en"),
        ("Technique for the unique physique", "en"),
    ],
)
def test_the_language_of_a_text_is_made_out_or_said_to_be_unknown(prose: str, language: str) -> None:
    assert values.language_of(prose) == language


def test_a_page_marked_english_by_its_template_is_read_as_what_it_is() -> None:
    assert _language(FRENCH, "", "en")[0] == "fr"
    language, notes = _language(FRENCH, "en", "")
    assert (language, [note.code for note in notes]) == ("en", ["import.language_unlike"])
    assert _language("Amoxicillin 500 mg", "", "fr")[0] == "fr"


# --- the date of an edition in a document's first lines --------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("Version 2025-03-01", "2025-03-01"), ("2025年6月1日修订", "2025-06-01"),
        ("Ward guideline AW-07. Version 3, issued 14 April 2025, review due April 2028.", "2025-04-14"),
        ("Date: 6 June 2024. Second edition.", "2024-06-06"), ("Edition 2024", "2024"),
        ("Issued 2021, revised 3 May 2024", "2024-05-03"), ("Next review: May 2029", ""),
        ("复审日期：2028年3月1日", ""),
        ("复审日期 2028-03-01 批准日期 2025-03-01", "2025-03-01"), ("2025年3月1日批准，2028年3月复审", "2025-03-01"),
        ("A trial of 2019 followed 300 patients", ""), ("Call 2020 for help. Ward 12", "")
    ],
)  # fmt: skip
def test_the_date_beside_a_word_of_editions(line: str, date: str) -> None:
    assert stated_edition(("Title", line)) == date


def test_a_document_gets_the_date_that_it_states(settings: Settings, corpus: Path) -> None:
    write(corpus, {"guide.md": "# Gout\n\nWard guide. Version 2025-03-01.\n\n## Dose\n\nGive 5 mg.\n"})
    import_into(settings, corpus)
    assert documents(settings)["guide.md"].edition == "2025-03-01"
