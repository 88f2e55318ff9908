"""The badge's criteria by rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localmed.agents.judging import JudgingInput
from localmed.agents.judging_rules import JudgingRules
from tests.agents.test_extractive import index_of
from tests.fakes import HashedWords
from tests.values import evidence, quotation


@pytest.mark.parametrize(("text", "answers"), [
    ("血红蛋白低于70 g/L时输血。", True),
    ("血红蛋白每日复查。", False),
    ("输血前核对。", False),
])  # fmt: skip
def test_a_sentence_that_names_all_that_is_asked_about_answers_under_whatever_name(
    tmp_path: Path, text: str, answers: bool
) -> None:
    piece = evidence("1", text, "出血")
    others = [replace(piece.passage, id=str(number), text=f"其他内容第{number}段。") for number in range(5)]
    rules = JudgingRules(index_of(tmp_path, [piece.passage, *others]), HashedWords())
    vote = rules.judge(JudgingInput("血色素多少要输血？", (piece,), (quotation(piece, 0, len(text)),)))
    assert (vote.criteria.answers, vote.criteria.related) == (answers, True), "unlikeness is no evidence against"


def test_what_speaks_of_another_is_unrelated(tmp_path: Path) -> None:
    piece = evidence("1", "输血不用于慢性贫血。", "慢性贫血")
    rules = JudgingRules(index_of(tmp_path, [piece.passage]), HashedWords())
    task = JudgingInput("急性胰腺炎怎样补液？", (piece,), (quotation(piece, 0, len(piece.passage.text)),))
    assert not rules.judge(task).criteria.related
