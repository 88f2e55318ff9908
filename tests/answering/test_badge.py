"""The badge: the paper's table in full, the jury, the reason, and what a reader is told of the judge."""

from __future__ import annotations

from itertools import product

import pytest

from localmed.answering.chat import ChatRoles
from localmed.answering.judging import (
    BADGE,
    BADGE_STRICT,
    CHARACTERS,
    Criteria,
    JudgingInput,
    Vote,
    badge,
    majority,
    reason,
)
from localmed.domain import Badge, BadgeJudge, Verification
from localmed.messages import catalogue, render
from localmed.presentation.answer import badge_view
from tests.scripted import ScriptedChat
from tests.values import evidence, quotation
from tests.words import said

SOURCE = evidence("1", "Give 5 mg by mouth. Do not exceed 20 mg a day.")
GIVEN = JudgingInput("What is the dose?", (SOURCE,), (quotation(SOURCE, 0, 19),))
ALL = [Criteria(*values) for values in product((True, False), repeat=3)]


@pytest.mark.parametrize("criteria", ALL, ids=str)
def test_the_table_and_its_reasons_in_both_languages_of_which_none_says_safe(criteria: Criteria) -> None:
    expected = {(True, True, True): Badge.GREEN, (False, True, True): Badge.YELLOW}
    assert badge(criteria) is expected.get((criteria.answers, criteria.related, criteria.grounded), Badge.RED)
    assert reason(criteria).code in catalogue("zh")
    assert "safe" not in render(reason(criteria), "en")


def test_a_jury_decides_each_criterion_by_majority_and_a_tie_is_no() -> None:
    yes, no, part = Criteria(True, True, True), Criteria(False, False, False), Criteria(False, True, True)
    assert majority([yes, yes, no]) == yes
    assert majority([yes, part, no]) == part
    assert majority([yes, no]) == no
    assert majority([]) == no


def test_a_judge_without_a_measured_error_rate_says_so() -> None:
    judges = (
        BadgeJudge("rules", "MedQuAD", (("answers", 0.13), ("related", 0.16))),
        BadgeJudge("chat"),
        BadgeJudge("ward 3; (new)"),
    )
    verification = Verification(
        1, badge=Badge.GREEN, badge_before=Badge.GREEN, reason=reason(ALL[0]), badge_judges=judges
    )
    shown = badge_view(verification, "en")
    none = said("badge.not_validated")
    wrong = said("badge.wrong_answers", percent=13), said("badge.wrong_related", percent=16)
    measured = said("badge.measured", data="MedQuAD", errors=wrong)
    assert [(judge.name, judge.errors) for judge in shown.judges] == [
        ("rules", measured), ("chat model", none), ("ward 3; (new)", none),
    ]  # fmt: skip
    assert f"rules ({measured}), chat model ({none}), ward 3; (new) ({none})." in shown.judged
    assert [judge.name for judge in badge_view(verification, "zh").judges] == ["规则", "语言模型", "ward 3; (new)"]


@pytest.mark.parametrize(
    ("question", "yes", "no"), [("What is the dose?", "true", "false"), ("剂量是多少？", "对", "错")]
)
def test_a_chat_model_judges_each_criterion(question: str, yes: str, no: str) -> None:
    task = JudgingInput(question, GIVEN.evidence, GIVEN.statements)
    vote = ChatRoles(ScriptedChat([no, yes, yes])).perform(BADGE, task)
    assert vote == Vote(Criteria(False, True, True), BadgeJudge("chat"))
    strict = ChatRoles(ScriptedChat([no, no, yes])).perform(BADGE_STRICT, task)
    assert strict.criteria == Criteria(True, True, False), "its claims are the faults"


def test_a_context_that_is_too_long_is_left_out_by_whole_passages() -> None:
    long = tuple(evidence(str(number), "word " * 1000, f"Title {number}") for number in range(8))
    seen: list[str] = []

    def script(messages: object) -> str:
        seen.append(str(messages))
        return "true"

    ChatRoles(ScriptedChat(script)).perform(BADGE, JudgingInput("What is the dose?", long, GIVEN.statements))
    assert "Title 1" in seen[0]
    assert "Title 7" not in seen[0]
    assert len(seen[0]) < CHARACTERS * 2
