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
from localmed.domain.link_counts import METRICS, LinkCounts
from localmed.language import words
from localmed.ports import Stance
from localmed.verification import link_eval
from localmed.verification.link_eval import (
    MOST_COMPARED,
    LinkBasis,
    LinkInput,
    LinkSource,
    LinkStatement,
    of_answer,
)
from tests.values import PROVENANCE, evidence, passage, quotation

BASIS = LinkBasis("words", ("en",), 0.5)
YES, NEUTRAL, NO = Stance(1.0, 0.0, 0.0), Stance(0.0, 1.0, 0.0), Stance(0.0, 0.0, 1.0)


def by_words(premise: str, hypothesis: str) -> Stance:
    """Entailed if every word is there; contradicted if what is left of one without its "not" is the other."""
    held, said = set(words(premise)), set(words(hypothesis))
    if held ^ said == {"not"}:
        return NO
    return YES if said <= held else NEUTRAL


def counted(given: LinkInput, scores: Sequence[float | None] = (), basis: LinkBasis = BASIS) -> LinkCounts:
    """The counts by ``by_words``, as the flow takes them."""
    sets = link_eval.citation_sets(given, basis.languages)
    right = link_eval.correct(sets, judged(link_eval.wholes(sets)))
    cited = link_eval.irreplaceable(right, judged(link_eval.remainders(right)))
    conflicts = link_eval.conflicts(judged(link_eval.opposed(given, basis.languages)))
    gold = link_eval.holds_gold(given, judged(link_eval.golden(given, basis.languages)))
    found = scores or (None,) * len(given.sources)
    return link_eval.counted(given, basis, sets, cited, found, (conflicts, gold, None))


def judged(pairs: link_eval.Pairs) -> list[Stance]:
    return [by_words(*pair) for pair in pairs]


def source(marker: str, text: str) -> LinkSource:
    return LinkSource(marker, replace(passage(text, title=""), headings=()))


def said(text: str, *markers: str) -> LinkStatement:
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
        said("Zinc makes colds shorter.", "1"),
        said("Honey eased night cough.", "2", "3"),
        said("Garlic cures colds.", "3", "4"),
        said("See a doctor."),
    ),
    SOURCES,
)
SCORES = (0.9, 0.8, 0.3, 0.5, 0.7)


def test_the_worked_example() -> None:
    found = counted(WORKED, SCORES)
    assert found.citation_set_precision == 2 / 3
    assert found.citation_precision == 2 / 5
    assert found.citation_recall == 2 / 3
    assert (found.statements, found.uncited, found.sets, found.citations) == (4, 1, 3, 5)
    assert (found.references, found.valid, found.valid_cited) == (5, 3, 2)
    assert (found.consistency, found.statement_correctness, found.fluency) == (1.0, None, None)


def test_two_sources_that_are_needed_together_are_both_correct() -> None:
    found = counted(replace(WORKED, statements=(said("Zinc makes night cough shorter.", "1", "2"),)), SCORES)
    assert (found.correct_sets, found.correct_citations, found.citation_recall) == (1, 2, 2 / 3)


def test_a_second_source_that_says_the_same_lowers_precision() -> None:
    """By definition: with two that say it neither is irreplaceable, and neither is cited correctly."""
    once = LinkInput("?", (said("Honey eased night cough.", "2"),), SOURCES)
    again = (*SOURCES, source("6", "Honey eased cough at night in trials too."))
    twice = replace(once, statements=(said("Honey eased night cough.", "2", "6"),), sources=again)
    alone, both = counted(once, SCORES), counted(twice, (*SCORES, 0.9))
    assert (alone.citation_precision, both.citation_precision) == (1.0, 0.0)
    assert both.citation_set_precision == 1.0
    assert (alone.citation_recall, both.citation_recall) == (1 / 3, 0.0)


def test_word_for_word_is_entailed_without_a_judge() -> None:
    given = LinkInput("?", (said("Rest helps.", "4"),), SOURCES)
    sets = link_eval.citation_sets(given, ("en",))
    assert link_eval.wholes(sets) == ()
    found = counted(given, SCORES)
    assert (found.correct_sets, found.verbatim_sets, found.correct_citations) == (1, 1, 1)


# --- undefined --------------------------------------------------------------------------------------------------------


def test_nothing_cited_is_not_perfect() -> None:
    found = counted(replace(WORKED, statements=(said("Garlic cures colds."), said("See a doctor."))), SCORES)
    assert (found.citation_set_precision, found.citation_precision) == (None, None)
    assert found.citation_recall == 0.0  # valid references there were, and none is cited
    assert found.uncited == found.statements == 2


def test_nothing_said_and_nothing_known_is_undefined() -> None:
    assert set(LinkCounts().metrics().values()) == {None}
    assert set(counted(LinkInput("?", ())).metrics().values()) == {None}
    assert tuple(LinkCounts().metrics()) == METRICS


def test_no_valid_reference_leaves_recall_undefined() -> None:
    assert counted(WORKED, (0.5,) * 5).citation_recall is None
    assert counted(WORKED).citation_recall is None
    assert counted(WORKED).unjudged_references == 5


