"""The readers of the papers' local databases: OMIM, OncoKB, MedQA's textbooks, Wikipedia. Golden files, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localmed.config import ReadBounds
from localmed.domain import Collection
from localmed.domain.errors import InputError
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Block, Fault, SourceRecord
from localmed.ingest.parsing import Parser
from tests.fakes import documents, import_into, verify
from tests.ingest.readers.reading import FIXTURES, read, shape, texts, written
from tests.words import phrase, said, words

LONG = "This made-up paragraph is long enough to stand alone: it has more than one hundred characters, counted by hand."
COLUMNS = ("Level", "Gene", "Alterations", "Cancer Types", "Drugs (for therapeutic implications only)")


def of(name: str, path: Path, **options: Any) -> tuple[list[SourceRecord], list[Fault]]:
    items = read(path, name, **options)
    records = [item for item in items if isinstance(item, SourceRecord)]
    return records, [item for item in items if isinstance(item, Fault)]


# --- golden files ----------------------------------------------------------------------------------------------------


def test_omim_golden() -> None:
    records, faults = of("omim", FIXTURES / "omim.txt")
    assert len(records) == 12
    first, tenth, last = records[0], records[9], records[-1]
    assert (first.key, first.title) == ("999001", "DEMONSTRATION KIDNEY SYNDROME; DKIS")
    assert first.identifiers == ("mim:999001",)
    assert (first.edition, first.language) == ("2010-01-12", "en")
    assert words(first.notes) == ("segments under 100 characters dropped: 2",)
    assert [kind for kind, *_ in shape(first)] == ["heading", "paragraph", "heading", "paragraph", "paragraph"]
    assert [texts(first)[at] for at in (0, 2)] == ["Description", "Clinical features"]
    assert texts(first)[1].startswith("Demonstration kidney syndrome is an invented condition that exists in this")
    assert (tenth.key, tenth.title) == ("999010", "DEMONSTRATION NERVE SYNDROME; DNES")
    assert texts(tenth)[3].startswith("In the invented family number 10, 12 of 17 relatives")
    assert (last.key, last.edition) == ("999012", "2021-12-12")
    assert not any("An invented reference" in text for record in records for text in texts(record))
    assert words(faults) == [
        ("the whole file", said("reader.omim_moved", count=2, numbers="999101, 999102")),
        ("the whole file", said("reader.omim_empty", count=1, numbers="999103")),
    ]


def test_omim_from_the_interface() -> None:
    (record,), faults = of("omim", FIXTURES / "omim.json")
    assert (record.key, record.edition) == ("999201", "2016-08-05")
    headings = [text for kind, _, text in shape(record) if kind == "heading"]
    assert headings == ["Description", "Clinical Features"]
    assert len(record.blocks) == 2 + 3  # a single line break ends a paragraph too
    assert words(record.notes) == ("segments under 100 characters dropped: 2",)
    assert [fault.reason.code for fault in faults] == ["reader.omim_moved", "reader.omim_empty"]


def test_oncokb_golden() -> None:
    records, faults = of("oncokb", FIXTURES / "oncokb.tsv")
    assert len(records) == 12
    first, tenth, last = records[0], records[9], records[-1]
    assert (first.title, first.identifiers) == ("DEMA V100E in Demonstration Melanoma", ("oncokb:DEMA:V100E",))
    assert texts(first) == [
        "In Demonstration Melanoma with V100E in the gene DEMA, the recommended drug is Imaginib "
        "(OncoKB level 1; approved by the FDA for this alteration in this cancer)."
    ]
    assert tenth.key == "DEMF:Wildtype:Demonstration Colon Cancer:1:Blankimab"
    assert last.title == "DEMH MSI-H in All Solid Tumors"
    assert "recommended drug is Fabulimab or Imaginib" in texts(records[3])[0]
    assert "recommended drug is Imaginib + Fictinib" in texts(records[1])[0]
    assert records[1].identifiers == ("oncokb:DEMA:V100E", "oncokb:DEMA:V100K")
    assert of("oncokb", FIXTURES / "oncokb.json")[0] == records[:8], "the interface says the same"
    assert words(faults) == [("line 12", said("reader.oncokb_level", levels="1, 2, 3A, 3B, 4, R1, R2"))]


@pytest.mark.parametrize("level", ["1", "2", "3A", "3B", "4", "LEVEL_4", "R1", "R2", "level_r1"])
def test_an_oncokb_level_decides_the_sentence(tmp_path: Path, level: str) -> None:
    row = "\t".join((level, "DEMA", "V1E", "Demonstration Glioma", "Imaginib"))
    (record,), _ = of("oncokb", written(tmp_path / "a.tsv", "\t".join(COLUMNS) + "\n" + row))
    (sentence,) = texts(record)
    verdict = "resistant" if level[-2:].upper() in ("R1", "R2") else "recommended"
    assert [word for word in ("recommended", "resistant") if word in sentence] == [verdict]
    assert f"level {level.upper().removeprefix('LEVEL_')};" in sentence


def test_textbook_golden() -> None:
    (book,), faults = of("textbook", FIXTURES / "Physiology_Demo.txt")
    assert (book.key, book.title, faults) == ("", "Physiology_Demo", [])
    assert len(book.blocks) == 26
    assert book.blocks[0] == Block.of("paragraph", "Physiology for Demonstrations")
    assert book.blocks[9] == Block.of("paragraph", "本段为演示文字，说明虚构器官的功能。")
    assert book.blocks[-1] == book.blocks[9]
    headings = [(block.level, block.lines[0].text) for block in book.blocks if block.kind == "heading"]
    assert headings[:4] == [
        (1, "Part I The Imaginary Body"),
        (2, "Chapter 1 The Pump"),
        (3, "Section 1.1 Failure of the pump"),
        (2, "第一章 演示"),
    ]
    assert len(headings) == 10  # "Chapter 1 has shown that ..." is none


def test_wikipedia_golden() -> None:
    records = [record for name in ("wiki_00", "wiki_01") for record in of("wikipedia", FIXTURES / "wiki/AA" / name)[0]]
    assert len(records) == 12
    first, tenth, last = records[0], records[9], records[-1]
    assert (first.key, first.title, first.language) == ("100", "Asthma", "en")
    assert first.identifiers == ("wikipedia:en:100",)
    assert shape(first) == [
        ("paragraph", 0, "This demonstration article about asthma was written for a test and says nothing of use."),
        ("heading", 1, "Signs"),
        ("paragraph", 0, "The made-up sign number 0 of asthma is listed here.|It stands on two lines."),
        ("heading", 2, "In children"),
        ("paragraph", 0, "Children are said to show it 0 days later."),
    ]
    assert (tenth.key, tenth.title) == ("109", "Scurvy")
    assert (last.key, last.language, texts(last)[1]) == ("900", "zh", "症状")
    assert words(of("wikipedia", FIXTURES / "wiki/AA/wiki_01")[1]) == [("line 7", "has no text")]


def test_a_wiki_text_without_blank_lines_is_a_paragraph_a_line(tmp_path: Path) -> None:
    line = json.dumps({"id": 7, "title": "Gout", "url": "", "text": "Gout\nOne line.\nAnother line."})
    (record,), _ = of("wikipedia", written(tmp_path / "wiki_00", line), edition="2024-03")
    assert (texts(record), record.edition, record.identifiers) == (
        ["One line.", "Another line."],
        "2024-03",
        ("wikipedia:7",),
    )


# --- bad input -------------------------------------------------------------------------------------------------------


def omim(number: str, text: str, title: str = "") -> str:
    name = title or f"*{number} DEMONSTRATION"
    return f"*RECORD*\n*FIELD* NO\n{number}\n*FIELD* TI\n{name}\n*FIELD* TX\n{text}\n*FIELD* ED\nn: 1/2/2003\n"


def test_omim_numbers_that_are_none_or_come_twice_and_a_file_cut_short(tmp_path: Path) -> None:
    text = omim("999001", LONG) + omim("99", LONG) + omim("999001", LONG.replace("made-up", "other"))
    cut = text + omim("999002", LONG)
    records, faults = of("omim", written(tmp_path / "omim.txt", cut[: cut.rindex("made-up")]))
    assert [record.key for record in records] == ["999001"]
    assert [words(fault.where) for fault in faults] == ["record 2", "MIM 999001", "MIM 999002"]
    assert words(faults[-1].reason) == said("reader.omim_cut")


def test_omim_drops_99_characters_and_keeps_100(tmp_path: Path) -> None:
    text = "\n".join(["x" * 99, "y" * 100])
    (record,), _ = of("omim", written(tmp_path / "omim.txt", omim("999001", text) + "*THEEND*\n"))
    assert texts(record) == ["y" * 100]
    assert words(record.notes) == ("segments under 100 characters dropped: 1",)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        *(("omim", content, "omim") for content in ("", "# gene map\n1\t2\n", '{"omim": {}}', "[1, 2]")),
        ("oncokb", ",".join(COLUMNS) + "\n1,DEMA,V1E,Glioma,Imaginib", "not tab-separated"),
        ("oncokb", "Level\tGene\tAlterations\tCancer Types\n1\tA\tB\tC", "no column drugs"),
        ("oncokb", "", "not tab-separated"),
        ("wikipedia", '<doc id="1" url="" title="A">\nA\n\nText.\n</doc>\n', "--json"),
        *(("textbook", content, "omim") for content in ("", "\n\n", "\x00" * 100, "Chapter 1 Alone\n")),
    ],
)
def test_what_is_no_file_of_its_kind_is_refused(tmp_path: Path, name: str, content: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        of(name, written(tmp_path / "omim.txt", content))


@pytest.mark.parametrize(
    "entry",
    [{"mimNumber": "x"}, {"mimNumber": 999001, "textSectionList": 5}, {"mimNumber": 999001, "textSectionList": [3]},
     {"mimNumber": 999001, "titles": 4, "textSectionList": [{"textSection": {"textSectionContent": 7}}]}],
)  # fmt: skip
def test_an_odd_entry_of_the_interface_is_a_fault(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = written(tmp_path / "omim.json", json.dumps({"omim": {"entryList": [{"entry": entry}]}}))
    records, faults = of("omim", path)
    assert (records, len(faults)) == ([], 1)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("1", "DEMA", "V1E", "Glioma"), "has 4 of 5 columns"),
        (("1", "DEMA", "V1E", "Glioma", ""), "has no drugs"),
        (("1", "", "V1E", "Glioma", "Imaginib"), "has no gene"),
        (("Px2", "DEMA", "V1E", "Glioma", "Imaginib"), said("reader.oncokb_level", levels="1, 2, 3A, 3B, 4, R1, R2")),
        (("1", "DEMA", "V1E", "Glioma" * 200_000, "Imaginib"), "a field is longer than 2000 characters"),
    ],
)
def test_a_bad_oncokb_row_spares_the_others(tmp_path: Path, cells: tuple[str, ...], reason: str) -> None:
    good = "\t".join(("4", "DEMB", "V2E", "Glioma", "Imaginib"))
    lines = ["\t".join(COLUMNS), "\t".join(cells), good, good]
    records, faults = of("oncokb", written(tmp_path / "table.tsv", "\r\n".join(lines)))
    assert [record.title for record in records] == ["DEMB V2E in Glioma"]
    assert [words(fault.reason) for fault in faults] == [reason, said("reader.twice")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "2", "title": "T", "te', "is not valid JSON"),
        ('{"id": "2", "title": "T"}', "has no text"),
        ('{"id": "2", "title": "T", "text": 5}', "has no text"),
        ('{"id": "2", "title": "T", "text": "== Only a heading =="}', "has no text"),
        ('{"title": "T", "text": "t"}', "has no id"),
        ('{"id": "2", "text": "t"}', "has no title"),
        ('["id"]', "is not an object"),
        ('{"id": "1", "title": "T", "text": "again"}', phrase("reader.twice")),
    ],
)
def test_a_bad_article_spares_the_others(tmp_path: Path, line: str, reason: str) -> None:
    good = ('{"id": "1", "title": "One", "text": "First."}', '{"id": "3", "title": "Three", "text": "Third."}')
    records, faults = of("wikipedia", written(tmp_path / "wiki_00", "\n".join((good[0], line, good[1]))))
    assert [record.key for record in records] == ["1", "3"]
    assert len(faults) == 1
    assert words(faults[0].reason).startswith(reason)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("omim", lambda text: omim("999001", text) + "*THEEND*\n"),
        ("textbook", lambda text: text),
        ("wikipedia", lambda text: json.dumps({"id": 1, "title": "T", "text": text}, ensure_ascii=False)),
    ],
)
def test_nuls_gb18030_and_endless_lines(tmp_path: Path, name: str, make: Callable[[str], str]) -> None:
    chinese = "高血压患者应当定期测量血压，按时服药，并保持健康的生活方式。" * 4
    records, faults = of(name, written(tmp_path / "zh", make(chinese).encode("gb18030")))
    assert (texts(records[0])[-1], faults) == (chinese, [])
    (record,), _ = of(name, written(tmp_path / "nul", make(LONG + "\x00" + LONG)))
    assert texts(record)[-1] == LONG + LONG
    (record,), _ = of(name, written(tmp_path / "line", make("word " * 200_000)))
    assert sum(map(len, texts(record))) == 999_999


def test_a_book_of_ten_megabytes_is_read_in_the_limited_child(tmp_path: Path) -> None:
    line = LONG * 5 + "\n"
    path = written(tmp_path / "book.txt", line * (10_000_000 // len(line) + 1))
    with Parser() as parser:
        (book,) = parser.parse(path, "textbook", bounds=ReadBounds())
    assert isinstance(book, SourceRecord)
    assert sum(map(len, texts(book))) > 9_900_000


@pytest.mark.slow
def test_files_without_an_extension_are_imported_where_the_manifest_names_them(settings: Any) -> None:
    manifest = Manifest(Collection("wiki", "Wiki"), "wikipedia", files=("wiki_*",))
    report = import_into(settings, FIXTURES / "wiki", manifest=manifest)
    assert report.counts["documents"] == 12
    other = import_into(settings, FIXTURES, manifest=Manifest(Collection("o", "O"), "omim", files=("OMIM.*",)))
    assert {Path(line.path).name for line in other.lines if line.outcome == "read"} == {"omim.txt", "omim.json"}
    assert other.counts["skipped"] >= 5
    assert {"wiki_00#100", "omim.txt#999001"} <= set(documents(settings))
    verify(settings.data)
