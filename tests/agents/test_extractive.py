from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.agents.asking import AnswerInput, Draft
from localmed.agents.evidence import nearest_sentence
from localmed.agents.extractive import SECTIONS, Extractive
from localmed.config import AskSettings
from localmed.domain import Evidence, Origin, Passage, Statement
from localmed.library.lexical import LexicalIndex
from localmed.verification.citations import check
from tests.fakes import HashedWords
from tests.values import evidence

TEXTS = [
    ("Paracetamol", "Paracetamol relieves pain. The maximum dose of paracetamol in adults is 4 g in 24 hours. "
                    "Store it in a dry place. In adults under 50 kg the maximum dose is 2 g in 24 hours."),
    ("Ibuprofen", "Ibuprofen relieves pain. The maximum dose of ibuprofen is 2.4 g in 24 hours."),
    ("Leaflet", "The maximum dose of paracetamol in adults is 4 g in 24 hours. Ask your pharmacist."),
    ("Doses", "Drug: Paracetamol; Route: oral; Maximum dose: 4 g\nDrug: Ibuprofen; Route: oral; Maximum dose: 2.4 g"),
    ("对乙酰氨基酚", "对乙酰氨基酚用于退热和止痛。成人最大剂量为每24小时4克。请放在干燥处保存。"),
]  # fmt: skip


def sources() -> tuple[Evidence, ...]:
    return tuple(evidence(str(number), text, title) for number, (title, text) in enumerate(TEXTS, 1))


def index_of(folder: Path, passages: Sequence[Passage]) -> LexicalIndex:
    index = LexicalIndex(folder, make=True)
    writer = index.writer(15_000_000)
    writer.add(passages)
    writer.finish()
    index.reload()
    return index


@pytest.fixture
def extractive(tmp_path: Path) -> Extractive:
    index = index_of(tmp_path / "lexical", [source.passage for source in sources()])
    return Extractive(index, HashedWords(), AskSettings())


def answer(
    agent: Extractive, question: str, task: tuple[Evidence, ...] | None = None, dense: bool = True
) -> tuple[Statement, ...]:
    return agent.answer(AnswerInput(question, task or sources(), dense)).statements


QUESTIONS = [
    "What is the maximum dose of paracetamol in adults?",
    "How should paracetamol be stored?",
    "ibuprofen",
    "对乙酰氨基酚的最大剂量是多少？",
    "zebra",
    "",
    "?",
]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_statement_is_a_quotation(extractive: Extractive, question: str, dense: bool) -> None:
    known = {source.marker: source.passage for source in sources()}
    statements = answer(extractive, question, dense=dense)
    for statement in statements:
        (citation,) = statement.citations
        passage = known[citation.marker]
        assert statement.origin is Origin.EXTRACTIVE
        assert statement.text == citation.quote == passage.text[citation.start : citation.end]
        assert citation.boxes == passage.boxes(citation.start, citation.end) != ()
        assert citation.page == citation.boxes[0].page
    assert len(statements) <= AskSettings().sentences
    _, account = check(statements, sources())
    assert account.statements_withheld == account.markers_rejected == 0


@pytest.mark.parametrize("dense", [True, False])
def test_the_answer_is_in_it(extractive: Extractive, dense: bool) -> None:
    texts = [statement.text for statement in answer(extractive, QUESTIONS[0], dense=dense)]
    assert "The maximum dose of paracetamol in adults is 4 g in 24 hours." in texts
    assert "Store it in a dry place." not in texts


def test_copies_are_quoted_once(extractive: Extractive) -> None:
    texts = [statement.text for statement in answer(extractive, QUESTIONS[0])]
    assert texts.count("The maximum dose of paracetamol in adults is 4 g in 24 hours.") == 1


def test_the_best_sentence_comes_first(extractive: Extractive) -> None:
    first = evidence("1", "The maximum dose of ibuprofen with food is known to pharmacists.")
    best = evidence("2", "Take the maximum dose of ibuprofen with food: 2.4 g.")
    places = [
        (int(citation.marker), citation.start)
        for statement in answer(extractive, "maximum dose of ibuprofen with food", (first, best))
        for citation in statement.citations
    ]
    assert {marker for marker, _ in places} == {1, 2}
    assert places == [(2, 0), (1, 0)]


