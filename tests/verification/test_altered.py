"""Altered statements are not called supported, what a source says is not called contradicted; without any model."""

from __future__ import annotations

import pytest

from localmed.models.e5 import E5
from localmed.verification.likeness import LikenessOnly, likenesses
from tests.fakes import HashedWords
from tests.verification.altered import HALVES, cases, checked, rates, weighed

MOST_SUPPORTED = 0.02  # of the altered ones


@pytest.fixture(scope="module")
def nobody() -> LikenessOnly:
    return LikenessOnly(E5(), E5)


@pytest.mark.parametrize("half", HALVES)
def test_what_the_rules_call_supported_or_contradicted(half: str, nobody: LikenessOnly) -> None:
    cases_ = cases(half)
    measured = rates(cases_, checked(cases_, nobody))
    assert measured.altered >= 80
    assert measured.altered_supported <= MOST_SUPPORTED * measured.altered
    assert measured.entailed_contradicted == 0
    verbatim = [case for case in cases_ if case.kind in ("verbatim", "layout")]
    assert rates(verbatim, checked(verbatim, nobody)).entailed_supported == len(verbatim)
    votes = rates(cases_, weighed(cases_, nobody))
    assert votes.altered_supported + votes.entailed_contradicted == 0


def test_nothing_is_judged_and_both_languages_are_compared() -> None:
    def own() -> HashedWords:
        return HashedWords()

    judge = LikenessOnly(HashedWords(), own)
    english, mixed = judge.judge([("Title\nGive iron daily.", "Give iron daily."), ("补铁。", "Give iron daily.")])
    assert not english.judged
    assert not mixed.judged
    assert english.likeness == pytest.approx(1.0, abs=1e-6)
    assert 0.0 < mixed.likeness < english.likeness
    assert judge.judge([]) == []
    assert judge.languages == ()


def test_likeness_is_that_of_the_nearest_line() -> None:
    encoder = HashedWords()
    near, far = likenesses(encoder, [("Title\nGive iron daily.\nStop zinc.", "Give iron daily."), ("Zinc.", "Iron.")])
    assert near == pytest.approx(1.0, abs=1e-6)
    assert far < near
