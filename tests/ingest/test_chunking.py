"""Cutting: whatever the document, nothing is lost, doubled, mixed up or cut in the middle of a sentence."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import ChunkSettings
from localmed.domain import Box, Document, Passage, digest
from localmed.ingest import chunking
from localmed.ingest.parsed import Block, BlockKind, Line, SourceRecord
from localmed.library.lexical import dump, undumped
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
    made = of or document(chunking.content_of(record))
    return list(chunking.passages(record, made, ChunkSettings(limit)))


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
        text = chunking.text_of(block.lines)[0]
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
    made: list[tuple[tuple[str, ...], str]] = []
    last: Passage | None = None
    for passage in cut(record, limit):
        if made and made[-1][0] == passage.headings and last is not None:
            made[-1] = (passage.headings, made[-1][1] + squeezed(passage.text))
        else:
            made.append((passage.headings, squeezed(passage.text)))
        last = passage
    expected: list[tuple[tuple[str, ...], str]] = []
    for headings, text in sections(record):  # two sections of the same path may follow passage other
        if expected and expected[-1][0] == headings:
            expected[-1] = (headings, expected[-1][1] + text)
        else:
            expected.append((headings, text))
    assert made == expected


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
@pytest.mark.slow
def test_no_passage_is_longer_than_the_limit_or_empty(record: SourceRecord, limit: int) -> None:
    for passage in cut(record, limit):
        assert passage.text.strip()
        assert len(passage.text) <= limit


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
@pytest.mark.slow
def test_no_sentence_is_cut_unless_it_is_too_long(record: SourceRecord, limit: int) -> None:
    whole = [squeezed(passage.text) for passage in cut(record, limit) if not passage.table]
    for block in record.blocks:
        text = chunking.text_of(block.lines)[0]
        if block.kind == "paragraph":
            for start, end in sentences(text):
                assert end - start > limit or any(squeezed(text[start:end]) in paragraph for paragraph in whole)


@hypothesis(deadline=None, max_examples=150)
@given(records, limits)
@pytest.mark.slow
def test_rows_and_paragraphs_do_not_mix(record: SourceRecord, limit: int) -> None:
    rows = squeezed("".join(chunking.text_of(block.lines)[0] for block in record.blocks if block.kind == "row"))
    made = cut(record, limit)
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
    others = cut(record, limit, document("other")) + cut(record, limit, document(chunking.content_of(record), "clinic"))
    assert not {passage.id for passage in made} & {other.id for other in others}
    for passage in made:
        start, end = map(int, passage.locator.split("-"))
        assert start < end
        assert passage.id == digest("ward", chunking.content_of(record), passage.locator)


def test_other_content_is_other_content() -> None:
    record = SourceRecord("", "Title", (paragraph("One."), paragraph("Two.")))
    others = [
        replace(record, title="Other"),
        replace(record, blocks=(paragraph("One. Two."),)),
        replace(record, blocks=(paragraph("One."), paragraph("Two.", "row"))),
        replace(record, blocks=(paragraph("One."), Block.of("heading", "Two.", 1))),
        replace(record, blocks=(*record.blocks, paragraph(""))),
    ]
    assert len({chunking.content_of(version) for version in (record, *others)}) == 6
    assert chunking.content_of(replace(record, key="other", edition="2024")) == chunking.content_of(record)


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (["antibi-", "otics help"], "antibiotics help"),
        (["pages 5-", "10"], "pages 5-10"),
        (["Covid-", "Patients"], "Covid-Patients"),
        (["两行", "中文"], "两行中文"),
        (["剂量为", "5 mg"], "剂量为 5 mg"),
        (["见第一。", "（二）"], "见第一。（二）"),
        (["two", "", "  words\there "], "two words here"),
        ([], ""),
    ],
)
def test_lines_are_joined(parts: list[str], joined: str) -> None:
    text, spans = chunking.text_of([Line(part, Box(1, 0, at, 1, at + 1)) for at, part in enumerate(parts)])
    assert text == joined
    shown = [text[span.start : span.end] for span in spans]
    assert [line.rstrip("-") for line in shown] == [
        " ".join(part.split()).rstrip("-") for part in parts if part.strip()
    ]


def test_chinese_sentences_are_packed_without_blanks_and_paragraphs_with_a_break() -> None:
    record = SourceRecord("", "标题", (paragraph("第一句。第二句。"), paragraph("第三句。")))
    assert [passage.text for passage in cut(record)] == ["第一句。第二句。\n第三句。"]
    english = SourceRecord("", "Title", (paragraph("One here. Two here."), paragraph("Three.")))
    assert [passage.text for passage in cut(english)] == ["One here. Two here.\nThree."]


def test_a_passage_ends_with_its_paragraph_once_it_is_half_full() -> None:
    half, rest = "x" * 49 + ".", "y" * 30 + "."
    record = SourceRecord("", "Title", (paragraph(half), paragraph(rest)))
    assert [passage.text for passage in cut(record, 100)] == [half, rest]
    assert len(cut(record, 110)) == 1


def test_a_long_sentence_is_cut_at_a_minor_break_without_hanging_blanks() -> None:
    record = SourceRecord("", "Title", (paragraph("first part of it, " * 10 + "end."),))
    made = cut(record, 50)
    assert {word for passage in made for word in passage.text.split()} == {"first", "part", "of", "it,", "end."}
    assert all(passage.text == passage.text.strip() for passage in made)
    assert len(made) > 3


def test_headings_nest() -> None:
    record = SourceRecord(
        "", "Title",
        (paragraph("Zero."), Block.of("heading", "A", 1), paragraph("One."), Block.of("heading", "B", 2),
         paragraph("Two."), Block.of("heading", "C", 2), Block.of("heading", "D", 1), paragraph("Three.")),
    )  # fmt: skip
    assert [(passage.headings, passage.text) for passage in cut(record)] == [
        ((), "Zero."), (("A",), "One."), (("A", "B"), "Two."), (("D",), "Three."),
    ]  # fmt: skip


def test_what_the_encoder_reads_names_the_subject_once() -> None:
    record = SourceRecord(
        "", "Title", (Block.of("heading", "Title", 1), Block.of("heading", "Dose.", 2), paragraph("5 mg."))
    )
    assert cut(record)[0].in_context == "Title. Dose. 5 mg."


def test_a_paragraph_of_very_many_lines_is_joined_in_a_time_that_grows_with_it() -> None:
    lines = [Line(f"Give paracetamol number {number} until the fever ends.") for number in range(20_000)]
    began = time.process_time()
    text, _ = chunking.text_of(lines)
    assert time.process_time() - began < 20, "quadratic before: 134 s for 5,000 lines"
    assert text.count("fever ends. Give") == 19_999


def test_a_line_far_back_in_a_paragraph_is_still_joined_as_it_was() -> None:
    lines = [Line("word " * 500), Line("see https://example.org/a/"), Line("b/c and antibi-"), Line("otics")]
    assert chunking.text_of(lines)[0].endswith("word see https://example.org/a/b/c and antibiotics")


def test_a_passage_of_a_torn_table_is_stored_as_one_and_others_as_before() -> None:
    whole = made_passage("Medicine: amoxicillin; Dose: 500 mg")
    for one in (whole, replace(whole, doubtful=True)):
        assert undumped(dump(one)) == one
    assert b"doubtful" not in dump(whole)
