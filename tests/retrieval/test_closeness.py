"""How near the first section is said to be: the limits in force, and those that labelled questions give."""

from __future__ import annotations

import pytest

from localmed.config import SearchSettings
from localmed.domain.findings import Closeness
from localmed.retrieval.closeness import LIMITS, calibrated, limits, said

E5 = "multilingual-e5-small-q4"


def test_the_encoders_limits_hold_unless_the_site_has_its_own() -> None:
    assert limits(E5, SearchSettings()) == LIMITS[E5]
    assert limits(E5, SearchSettings(close=0.7)) == (0.7, LIMITS[E5][1])
    assert limits(E5, SearchSettings(close=0.3, near=0.5)) == (0.5, 0.5), "nothing is close that is not near"
    assert limits("other", SearchSettings()) is None
    assert limits("other", SearchSettings(close=0.7, near=0.5)) == (0.7, 0.5)


@pytest.mark.parametrize(
    ("score", "word"),
    [(0.7, Closeness.CLOSE), (0.69, Closeness.SOME_WAY), (0.5, Closeness.SOME_WAY), (0.49, Closeness.NOTHING_NEAR)],
)
def test_a_score_is_said_in_three_words(score: float, word: Closeness) -> None:
    assert said(score, "any", SearchSettings(close=0.7, near=0.5)) is word


def test_few_answered_questions_are_lost_and_few_others_are_called_close() -> None:
    answered = [number / 100 for number in range(40, 100)]
    unanswered = [number / 100 for number in range(10, 70)]
    found = calibrated(answered, unanswered)
    assert sum(score < found.near for score in answered) <= 0.025 * len(answered)
    assert sum(score >= found.close for score in unanswered) <= 0.10 * len(unanswered)
    assert sum(score >= found.close - 0.011 for score in unanswered) > 0.10 * len(unanswered), "no further than needed"
    assert found.area == pytest.approx(0.875, abs=0.01)


def test_scores_that_tell_nothing_have_half_the_area() -> None:
    assert calibrated([0.5] * 20, [0.5] * 20).area == 0.5
