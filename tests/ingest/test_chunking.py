"""Cutting: whatever the document, nothing is lost, doubled, mixed up or cut in the middle of a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import ChunkSettings
from localmed.domain import Box, Document, Passage, digest
from localmed.ingest import line_ends, reading
from localmed.ingest.parsed import Block, BlockKind, Line, SourceRecord
from localmed.library.lexical import dump, parse_passage
from localmed.text.language import sentences
from tests.values import passage as made_passage

SENTENCES = [
    "Give antibiotics within one hour.",
    "Dr. Smith measured 4.5 mg/l of lactate.",
    "Is it sepsis?",
    "Repeat, e.g. after two hours!",
    "脓毒症患者应在一小时内使用抗生素。",
    "剂量为每日4.5 mg/kg，分两次口服。",
    "是否需要输液？",
    "a" * 90 + ".",
    "No full stop",
    "A long sentence with many words, commas, and clauses; it goes on until the limit is far behind it, as in law.",
    "一个很长的句子，包含许多逗号，许多分句，许多从句，一直延续下去，直到超过限度，还没有结束，仍然在继续，因为它没有句号，也没有停顿。",
]
WORDS = ["well-", "known", "抗生", "素", "beta-", "5-", "10", "Up-", "x", "mg.", "。", " ", "\t", "", "  two  words "]


def document(content: str = "content", collection: str = "ward") -> Document:
    return Document("id", collection, "key", "Title", "en", "file.txt", "0" * 64, content, "text")


def cut(record: SourceRecord, limit: int = 100, of: Document | None = None) -> list[Passage]:
    made = of or document(reading.content_of(record))
    return list(reading.passages(record, made, ChunkSettings(limit)))


def paragraph(text: str, kind: BlockKind = "paragraph") -> Block:
    return Block.of(kind, text)


boxes = st.builds(lambda page, at: Box(page, 72, at, 400, at + 10), st.integers(1, 3), st.integers(0, 700))
lines = st.builds(
    Line, st.one_of(st.sampled_from(SENTENCES), st.sampled_from(WORDS), st.text(max_size=40)), st.none() | boxes
)
texts = st.lists(lines, max_size=6).map(tuple)
blocks = st.builds(Block, st.sampled_from(["heading", "paragraph", "paragraph", "row"]), texts, st.integers(1, 3))
records = st.builds(lambda parts: SourceRecord("", "Title", tuple(parts)), st.lists(blocks, max_size=10))
limits = st.integers(20, 200)


def squeezed(text: str) -> str:
    return "".join(text.split())


def sections(record: SourceRecord) -> list[tuple[tuple[str, ...], str]]:
    """The text under passage heading, with the path of headings to it."""
    parts: list[tuple[tuple[str, ...], str]] = []
    path: list[tuple[int, str]] = []
    for block in record.blocks:
        text = reading.text_of(block.lines)[0]
        if block.kind == "heading":
            path = [*(heading for heading in path if heading[0] < block.level), (block.level, text)]
            parts.append((tuple(heading for _, heading in path), ""))
        else:
            headings, before = parts.pop() if parts else ((), "")
            parts.append((headings, before + squeezed(text)))
    return [part for part in parts if part[1]]


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
def test_every_character_is_in_one_passage_under_its_heading_in_order(record: SourceRecord, limit: int) -> None:
    made = ((passage.headings, squeezed(passage.text)) for passage in cut(record, limit))
    assert together(made) == together(sections(record))  # two sections of the same path may follow each other


def together(parts: Iterable[tuple[tuple[str, ...], str]]) -> list[tuple[tuple[str, ...], str]]:
    """``parts`` with neighbours of the same path as one."""
    groups = groupby(parts, lambda part: part[0])
    return [(headings, "".join(text for _, text in group)) for headings, group in groups]


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
@pytest.mark.slow
def test_passages_keep_the_limit_whole_sentences_and_rows_apart(record: SourceRecord, limit: int) -> None:
    made = cut(record, limit)
    assert all(passage.text.strip() and len(passage.text) <= limit for passage in made)
    whole = [squeezed(passage.text) for passage in made if not passage.table]
    rows = ""
    for block in record.blocks:
        text = reading.text_of(block.lines)[0]
        rows += squeezed(text) if block.kind == "row" else ""
        for start, end in sentences(text) if block.kind == "paragraph" else ():
            assert end - start > limit or any(squeezed(text[start:end]) in paragraph for paragraph in whole)
    assert squeezed("".join(passage.text for passage in made if passage.table)) == rows


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
def test_spans_lie_inside_and_say_what_their_line_says(record: SourceRecord, limit: int) -> None:
    by_box: dict[Box, str] = {}
    for block in record.blocks:
        for line in block.lines:
            if line.box is not None and block.kind != "heading":
                by_box[line.box] = by_box.get(line.box, "") + squeezed(line.text)
    covered: dict[Box, str] = {}
    for passage in cut(record, limit):
        assert passage.page == (passage.spans[0].box.page if passage.spans else 0)
        ends = 0
        for span in passage.spans:
            assert 0 <= span.start < span.end <= len(passage.text)
            assert span.start >= ends, "two lines do not share characters"
            ends = span.end
            covered[span.box] = covered.get(span.box, "") + squeezed(passage.text[span.start : span.end])
    for box, text in covered.items():  # a hyphen at a line's end may have been undone
        assert text.replace("-", "") == by_box[box].replace("-", "")
    assert set(covered) == {box for box, text in by_box.items() if text}


@hypothesis(deadline=None, max_examples=100)
@given(records, limits)
def test_ids_are_stable_and_unique(record: SourceRecord, limit: int) -> None:
    made = cut(record, limit)
    assert made == cut(record, limit)
    assert len({passage.id for passage in made}) == len(made)
    others = cut(record, limit, document("other")) + cut(record, limit, document(reading.content_of(record), "clinic"))
    assert not {passage.id for passage in made} & {other.id for other in others}
    for passage in made:
        start, end = map(int, passage.locator.split("-"))
        assert start < end
        assert passage.id == digest("ward", reading.content_of(record), passage.locator)


def test_other_content_is_other_content() -> None:
    record = SourceRecord("", "Title", (paragraph("One."), paragraph("Two.")))
    others = [
        replace(record, title="Other"),
        replace(record, blocks=(paragraph("One. Two."),)),
        replace(record, blocks=(paragraph("One."), paragraph("Two.", "row"))),
        replace(record, blocks=(paragraph("One."), Block.of("heading", "Two.", 1))),
        replace(record, blocks=(*record.blocks, paragraph(""))),
    ]
    assert len({reading.content_of(version) for version in (record, *others)}) == 6
    assert reading.content_of(replace(record, key="other", edition="2024")) == reading.content_of(record)


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (["infec-", "tion control"], "infection control"),
        (["pre-", "and postoperative"], "pre- and postoperative"),
        (["COVID-", "19"], "COVID-19"),
        (["Covid-", "Patients"], "Covid-Patients"),
        (["give 5–", "10 mg/", "kg"], "give 5–10 mg/kg"),
        (["see https://", "www.example.org."], "see https://www.example.org."),
        (["see http://www.example.", "org/a."], "see http://www.example.org/a."),
        (["see http://www.example.org/", "and ask"], "see http://www.example.org/ and ask"),
        (["(http://www.example.org/)", "及其"], "(http://www.example.org/) 及其"),
        (["脂肪≥", "40%"], "脂肪≥40%"),
        (["高血压", "患者"], "高血压患者"),
        (["剂量为", "5 mg"], "剂量为 5 mg"),
        (["见第一。", "（二）"], "见第一。（二）"),
        (["non-" + line_ends.JOINER, "invasive"], "non-invasive"),
        (["two", "", "  words\there "], "two words here"),
        ([], ""),
    ],
)
def test_lines_are_joined(parts: list[str], joined: str) -> None:
    text, spans = reading.text_of([Line(part, Box(1, 0, at, 1, at + 1)) for at, part in enumerate(parts)])
    assert text == joined
    said = [" ".join(part.split()).rstrip("-" + line_ends.JOINER) for part in parts if part.strip()]
    assert [text[span.start : span.end].rstrip("-") for span in spans] == said


@pytest.mark.parametrize(
    ("parts", "limit", "made"),
    [
        (["第一句。第二句。", "第三句。"], 100, ["第一句。第二句。\n第三句。"]),
        (["One here. Two here.", "Three."], 100, ["One here. Two here.\nThree."]),
        (["x" * 49 + ".", "y" * 30 + "."], 100, ["x" * 49 + ".", "y" * 30 + "."]),  # half full at its paragraph's end
        (["x" * 49 + ".", "y" * 30 + "."], 110, ["x" * 49 + ".\n" + "y" * 30 + "."]),
        (["first part, " * 3 + "end."], 27, ["first part, first part,", "first part, end."]),  # at a minor break
    ],
)
def test_sentences_are_packed(parts: list[str], limit: int, made: list[str]) -> None:
    record = SourceRecord("", "Title", tuple(map(paragraph, parts)))
    assert [passage.text for passage in cut(record, limit)] == made


def test_headings_nest() -> None:
    record = SourceRecord(
        "", "Title",
        (paragraph("Zero."), Block.of("heading", "A", 1), paragraph("One."), Block.of("heading", "B", 2),
         paragraph("Two."), Block.of("heading", "C", 2), Block.of("heading", "D", 1), paragraph("Three.")),
    )  # fmt: skip
    assert [(passage.headings, passage.text) for passage in cut(record)] == [
        ((), "Zero."), (("A",), "One."), (("A", "B"), "Two."), (("D",), "Three."),
    ]  # fmt: skip
    named = (Block.of("heading", "Title", 1), Block.of("heading", "Dose.", 2), paragraph("5 mg."))
    assert cut(SourceRecord("", "Title", named))[0].in_context == "Title. Dose. 5 mg.", "the subject once"


def test_a_paragraph_of_very_many_lines_is_joined_in_a_time_that_grows_with_it() -> None:
    lines = [Line(f"Give paracetamol number {number} until the fever ends.") for number in range(20_000)]
    began = time.process_time()
    text, _ = reading.text_of(lines)
    assert time.process_time() - began < 20, "quadratic before: 134 s for 5,000 lines"
    assert text.count("fever ends. Give") == 19_999
    lines = [Line("word " * 500), Line("see https://example.org/a/"), Line("b/c and antibi-"), Line("otics")]
    assert reading.text_of(lines)[0].endswith("word see https://example.org/a/b/c and antibiotics")


def test_a_passage_of_a_torn_table_is_stored_as_one_and_others_as_before() -> None:
    whole = made_passage("Medicine: amoxicillin; Dose: 500 mg")
    for one in (whole, replace(whole, doubtful=True)):
        assert parse_passage(dump(one)) == one
    assert b"doubtful" not in dump(whole)