def test_the_same_every_time(extractive: Extractive, tmp_path: Path) -> None:
    first = answer(extractive, QUESTIONS[0])
    assert all(answer(extractive, QUESTIONS[0]) == first for _ in range(3))
    again = Extractive(
        index_of(tmp_path / "other", [source.passage for source in reversed(sources())]), HashedWords(), AskSettings()
    )
    assert answer(again, QUESTIONS[0]) == first


def test_a_table_row_is_quoted_whole(extractive: Extractive) -> None:
    table = (sources()[3],)
    texts = [statement.text for statement in answer(extractive, "maximum dose of ibuprofen", table)]
    assert "Drug: Ibuprofen; Route: oral; Maximum dose: 2.4 g" in texts


def test_chinese(extractive: Extractive) -> None:
    texts = [statement.text for statement in answer(extractive, "对乙酰氨基酚的最大剂量是多少？", dense=False)]
    assert "成人最大剂量为每24小时4克。" in texts
    assert "请放在干燥处保存。" not in texts


def test_only_the_languages_it_knows_are_encoded(tmp_path: Path) -> None:
    encoder = HashedWords()
    agent = Extractive(index_of(tmp_path, [source.passage for source in sources()]), encoder, AskSettings())
    answer(agent, "对乙酰氨基酚的最大剂量是多少？", dense=False)
    assert encoder.encoded == []
    answer(agent, QUESTIONS[0], dense=True)
    assert encoder.encoded


def test_a_bounded_number_of_sentences_is_compared(tmp_path: Path) -> None:
    encoder = HashedWords()
    source = evidence("1", " ".join(f"The dose of drug number {n} is {n} mg each day." for n in range(500)))
    agent = Extractive(index_of(tmp_path, [source.passage]), encoder, AskSettings())
    assert answer(agent, "What is the dose of drug number 7?", (source,))
    assert len(encoder.encoded) <= 41


def test_what_stands_around_the_text_is_no_statement(extractive: Extractive) -> None:
    text = "For demonstration, not for clinical use. Demonstration Hospital, Pharmacy. Edition 2024-06-17."
    source = evidence("1", f"{text}\nThe pharmacy opens at eight.", "Formulary")
    texts = [statement.text for statement in answer(extractive, "Demonstration Hospital pharmacy edition", (source,))]
    assert texts == ["The pharmacy opens at eight."]


def test_no_evidence_no_answer(extractive: Extractive) -> None:
    assert extractive.answer(AnswerInput("dose", (), True)) == Draft()


@pytest.mark.parametrize(
    ("text", "heading", "is_statement"),
    [
        ("The maximum dose of ibuprofen is 2.4 g.", "Dose", True),
        ("Maximum dose of ibuprofen", "1.2 Maximum dose of ibuprofen", False),
        ("Smith J et al. Maximum dose of ibuprofen. Lancet.", "Dose", False),
        ("Dose of ibuprofen, Lancet 1976;2:113.", "Dose", False),
        ("Ibuprofen dose audit, maximum doses in 2024.", "References", False),
        ("maximum dose of ibuprofen as in", "Dose", False),
        ("Title 2024 12", "Dose", False),
        ("Ibuprofen Department, Dose Committee and Trust.", "Dose", False),
        ("Call the Ibuprofen Department, or the hospital.", "Dose", True),
        ("布洛芬最大剂量病例登记年报，2025年。", "参考资料", False),
        ("成人布洛芬最大剂量  第 3 页", "用法", False),
        ("布洛芬成人最大剂量为每日2.4克。", "用法", True),
    ],
)
def test_only_statements_are_quoted(extractive: Extractive, text: str, heading: str, is_statement: bool) -> None:
    piece = evidence("1", text)
    piece = replace(piece, passage=replace(piece.passage, headings=("Title", heading)))
    assert bool(answer(extractive, "maximum dose of ibuprofen 布洛芬最大剂量", (piece,))) is is_statement


def under(marker: str, heading: str, text: str, title: str = "Fever in children") -> Evidence:
    """Evidence under a heading of one document."""
    piece = evidence(marker, text, title)
    return replace(piece, passage=replace(piece.passage, headings=(title, heading)))


def first_of(agent: Extractive, question: str, *pieces: Evidence) -> str:
    """The heading that is quoted first."""
    marker = answer(agent, question, pieces, dense=False)[0].citations[0].marker
    return next(piece.passage.headings[-1] for piece in pieces if piece.marker == marker)


