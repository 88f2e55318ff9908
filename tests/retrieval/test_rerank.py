from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.config import SearchSettings
from localmed.domain import Hit
from localmed.retrieval.search import rerank, standardised
from tests.values import passage


@dataclass(frozen=True)
class Counting:
    """A ``Reranker`` that scores a passage by how often it holds the question."""

    name: str = "counting 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        return [float(text.count(question)) for text in passages]


def weights(first: int = 20, lexical: float = 0.0, fused: float = 0.0) -> SearchSettings:
    return SearchSettings(rerank=first, rerank_lexical_weight=lexical, rerank_fused_weight=fused)


def hits(*texts: str) -> tuple[Hit, ...]:
    return tuple(Hit(passage(text), 1.0, lexical_score=10.0 - place) for place, text in enumerate(texts))


def order(ranked: Sequence[Hit]) -> list[str]:
    return [hit.passage.text for hit in ranked]


def test_the_reranker_decides_the_order_of_the_first() -> None:
    ranked = rerank("a", hits("b", "a", "aa", "aaa"), Counting(), weights(first=3))
    assert order(ranked) == ["aa", "a", "b", "aaa"]
    assert [hit.rerank_score for hit in ranked] == [2.0, 1.0, 0.0, None]


def test_the_lexical_score_counts_by_its_weight() -> None:
    given_hits = hits("b", "a", "c")
    assert order(rerank("a", given_hits, Counting(), weights()))[0] == "a"
    assert order(rerank("a", given_hits, Counting(), weights(lexical=100.0))) == ["b", "a", "c"]


def test_the_fused_score_counts_by_its_weight() -> None:
    fused = (Hit(passage("b"), 3.0), Hit(passage("a"), 2.0), Hit(passage("c"), 1.0))
    assert order(rerank("a", fused, Counting(), weights(fused=0.0)))[0] == "a"
    assert order(rerank("a", fused, Counting(), weights(fused=100.0))) == ["b", "a", "c"]


def test_a_passage_that_words_did_not_find_counts_as_the_last_that_they_did() -> None:
    fused = (
        Hit(passage("b"), 1.0, lexical_score=4.0),
        Hit(passage("c"), 1.0),
        Hit(passage("d"), 1.0, lexical_score=2.0),
    )
    assert order(rerank("z", fused, Counting(), weights(lexical=1.0))) == ["b", "c", "d"]
    unknown = (Hit(passage("b"), 1.0), Hit(passage("z"), 1.0))
    assert order(rerank("z", unknown, Counting(), weights(lexical=1.0))) == ["z", "b"]


def test_equal_scores_leave_the_order() -> None:
    assert order(rerank("z", hits("b", "a", "c"), Counting(), weights())) == ["b", "a", "c"]


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.integers(0, 40))
def test_nothing_is_lost_and_the_rest_stays(scores: list[float], first: int) -> None:
    given_hits = tuple(Hit(passage(str(place)), score) for place, score in enumerate(scores))
    ranked = rerank("1", given_hits, Counting(), weights(first, 0.5, 0.5))
    assert sorted(order(ranked)) == sorted(order(given_hits))
    assert ranked[first:] == given_hits[first:]


def test_standardised() -> None:
    assert standardised([1.0, 3.0]) == [-1.0, 1.0]
    assert standardised([2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    assert standardised([]) == []


@pytest.mark.parametrize(
    ("question", "verbatim"),
    [
        (
            "When is the glucose tolerance test done again?",
            "The glucose tolerance test done again after birth decides.",
        ),
        ("血红蛋白低于七十时输血吗", "患者血红蛋白低于七十时应输血。"),
    ],
)
def test_a_phrase_of_the_question_stays_where_words_ranked_it(question: str, verbatim: str) -> None:
    others = [Hit(passage(f"{question[:2]} {number}"), 1.0, lexical_rank=number) for number in (0, *range(2, 9))]
    hit = Hit(passage(verbatim), 1.0, lexical_rank=1)
    ranked = rerank(question, (*others, hit), Constant(), weights())
    assert ranked.index(next(one for one in ranked if one.passage.text == verbatim)) == 1


@dataclass(frozen=True)
class Constant:
    """A ``Reranker`` that prefers what stands first."""

    name: str = "constant 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        return [float(-place) for place, _ in enumerate(passages)]
