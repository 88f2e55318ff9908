"""Link-Eval: answers worked by hand as in the paper's Fig. 5, what is undefined, and what holds for any answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from localmed.domain import Answer, AnswerStatus
from localmed.domain.ports import Stance
from localmed.lab import link_eval
from localmed.lab.link_counts import LinkCounts
from localmed.lab.link_eval import LinkInput, LinkSource, LinkStatement, of_answer
from localmed.text.language import words
from tests.values import PROVENANCE, evidence, passage, quotation

ENGLISH = ("en",)
YES, NEUTRAL, NO = Stance(1.0, 0.0, 0.0), Stance(0.0, 1.0, 0.0), Stance(0.0, 0.0, 1.0)


def by_words(premise: str, hypothesis: str) -> Stance:
    """Entailed if every word is there; contradicted if what is left of one without its "not" is the other."""
    held, stated = set(words(premise)), set(words(hypothesis))
    if held ^ stated == {"not"}:
        return NO
    return YES if stated <= held else NEUTRAL


def counted(task: LinkInput, scores: Sequence[float | None] = ()) -> LinkCounts:
    """The counts by ``by_words``, as the flow takes them."""
    stances = {pair: by_words(*pair) for pair in link_eval.pairs(task, ENGLISH)}
    right = link_eval.correct(link_eval.citation_sets(task, ENGLISH), stances)
    stances |= {pair: by_words(*pair) for pair in link_eval.reduced_pairs(right)}
    return link_eval.counted(task, ENGLISH, stances, scores or (None,) * len(task.sources))


def source(marker: str, text: str) -> LinkSource:
    return LinkSource(marker, replace(passage(text, title=""), headings=()))


def link_statement(text: str, *markers: str) -> LinkStatement:
    return LinkStatement(text, markers)


SOURCES = (
    source("1", "Zinc, if taken early, makes colds shorter."),
    source("2", "In trials honey eased cough at night."),
    source("3", "Cough at night, and colds, are common."),
    source("4", "Rest helps."),
    source("", "Fluids help in any cold."),
)
# By hand. Set 1 {1}: correct, 1 irreplaceable. Set 2 {2, 3}: correct by 2 alone, so 2 is irreplaceable and 3 is not.
# Set 3 {3, 4}: not correct. RC/NC = 2/3; N/M = 2/5. Valid: 1, 2, 5th (scores above 0.5); of these 1 and 2 are cited
# correctly: W/V = 2/3.
WORKED = LinkInput(
    "What helps in a cold?",
    (
        link_statement("Zinc makes colds shorter.", "1"),
        link_statement("Honey eased night cough.", "2", "3"),
        link_statement("Garlic cures colds.", "3", "4"),
        link_statement("See a doctor."),
    ),
    SOURCES,
)
SCORES = (0.9, 0.8, 0.3, 0.5, 0.7)


def test_the_worked_example() -> None:
    counts = counted(WORKED, SCORES)
    assert counts.citation_set_precision == 2 / 3
    assert counts.citation_precision == 2 / 5
    assert counts.citation_recall == 2 / 3
    assert (counts.statements, counts.uncited, counts.sets, counts.citations) == (4, 1, 3, 5)
    assert (counts.references, counts.valid, counts.valid_cited) == (5, 3, 2)
    assert (counts.consistency, counts.statement_correctness, counts.fluency) == (1.0, None, None)


def test_a_second_source_that_says_the_same_lowers_precision() -> None:
    """By definition: with two that say it neither is irreplaceable, and neither is cited correctly."""
    once = LinkInput("?", (link_statement("Honey eased night cough.", "2"),), SOURCES)
    again = (*SOURCES, source("6", "Honey eased cough at night in trials too."))
    twice = replace(once, statements=(link_statement("Honey eased night cough.", "2", "6"),), sources=again)
    alone, both = counted(once, SCORES), counted(twice, (*SCORES, 0.9))
    assert (alone.citation_precision, both.citation_precision) == (1.0, 0.0)
    assert both.citation_set_precision == 1.0
    assert (alone.citation_recall, both.citation_recall) == (1 / 3, 0.0)


def test_word_for_word_is_entailed_without_a_judge() -> None:
    task = LinkInput("?", (link_statement("Rest helps.", "4"),), SOURCES)
    assert link_eval.pairs(task, ENGLISH) == ()
    counts = counted(task, SCORES)
    assert (counts.correct_sets, counts.verbatim_sets, counts.correct_citations) == (1, 1, 1)


# --- undefined --------------------------------------------------------------------------------------------------------


def test_nothing_cited_is_not_perfect() -> None:
    counts = counted(
        replace(WORKED, statements=(link_statement("Garlic cures colds."), link_statement("See a doctor."))), SCORES
    )
    assert (counts.citation_set_precision, counts.citation_precision) == (None, None)
    assert counts.citation_recall == 0.0  # valid references there were, and none is cited
    assert counts.uncited == counts.statements == 2


def test_markers_without_a_source_are_never_correct() -> None:
    counts = counted(
        LinkInput("?", (link_statement("Rest helps.", "4", "9"), link_statement("Garlic cures.", "8")), SOURCES), SCORES
    )
    assert (counts.sets, counts.correct_sets, counts.citations) == (2, 1, 3)
    assert (counts.correct_citations, counts.unresolved) == (1, 2)


def test_empty_evidence_carries_nothing_and_is_not_judged_by_a_model() -> None:
    task = LinkInput("?", (link_statement("Rest helps.", "1", "2"),), (source("1", ""), source("2", " . ")))
    assert link_eval.pairs(task, ENGLISH) == ()
    counts = counted(task)
    assert (counts.citation_set_precision, counts.citation_precision) == (0.0, 0.0)


def test_evidence_in_another_language_counts_nowhere_and_is_told() -> None:
    foreign = source("5", "发热的儿童可以服用对乙酰氨基酚。")
    task = replace(WORKED, statements=(*WORKED.statements, link_statement("Paracetamol lowers fever.", "1", "5")),
                    sources=(*SOURCES[:4], foreign))  # fmt: skip
    counts = counted(task, (*SCORES[:4], None))
    assert (counts.sets, counts.unjudged_sets, counts.citations) == (3, 1, 5)
    assert counts.unjudged_references == 1
    assert counts.citation_recall == 1.0  # 1 and 2, both cited correctly elsewhere


def test_a_valid_reference_cited_only_where_nobody_judged_is_not_a_miss() -> None:
    task = LinkInput(
        "?", (link_statement("锌可以缩短感冒。", "1"), link_statement("Honey eased night cough.", "2")), SOURCES
    )
    counts = counted(task, SCORES)
    assert (counts.valid, counts.valid_cited, counts.unjudged_references) == (2, 1, 1)
    assert (counts.unjudged_pairs, counts.consistency) == (1, None)


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "gold", "consistency", "correctness"),
    [
        (("Zinc helps.", "Zinc not helps."), "Zinc helps.", 0.0, 0.0),
        (("Zinc helps.", "Honey helps."), "Honey helps.", 1.0, 1.0),
        (("Zinc helps.", "Honey helps."), "Rest helps.", 1.0, 0.0),
        (("Zinc helps.", "Honey helps."), "", 1.0, None),
        (("Zinc helps.", "Zinc not helps."), "", 0.0, None),
        (("Zinc helps.",), "zinc", None, 1.0),
        (("Zinc not helps.",), "zinc helps", None, 0.0),
        (("Zinc helps.", "蜂蜜有效。"), "Zinc helps.", None, None),
    ],
)
def test_correctness(texts: tuple[str, ...], gold: str, consistency: float | None, correctness: float | None) -> None:
    counts = counted(LinkInput("?", tuple(map(link_statement, texts)), (), gold))
    assert (counts.consistency, counts.statement_correctness) == (consistency, correctness)


def test_a_contradiction_counts_in_whichever_order_the_judge_sees_it() -> None:
    task = LinkInput("?", (link_statement("Zinc helps."), link_statement("Zinc harms.")))
    stances = dict.fromkeys(link_eval.pairs(task, ENGLISH), NEUTRAL) | {("Zinc harms.", "Zinc helps."): NO}
    assert link_eval.counted(task, ENGLISH, stances, ()).conflicts == 1


# --- any answer -------------------------------------------------------------------------------------------------------

WORDS = ("zinc", "honey", "rest", "helps", "not", "cough")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=4).map(" ".join)
STATEMENTS = st.builds(
    LinkStatement, TEXTS, st.lists(st.sampled_from("12345"), max_size=4).map(tuple)
)  # fmt: skip
INPUTS = st.builds(
    lambda statements, texts, gold: LinkInput(
        "?", tuple(statements), tuple(source(str(n), text) for n, text in enumerate(texts, 1)), gold
    ),
    st.lists(STATEMENTS, max_size=5),
    st.lists(TEXTS, max_size=4),
    st.sampled_from(("", "zinc helps")),
)


def scored(task: LinkInput) -> list[float | None]:
    """A score that depends on the text alone, as a scorer's does."""
    return [(None, 0.9, 0.3)[len(source_.passage.text) % 3] for source_ in task.sources]