@pytest.mark.parametrize(("question", "heading"), [
    ("When should a child with fever go to hospital?", "When to get help"),
    ("How is fever in a child treated?", "Treatment"),
    ("What are the signs of fever in a child?", "Symptoms"),
    ("孩子发热什么时候要去医院", "什么时候应立即就医"),
])  # fmt: skip
def test_a_section_of_the_kind_asked_for_comes_first(extractive: Extractive, question: str, heading: str) -> None:
    pieces = (
        under("1", "Measuring", "Fever in a child is measured under the arm; the child is at rest."),
        under("2", "When to get help", "The child is drowsy, breathes fast or has a stiff neck."),
        under("3", "Treatment", "Give fluids often and keep the room cool for the child."),
        under("4", "Symptoms", "The child is hot, flushed, irritable and drinks little."),
        under("5", "测量", "孩子发热时腋下温度超过37.5℃。", "儿童发热须知"),
        under("6", "什么时候应立即就医", "精神差、嗜睡、难以叫醒。\n呼吸困难。\n发热超过3天。", "儿童发热须知"),
    )
    assert first_of(extractive, question, *pieces) == heading


def test_what_comes_after_a_moment_does_not_answer_what_is_done_before(extractive: Extractive) -> None:
    pieces = (
        under("1", "After the first hour", "In sepsis look for the source and treat it in the first day.", "Sepsis"),
        under("2", "Actions", "Take cultures and give antibiotics.", "Sepsis"),
    )
    question = "What should be done for sepsis in the first hour?"
    markers = {statement.citations[0].marker for statement in answer(extractive, question, pieces, dense=False)}
    assert markers == {"2"}


def test_the_row_of_the_age_asked_for_is_chosen(extractive: Extractive) -> None:
    rows = ("Children over 12 years take ibuprofen 400 mg.", "Children aged 6 to 12 years take ibuprofen 200 mg.")
    piece = evidence("1", " ".join(rows), "Ibuprofen")
    chosen = answer(extractive, "How much ibuprofen for an 8 year old child?", (piece,), dense=False)
    assert [statement.text for statement in chosen] == [rows[1]]


def test_the_value_asked_for_comes_before_what_names_the_question_better(tmp_path: Path) -> None:
    texts = ("Adults: 500 micrograms.", "If nothing improves, repeat the dose of intramuscular adrenaline in an adult.")
    piece, other = evidence("1", " ".join(texts), "Anaphylaxis"), evidence("2", "Adults need rest.", "Colds")
    index = index_of(tmp_path / "own", [piece.passage, other.passage])
    question = "What dose of intramuscular adrenaline is given to an adult with anaphylaxis?"
    chosen = answer(Extractive(index, HashedWords(), AskSettings()), question, (piece,), dense=False)
    assert [statement.text for statement in chosen] == list(texts)


def test_few_sections_are_quoted(extractive: Extractive) -> None:
    pieces = [under(str(at), f"Part {at}", f"The maximum dose of ibuprofen is {at} g.", "Doses") for at in range(1, 7)]
    chosen = answer(extractive, "What is the maximum dose of ibuprofen?", tuple(pieces), dense=False)
    assert len({statement.citations[0].marker for statement in chosen}) == SECTIONS


def test_the_nearest_sentence_is_no_line_of_an_edition() -> None:
    piece = evidence("1", "Give 5 mg.\nEdition 2025-01.")
    assert nearest_sentence("Which edition of 2025-01 gives the dose?", piece).text == "Give 5 mg."


def shown(tmp_path: Path, question: str, *pieces: Evidence) -> list[str]:
    """The sentences chosen of ``pieces``, the best first."""
    agent = Extractive(index_of(tmp_path / "own", [piece.passage for piece in pieces]), HashedWords(), AskSettings())
    return [statement.text for statement in answer(agent, question, pieces)]


def test_the_target_of_another_measure_is_no_answer(tmp_path: Path) -> None:
    pressure = evidence("1", "Frail people aged 85 years or over have a less strict target.", "Blood pressure")
    sugar = evidence("2", "The HbA1c target of frail people is below 8.0 %.", "Diabetes")
    assert shown(tmp_path, "HbA1c target for a frail 88-year-old?", pressure, sugar) == [sugar.passage.text]


def test_a_question_whether_to_continue_is_not_answered_by_how_to_start(tmp_path: Path) -> None:
    text = "Start metformin with 500 mg daily. Stop metformin while the eGFR is below 30. Metformin is taken with food."
    texts = shown(tmp_path, "Continue metformin?", evidence("1", text, "Metformin"))
    assert texts[0] == "Stop metformin while the eGFR is below 30."
