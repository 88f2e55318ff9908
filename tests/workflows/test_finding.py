"""Hits that speak of others than the question are set aside, by the whole question for each of its parts."""

from __future__ import annotations

from localmed.agents.asking import Relevance
from localmed.domain import Hit
from localmed.workflows.finding import of_the_same
from tests.values import passage

ADULTS = Hit(passage("The target for most adults is below 130/80 mmHg.", "Hypertension in adults"), 1.0)
PREGNANT = Hit(passage("In pregnancy the target is below 135/85 mmHg.", "Hypertension in pregnancy"), 1.0)
JUDGED = Relevance((0.9, 0.8), 0.5)


def test_a_part_of_a_question_is_about_whom_the_whole_is_about() -> None:
    part, whole = (
        "What is the blood pressure target?",
        "In pregnancy, what is the blood pressure target? And the medicine?",
    )
    assert of_the_same(part, (ADULTS, PREGNANT), JUDGED) == JUDGED
    assert of_the_same(part, (ADULTS, PREGNANT), JUDGED, whole).probabilities == (0.0, 0.8)


def test_a_word_is_lacking_only_where_every_hit_lacks_it() -> None:
    question = "What is the target in pregnancy?"
    assert of_the_same(question, (ADULTS, PREGNANT), JUDGED).differing == ()
    assert of_the_same(question, (ADULTS, ADULTS), JUDGED).differing == ("pregnancy",)


def test_what_may_still_be_quoted_is_the_likeliest_and_is_marked() -> None:
    relevance = Relevance((0.45, 0.3), 0.6, likely=(0.0, 0.3))
    assert not relevance.enough
    second = relevance.second
    assert second is not None
    assert (second.enough, second.unsure) == (True, True)
    assert second.helpful((ADULTS, PREGNANT)) == (PREGNANT,)
    assert Relevance((0.45,), 0.6, likely=(0.0,)).second is None
    assert (
        of_the_same("What is the target in pregnancy?", (ADULTS,), Relevance((0.4,), 0.6, likely=(0.4,))).second is None
    )