@drawn(INPUTS)
@settings(max_examples=150, deadline=None)
def test_bounds(task: LinkInput) -> None:
    counts = counted(task, scored(task))
    assert all(value is None or 0 <= value <= 1 for value in counts.metrics().values())
    assert counts.verbatim_sets <= counts.correct_sets <= counts.sets
    assert counts.correct_citations <= counts.citations - counts.unresolved
    assert counts.valid_cited <= counts.valid <= counts.references
    assert counts.sets + counts.unjudged_sets + counts.uncited == counts.statements


@drawn(INPUTS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_order_does_not_matter(task: LinkInput, random: Random) -> None:
    statements, sources = list(task.statements), list(task.sources)
    random.shuffle(statements)
    random.shuffle(sources)
    turned = tuple(
        replace(statement, markers=statement.markers[::-1] + statement.markers[:1]) for statement in statements
    )
    other = replace(task, statements=turned, sources=tuple(sources))
    assert counted(other, scored(other)) == counted(task, scored(task))


def test_an_answer_of_the_library() -> None:
    one, other = evidence("1", "Give 5 mg by mouth. Store it."), evidence("2", "Keep dark.")
    shown, withheld = quotation(one, 0, 19), replace(quotation(other, 0, 10), withheld=True)
    answer = Answer(AnswerStatus.ANSWERED, "Dose?", "en", (shown, withheld), (one, other), (), PROVENANCE)
    task = of_answer(answer, "5 mg")
    assert task.statements == (link_statement("Give 5 mg by mouth.", "1"),)
    assert [source_.marker for source_ in task.sources] == ["1"]
    assert task.retrieved
    counts = counted(task, (0.9,))
    assert (counts.citation_precision, counts.citation_recall, counts.statement_correctness) == (1.0, 1.0, 1.0)
