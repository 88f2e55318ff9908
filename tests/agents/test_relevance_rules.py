from __future__ import annotations

from pathlib import Path
from typing import Any

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
