"""Sections of a finding: whole, in reading order, nearest sentences marked, bounded, without running heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import LibrarySettings
from localmed.domain import (
    Answer,
    AnswerStatus,
    Collection,
    Document,
    Evidence,
    Passage,
    Receipts,
    Status,
    digest,
    message,
)
from localmed.domain.findings import Question, Section
from localmed.library.lexical import LexicalIndex
from localmed.library.library import Library, build
from localmed.presentation import finding as shown
from localmed.retrieval.sections import LONGEST, MARKS, sections
from localmed.workflows.receipts import shown_section
from tests.fakes import HashedWords, encoded
from tests.values import PROVENANCE, hit, passage

DOSE = "Give adrenaline 0.5 mg into the thigh. Repeat after five minutes. Lay the patient flat."
MORE = "Call for help early. Give oxygen by mask."


def of_section(text: str, heading: str, locator: str) -> Passage:
    made = passage(text, "Anaphylaxis")
    return replace(made, id=digest(text, locator), headings=("Anaphylaxis", heading), locator=locator)


@pytest.fixture(scope="module")
def document() -> tuple[Passage, ...]:
    return (
        of_section(DOSE, "Treatment", "0-10"),
        of_section(MORE, "Treatment", "10-20"),
        of_section("Observe for six hours.", "Afterwards", "20-30"),
    )


@pytest.fixture(scope="module")
def index(document: tuple[Passage, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LexicalIndex]:
    data: Path = tmp_path_factory.mktemp("data")
    (data / "files").mkdir()
    encoder = HashedWords()
    first = document[0]
    with build(data, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        builder.put(Document(first.document_id, "c", "a", "Anaphylaxis", "en", "a", "0" * 64, digest("a"), "text/plain",
                             passages=3))  # fmt: skip
        builder.add(document, encoded(encoder, document))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(data) as library:
        yield library.lexical


def made(
    index: LexicalIndex,
    document: Sequence[Passage],
    typed: str,
    *places: int,
    similar: Mapping[str, Sequence[float]] | None = None,
) -> list[Section]:
    hits = [hit(document[place].text) for place in places]
    hits = [replace(one, passage=document[place]) for one, place in zip(hits, places, strict=True)]
    return list(sections(hits, Question(typed), index, 10, lambda _: document, lambda _: similar or {}))


def test_the_passages_of_one_heading_are_one_section_in_their_order(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    first, second = made(index, document, "adrenaline dose", 1, 0, 2)
    assert [one.locator for one in first.passages] == ["0-10", "10-20"], "in reading order, each once"
    assert first.best.passage == document[1], "its place is its best passage's"
    assert [line.text for line in second.lines] == ["Observe for six hours."]


def test_the_sentence_with_the_rare_words_is_marked(index: LexicalIndex, document: tuple[Passage, ...]) -> None:
    section = made(index, document, "how much adrenaline", 0)[0]
    assert [line.text for line in section.marks] == ["Give adrenaline 0.5 mg into the thigh."]
    assert not made(index, document, "xylophone", 0)[0].marks
    assert len(made(index, document, "give adrenaline oxygen help repeat flat", 0)[0].marks) <= MARKS


def test_the_sentence_nearest_by_meaning_is_marked_where_the_encoder_knows(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    near = {document[0].id: (0.3, 0.3, 0.6), document[1].id: (0.2, 0.5)}
    section = made(index, document, "how much adrenaline", 0, similar=near)[0]
    assert [line.text for line in section.marks] == ["Lay the patient flat.", "Give oxygen by mask."]
    without = made(index, document, "xylophone", 0, similar=near)[0]
    assert [line.text for line in without.marks] == ["Lay the patient flat.", "Give oxygen by mask."]


def test_lines_cut_otherwise_than_when_they_were_encoded_are_marked_by_words_alone(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    near = {document[0].id: (0.1, 0.6), document[1].id: (0.1, 0.1)}  # a line of the first is missing
    section = made(index, document, "how much adrenaline", 0, similar=near)[0]
    assert [line.text for line in section.marks][:1] == ["Give adrenaline 0.5 mg into the thigh."]
    assert "Repeat after five minutes." not in [line.text for line in section.marks]


def test_of_a_long_section_what_stands_around_the_best_passage_is_shown(index: LexicalIndex) -> None:
    long = tuple(of_section(f"Step {number}. " + "Wash the hands. " * 60, "All", f"{number}-") for number in range(20))
    section = made(index, long, "step", 10)[0]
    assert section.cut
    assert long[10] in section.passages
    assert sum(len(one.text) for one in section.passages) <= LONGEST


def test_a_running_head_is_left_out_and_a_tables_rows_are_lines(index: LexicalIndex) -> None:
    head = of_section(f"Anaphylaxis.\n{DOSE}", "Treatment", "0-")
    table = replace(of_section("Age: adult; Dose: 0.5 mg\nAge: child; Dose: 0.15 mg", "Doses", "1-"), table=True)
    first, second = made(index, (head, table), "dose of a child", 0, 1)
    assert "Anaphylaxis." not in [line.text for line in first.lines]
    assert [line.text for line in second.lines] == ["Age: adult; Dose: 0.5 mg", "Age: child; Dose: 0.15 mg"]
    assert [line.text for line in second.marks][:1] == ["Age: child; Dose: 0.15 mg"]


def test_a_long_section_is_open_around_its_marks_and_nothing_is_left_out(index: LexicalIndex) -> None:
    filler = "Wash the hands and dry them well with a paper towel before you go on. " * 30
    long = (of_section(f"{filler}Give adrenaline 0.5 mg. {filler}", "Treatment", "0-"),)
    section = made(index, long, "adrenaline", 0)[0]
    source = Evidence("1", long[0], "Anaphylaxis", "2024", Status.CURRENT, "a", "", "0" * 64, "text/plain")
    found = Receipts(sections=(shown_section(section, {long[0].id: source}),))
    answer = Answer(AnswerStatus.SECTIONS, "adrenaline", "en", (), (source,), ("c",), PROVENANCE, receipts=found)
    view = shown.view(answer, "en")
    assert view
    seen = view.sections[0]
    assert any(piece.marked for piece in seen.shown)
    assert sum(len(piece.text) for piece in seen.shown) <= shown.OPEN
    assert len((*seen.before, *seen.shown, *seen.after)) == len(section.lines)
    assert seen.before
    assert seen.after


def test_a_word_is_spelt_as_the_library_has_it(index: LexicalIndex) -> None:
    assert index.spelling("observve") == "observe"
    assert index.spelling("observe") == ""
    assert index.spelling("telephone") == ""