def test_a_single_statement_is_consistent_with_nothing() -> None:
    assert counted(LinkInput("?", (said("Rest helps."),))).consistency is None


def test_markers_without_a_source_are_never_correct() -> None:
    found = counted(LinkInput("?", (said("Rest helps.", "4", "9"), said("Garlic cures.", "8")), SOURCES), SCORES)
    assert (found.sets, found.correct_sets, found.citations) == (2, 1, 3)
    assert (found.correct_citations, found.unresolved) == (1, 2)


def test_empty_evidence_carries_nothing_and_is_not_judged_by_a_model() -> None:
    given = LinkInput("?", (said("Rest helps.", "1", "2"),), (source("1", ""), source("2", " . ")))
    assert link_eval.wholes(link_eval.citation_sets(given, ("en",))) == ()
    found = counted(given)
    assert (found.citation_set_precision, found.citation_precision) == (0.0, 0.0)


def test_evidence_in_another_language_counts_nowhere_and_is_told() -> None:
    foreign = source("5", "发热的儿童可以服用对乙酰氨基酚。")
    given = replace(WORKED, statements=(*WORKED.statements, said("Paracetamol lowers fever.", "1", "5")),
                    sources=(*SOURCES[:4], foreign))  # fmt: skip
    found = counted(given, (*SCORES[:4], None))
    assert (found.sets, found.unjudged_sets, found.citations) == (3, 1, 5)
    assert found.unjudged_references == 1
    assert found.citation_recall == 1.0  # 1 and 2, both cited correctly elsewhere


def test_a_valid_reference_cited_only_where_nobody_judged_is_not_a_miss() -> None:
    given = LinkInput("?", (said("锌可以缩短感冒。", "1"), said("Honey eased night cough.", "2")), SOURCES)
    found = counted(given, SCORES)
    assert (found.valid, found.valid_cited, found.unjudged_references) == (2, 1, 1)
    assert (found.unjudged_pairs, found.consistency) == (1, None)


def test_a_quotation_in_a_language_that_nobody_knows_is_still_a_quotation() -> None:
    there = source("1", "发热时可以服用对乙酰氨基酚。多喝水。")
    assert counted(LinkInput("?", (said("发热时可以服用对乙酰氨基酚", "1"),), (there,))).citation_precision == 1.0
    cut = counted(LinkInput("?", (said("可以服用对乙酰氨基酚。", "1"),), (there,)))
    assert (cut.sets, cut.unjudged_sets) == (0, 1), "a part of a sentence is for a judge"


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
    found = counted(LinkInput("?", tuple(map(said, texts)), (), gold))
    assert (found.consistency, found.statement_correctness) == (consistency, correctness)


def test_two_hundred_statements_are_bounded_and_the_rest_is_told() -> None:
    texts = tuple(said(f"Drug {number} helps.", "4") for number in range(200))
    given = LinkInput("?", texts, SOURCES, gold="Drug 3 helps.")
    assert len(link_eval.opposed(given, ("en",))) == MOST_COMPARED * (MOST_COMPARED - 1)
    found = counted(given, SCORES)
    assert found.sets == found.citations == 200
    assert found.pairs + found.unjudged_pairs == 200 * 199 // 2
    assert (found.consistency, found.statement_correctness) == (1.0, None)


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


def scored(given: LinkInput) -> list[float | None]:
    """A score that depends on the text alone, as a scorer's does."""
    return [(None, 0.9, 0.3)[len(each.passage.text) % 3] for each in given.sources]


@drawn(INPUTS)
@settings(max_examples=150, deadline=None)
def test_bounds(given: LinkInput) -> None:
    found = counted(given, scored(given))
    assert all(value is None or 0 <= value <= 1 for value in found.metrics().values())
    assert found.verbatim_sets <= found.correct_sets <= found.sets
    assert found.correct_citations <= found.citations - found.unresolved
    assert found.valid_cited <= found.valid <= found.references
    assert found.sets + found.unjudged_sets + found.uncited == found.statements


@drawn(INPUTS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_order_does_not_matter(given: LinkInput, random: Random) -> None:
    statements, sources = list(given.statements), list(given.sources)
    random.shuffle(statements)
    random.shuffle(sources)
    turned = tuple(
        replace(statement, markers=statement.markers[::-1] + statement.markers[:1]) for statement in statements
    )
    other = replace(given, statements=turned, sources=tuple(sources))
    assert counted(other, scored(other)) == counted(given, scored(given))


def test_an_answer_of_the_library() -> None:
    one, other = evidence("1", "Give 5 mg by mouth. Store it."), evidence("2", "Keep dark.")
    shown, withheld = quotation(one, 0, 19), replace(quotation(other, 0, 10), withheld=True)
    answer = Answer(AnswerStatus.ANSWERED, "Dose?", "en", (shown, withheld), (one, other), (), PROVENANCE)
    given = of_answer(answer, "5 mg")
    assert given.statements == (said("Give 5 mg by mouth.", "1"),)
    assert [each.marker for each in given.sources] == ["1"]
    assert given.retrieved
    found = counted(given, (0.9,))
    assert (found.citation_precision, found.citation_recall, found.statement_correctness) == (1.0, 1.0, 1.0)
