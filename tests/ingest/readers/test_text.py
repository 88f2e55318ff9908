"""Plain text and Markdown: encodings, nonsense refused, invisible characters, headings, tables, front matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.parsed import Block, FieldMapping, Line, SourceRecord
from localmed.ingest.readers import encoding, markdown, text, values

FIXTURES = Path(__file__).parents[1] / "fixtures"
ZH = "高血压患者应当限制食盐，每日摄入量不超过五克。\n医生须告知病人并记录血压。"


def one(path: Path, reader: str = "") -> SourceRecord:
    [record] = readers.choose(path, reader)[1](path, FieldMapping())
    assert isinstance(record, SourceRecord)
    return record


def shape(blocks: tuple[Block, ...]) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, "|".join(line.text for line in block.lines)) for block in blocks]


def of(content: str) -> list[tuple[str, int, str]]:
    return shape(tuple(text.blocks_of(content)))


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
    path = tmp_path / f"cut.{ending}"
    path.write_bytes(ZH.encode()[:-2])
    record = one(path)
    assert record.notes == (message("reader.cut_short"),)
    assert record.blocks[-1].lines[-1].text.endswith("医生须告知病人并记录血压")


def test_page_breaks_end_paragraphs_and_nothing_invisible_stays() -> None:
    hidden = "a\u00ad\u200d\ufeff\U000e0041\x07b\x0cc\u2028d\re"
    assert encoding.clean(hidden) == "ab\n\nc\nd\ne"
    assert encoding.clean("plain") == "plain"


def test_paragraphs_keep_their_printed_lines() -> None:
    assert of("one\n  two  \n\n\nthree\n") == [("paragraph", 0, "one|two"), ("paragraph", 0, "three")]


def test_headings() -> None:
    assert of("Title\n=====\nbody\nPart\n----\nmore") == [
        ("heading", 1, "Title"),
        ("paragraph", 0, "body"),
        ("heading", 2, "Part"),
        ("paragraph", 0, "more"),
    ]
    assert [
        level for _, level, _ in of("DOSAGE AND USE\ntext\n\n2.1 Adults\n\n第一章 总则\n\n一、适应证\n\n（二）用法")
    ] == [*(2, 0, 2, 1, 2, 3)]


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


def test_titles(tmp_path: Path) -> None:
    for content, title in (
        ("Asthma in adults\n\nBody text here.", "Asthma in adults"),
        ("第一章 总则\n正文。", "第一章 总则"),
        ("This begins at once and is a sentence.\n\nMore.", "named"),
        ("only one paragraph", "named"),
    ):
        path = tmp_path / "named.txt"
        path.write_text(content, encoding="utf-8")
        assert one(path).title == title


def test_a_file_without_text_is_refused(tmp_path: Path) -> None:
    for name in ("empty.txt", "empty.md"):
        (tmp_path / name).write_bytes(b" \n\x00\n")
        with pytest.raises(InputError, match="no text"):
            one(tmp_path / name)


def test_markdown_golden() -> None:
    record = one(FIXTURES / "guideline.md")
    assert (record.title, record.edition, record.language) == ("Example guideline", "2023-06-01", "zh")
    assert (record.status, record.replaced_by) == ("superseded", "guideline-2025")
    assert shape(record.blocks) == [
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


def test_markdown_tables_in_english_and_ragged_rows() -> None:
    table = "| Drug | Dose |\n|---|---|\n| *A* | 5 mg |\n| B |\n| C | 1 | extra |\n"
    assert [text for _, _, text in shape(tuple(markdown.blocks_of(table)))] == [
        "Drug: A; Dose: 5 mg",
        "Drug: B",
        "Drug: C; Dose: 1",
    ]


def test_markdown_without_front_matter_keeps_its_rule() -> None:
    body = "---\nThis is a sentence.\n---\n\ntext"
    assert markdown.front_matter(body) == ({}, body)
    assert markdown.front_matter("---\ntitle: x: y\n---\nbody") == ({"title": "x: y"}, "body")


def test_markdown_with_a_status_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("---\nstatus: perhaps\n---\ntext", encoding="utf-8")
    with pytest.raises(InputError, match="status"):
        one(path)


def test_the_title_of_markdown_is_its_first_heading(tmp_path: Path) -> None:
    path = tmp_path / "stem.md"
    path.write_text("# Fever `in` *adults*\n\ntext", encoding="utf-8")
    record = one(path)
    assert record.title == "Fever in adults"
    assert record.blocks[1] == Block("paragraph", (Line("text"),))


@pytest.mark.parametrize(
    ("prose", "language"),
    [
        (
            "Le traitement de la pneumonie est donné pour cinq jours, sauf chez les patients qui ne vont pas.",
            "fr",
        ),
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
    from localmed.ingest.reading import _language

    french = "Le traitement de la pneumonie est donné pour cinq jours, sauf chez les patients qui ne vont pas."
    assert _language(french, "", "en")[0] == "fr"
    language, notes = _language(french, "en", "")
    assert (language, [note.code for note in notes]) == ("en", ["import.language_unlike"])
    assert _language("Amoxicillin 500 mg", "", "fr")[0] == "fr"
