from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.agents.asking import Relevance, RelevanceInput
from localmed.agents.relevance_rules import RelevanceRules
from localmed.config import AskSettings
from localmed.domain import message
from tests.agents.test_extractive import QUESTIONS, TEXTS, index_of, sources
from tests.fakes import HashedWords
from tests.values import hit


def test_relevance_is_judged_in_both_languages(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical", [source.passage for source in sources()])
    rules = RelevanceRules(index, HashedWords().identity.slug, AskSettings())

    def judge(question: str, dense: bool, hits: Any) -> Relevance:
        return rules.judge(RelevanceInput(question, hits, dense))

    good = (hit(TEXTS[0][1], TEXTS[0][0], similarity=0.9),)
    poor = (hit("The cafeteria opens at noon.", "Cafeteria", similarity=0.05),)
    assert judge(QUESTIONS[0], True, good).enough
    assert not judge(QUESTIONS[0], True, poor).enough
    assert not judge(QUESTIONS[0], True, ()).enough
    assert not judge("", True, good).enough
    chinese = (hit(TEXTS[4][1], TEXTS[4][0], language="zh"),)
    assert judge("对乙酰氨基酚的最大剂量", False, chinese).enough
    assert not judge("火箭发动机在哪", False, chinese).enough
    assert not judge(QUESTIONS[0], True, good).calibrated, "no judge was fitted for this encoder"
    assert judge(QUESTIONS[0], False, good).calibrated
    assert judge("zebra", False, good).reason == message("workflow.subject_missing", words=("zebra",))


@pytest.mark.parametrize(("question", "nameless"), [
    ("What is the dose?", True), ("Who needs to be admitted?", True), ("can children have it", True),
    ("剂量是多少？", True), ("哪些病人需要住院？", True), ("What is the dose of paracetamol?", False),
    ("How is pre-eclampsia followed up?", False), ("visiting hours", False), ("对乙酰氨基酚的剂量是多少？", False),
])  # fmt: skip
def test_a_question_that_does_not_say_what_it_is_about_is_not_answered(
    tmp_path: Path, question: str, nameless: bool
) -> None:
    index = index_of(tmp_path / "lexical", [source.passage for source in sources()])
    rules = RelevanceRules(index, HashedWords().identity.slug, AskSettings())
    own, foreign = hit(TEXTS[0][1], TEXTS[0][0]), hit(TEXTS[4][1], TEXTS[4][0], language="zh")
    for hits in ((own,), (foreign,), (own, foreign)):
        relevance = rules.judge(RelevanceInput(question, hits, True))
        assert (relevance.reason == message("workflow.nameless")) == nameless
        assert not (nameless and relevance.enough)


def test_a_search_is_left_only_where_the_reranker_is_known_and_nothing_of_it_has_a_chance(tmp_path: Path) -> None:
    index = index_of(tmp_path / "lexical", [source.passage for source in sources()])
    encoder = "multilingual-e5-small-q4-0.3.0-centred-384"
    reranker = "MaxSim over multilingual-e5-small-q4 0.3.0-centred, 160 pieces"
    rules = RelevanceRules(index, encoder, AskSettings())
    good = (replace(hit(TEXTS[0][1], TEXTS[0][0]), rerank_score=0.95),)
    poor = (replace(hit("The cafeteria opens at noon.", "Cafeteria"), rerank_score=0.5),)
    assert rules.promising(QUESTIONS[0], (*poor, *good), reranker)
    assert not rules.promising(QUESTIONS[0], poor, reranker)
    assert rules.promising(QUESTIONS[0], poor, "another reranker")  # nobody knows what its scores mean
