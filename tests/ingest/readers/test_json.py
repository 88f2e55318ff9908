"""JSON and JSON lines: shapes, field mapping, and broken parts beside sound ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localmed.config import ReadBounds
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import json_records, values
from tests.ingest.readers.reading import read, shape, written
from tests.words import words


def read_json(path: Path, content: Any, fields: Any = None, **options: Any) -> list[SourceRecord | Fault]:
    as_it_is = isinstance(content, bytes | str)
    name = "jsonl" if path.suffix == ".jsonl" else "json"
    return read(written(path, content if as_it_is else json.dumps(content)), name, fields, **options)


def keys(items: list[SourceRecord | Fault]) -> list[str]:
    return [item.key if isinstance(item, SourceRecord) else f"! {words(item.where)}" for item in items]


def first(path: Path, content: Any, fields: Any = None, **options: Any) -> SourceRecord:
    record = read_json(path, content, fields, **options)[0]
    assert isinstance(record, SourceRecord)
    return record


def shaped(record: SourceRecord) -> list[str]:
    return [("# " if kind == "heading" else "") + text for kind, _, text in shape(record)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", [{"id": 1, "text": "a"}, {"id": 0, "text": "b"}, {"text": "c"}], ["1", "0", "#3"]),
        ("a.json", {"id": "x", "text": "a"}, ["x"]),
        ("a.json", {"k1": {"text": "a"}, "k2": {"text": "b"}}, ["k1", "k2"]),
        ("a.json", '{"text": "a"}\n\n{"text": "b"}\n', ["#1", "#2"]),
        ("stored-without-suffix", '{"id": "p", "text": "a"}\n{"id": "q", "text": "b"}', ["p", "q"]),
        ("a.jsonl", '{"id": "only", "text": "a"}', ["only"]),
        ("a.json", '{\n "id": "pretty",\n "text": "a"\n}\n', ["pretty"]),
        ("a.json", [], []),
        ("a.jsonl", b"\xef\xbb\xbf" + b'{"id": "bom", "text": "a"}', ["bom"]),
        ("a.jsonl", '{"id": "u", "text": "甲"}\n'.encode("utf-16"), ["u"]),
    ],
)
def test_shapes(tmp_path: Path, name: str, content: Any, expected: list[str]) -> None:
    assert keys(read_json(tmp_path / name, content)) == expected


def test_broken_lines_are_faults_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [
        b'{"id": "1", "text": "secret one"}',
        b'{"id": "2", "text": "secret two"',
        b"",
        b'{"id": "3", "text": NaN}',
        b'{"id": "1", "text": "secret again"}',
        b'["secret"]',
        b'{"id": "4"}',
        b'{"id": "5", "text": "secret", "status": "secret"}',
        b'{"id": "6", "text": ' + b"[" * 100_000,
        b'{"id": 7, "text": ' + b"9" * 5_000 + b"}",
        '{"id": "8", "text": "血压高的病人应当少吃盐多运动"}'.encode("gb18030"),
        b'{"id": "9", "text": "\xff\xfe\x00\x81"}',
        b'{"id": "10", "text": "last"}',
    ]
    items = read_json(tmp_path / "a.jsonl", b"\n".join(lines))
    assert keys(items) == [
        *("1", "! line 2", "! line 4", "! line 5", "! line 6", "! line 7", "! line 8", "! line 9", "! line 10"),
        *("8", "! line 12", "10"),
    ]
    reasons = [words(item.reason) for item in items if isinstance(item, Fault)]
    assert not any("secret" in reason for reason in reasons)
    assert len(set(reasons)) >= 5


def test_a_line_over_the_bound_is_passed_over(tmp_path: Path) -> None:
    bounds = ReadBounds(record_characters=100)
    long = json.dumps({"text": "x" * 5000})
    items = read_json(tmp_path / "a.jsonl", f'{long}\n{{"text": "b"}}\n{long}', bounds=bounds)
    assert keys(items) == ["! line 1", "#2", "! line 3"]


@pytest.mark.parametrize(
    ("content", "read_before", "why"),
    [
        ('[{"text": "a"}, {"text": "b"', 1, "broken JSON at line 1"),
        ('[{"text": "a"}\n{"text": "b"}]', 1, "broken JSON at line 2"),
        ('[{"text": "a"}, {"text": NaN}]', 1, "NaN"),
        ('{"text": \n', 0, "broken JSON at line 2"),
        ("", 0, "broken JSON"),
    ],
)
def test_a_broken_file_ends_in_an_error_after_what_was_sound(
    tmp_path: Path, content: str, read_before: int, why: str
) -> None:
    items = json_records.read(written(tmp_path / "a.json", content), FieldMapping())
    for _ in range(read_before):
        assert isinstance(next(items), SourceRecord)
    with pytest.raises(InputError, match=why):
        next(items)


def test_usual_names(tmp_path: Path) -> None:
    content = {
        "_id": "d1",
        "name": "T\u200bitle",
        "abstract": "# Aim\nline one\nline two\n\nsecond",
        "date": "2021/3/9",
        "lang": "zh-CN",
        "link": "intranet/1",
        "status": "废止",
        "mesh": ["Asthma", "Humans"],
        "sections": [{"heading": "Dose", "text": "5 mg"}, {"title": "Risks", "paragraphs": ["a", "b"]}, "end"],
    }
    record = first(tmp_path / "a.json", content)
    assert (record.key, record.title, record.edition, record.language) == ("d1", "Title", "2021-03-09", "zh")
    assert (record.url, record.status, record.mesh) == ("intranet/1", "withdrawn", ("Asthma", "Humans"))
    assert record.identifiers == ()
    assert shape(record)[0] == ("heading", 1, "Aim")
    assert shaped(record)[1:] == ["line one|line two", "second", "# Dose", "5 mg", "# Risks", "a", "b", "end"]


def test_mapped_names_paths_and_lists(tmp_path: Path) -> None:
    content = {
        "123": {
            "QUESTION": "Does it?",
            "CONTEXTS": ["first", "second"],
            "LABELS": ["AIM", "METHODS"],
            "LONG_ANSWER": "yes",
            "meta": {"year": 2011, "tags": [{"name": "A"}, {"name": "B"}], "a.b": "dotted"},
            "text": "never",
        }
    }
    fields = {
        "title": ("QUESTION", "meta.a.b"),
        "text": ("CONTEXTS", "LONG_ANSWER"),
        "headings": "LABELS",
        "edition": "meta.year",
        "mesh": "meta.tags.name",
    }
    record = first(tmp_path / "a.json", content, fields, id_scheme="pmid")
    assert (record.key, record.identifiers) == ("123", ("pmid:123",))
    assert (record.title, record.edition, record.mesh) == ("Does it? dotted", "2011", ("A", "B"))
    assert shaped(record) == ["# AIM", "first", "# METHODS", "second", "yes"]


def test_a_mapped_body_is_the_whole_body(tmp_path: Path) -> None:
    content = [{"abstract": "a", "answer": "b", "sections": [{"text": "c"}]}]
    assert shaped(first(tmp_path / "a.json", content, {"text": "answer"})) == ["b"]
    assert shaped(first(tmp_path / "a.json", content, {"sections": "sections"})) == ["c"]


def test_sections_as_an_object_and_headings_without_text(tmp_path: Path) -> None:
    record = first(tmp_path / "a.json", {"s": {"用法": "口服", "禁忌": ["孕妇"]}}, {"sections": "s"})
    assert shaped(record) == ["# 用法", "口服", "# 禁忌", "孕妇"]
    assert keys(read_json(tmp_path / "b.json", [{"text": "# only a heading"}])) == ["! record 1"]


def test_a_record_with_a_title_alone_is_that_title_with_a_note(tmp_path: Path) -> None:
    content = [{"id": "1", "title": "Aspirin in stroke", "text": ""}, {"id": "2"}]
    (record, fault) = read_json(tmp_path / "a.json", content)
    assert isinstance(record, SourceRecord)
    assert record.blocks == (Block.of("paragraph", "Aspirin in stroke"),)
    assert words(record.notes) == ("no abstract",)
    assert isinstance(fault, Fault)


def test_a_misspelt_field_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no field titel"):
        read_json(tmp_path / "a.json", [], {"titel": "x"})


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        *(("2024", "2024"), ("2024-5", "2024-05"), ("2024/05/01", "2024-05-01"), ("20240501", "2024-05-01")),
        *(("2024年5月1日", "2024-05-01"), ("May 2024", "2024-05"), ("2024 Sept 3", "2024-09-03")),
        *(("2024-05-01T10:00:00Z", "2024-05-01"), ("2024-13", "2024"), ("3rd edition", "3rd edition")),
        *(("01/05/2024", "01/05/2024"), ("9999", "9999"), ("", "")),
    ],
)
def test_editions(written: str, iso: str) -> None:
    assert values.edition(written) == iso
