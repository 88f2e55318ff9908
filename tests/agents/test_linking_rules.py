"""References scored without a language model: order, languages nobody knows, and the reranker's part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from localmed.agents.linking import FLUENCY, VALIDITY, FluencyInput, ValidityInput
from localmed.agents.linking_rules import LinkRules
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.relevance import MAXSIM
from tests.agents.test_extractive import index_of, sources
from tests.fakes import HashedWords

QUESTION = "What is the maximum dose of paracetamol in adults?"
PASSAGES = tuple(source.passage for source in sources())


class Constant:
    """A ``Reranker`` that finds everything equally good."""

    def __init__(self, score: float) -> None:
        self.name, self._score = f"{MAXSIM} of a test", score

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        return [self._score] * len(passages)


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    return index_of(tmp_path / "lexical", PASSAGES)


def test_what_answers_scores_above_what_does_not(index: LexicalIndex) -> None:
    scores = LinkRules(index, HashedWords(), None).validity(ValidityInput(QUESTION, PASSAGES[:3]))
    assert scores[0] is not None
    assert scores[1] is not None
    assert 0 <= scores[1] < scores[0] <= 1


def test_scores_do_not_depend_on_the_company(index: LexicalIndex) -> None:
    rules = LinkRules(index, HashedWords(), None)
    together = rules.validity(ValidityInput(QUESTION, PASSAGES[:4]))
    alone = [rules.validity(ValidityInput(QUESTION, (passage,)))[0] for passage in PASSAGES[:4]]
    assert together == pytest.approx(alone, abs=1e-5)  # the arithmetic of a batch is rounded otherwise


def test_no_score_is_made_up_in_a_language_that_the_encoder_does_not_know(index: LexicalIndex) -> None:
    rules = LinkRules(index, HashedWords(), None)
    assert rules.validity(ValidityInput("对乙酰氨基酚的最大剂量是多少？", PASSAGES)) == (None,) * 5
    scores = rules.validity(ValidityInput(QUESTION, PASSAGES))
    assert [score is None for score in scores] == [False, False, False, False, True]
    assert rules.validity(ValidityInput(QUESTION, ())) == ()


def test_a_reranker_that_nobody_calibrated_does_not_count(index: LexicalIndex) -> None:
    low, high = (
        LinkRules(index, HashedWords(), Constant(score)).validity(ValidityInput(QUESTION, PASSAGES[:1]))[0]
        for score in (0.1, 0.9)
    )
    assert low == high is not None


def test_fluency_is_not_measured_by_rules(index: LexicalIndex) -> None:
    rules = LinkRules(index, HashedWords(), None).rules()
    assert rules[FLUENCY.name](FluencyInput(("A sentence.",))) == ()
    assert set(rules) == {VALIDITY.name, FLUENCY.name}
