"""Ages of questions and the bands of age that texts are for."""

from __future__ import annotations

import pytest

from localmed.clinical.ages import OLDEST, bands, named_ages, outside


@pytest.mark.parametrize(("text", "expected"), [
    ("Adults and children over 12 years: 500 micrograms.", [(12, OLDEST)]),
    ("Children aged 6 to 12 years: 300 micrograms.", [(6, 13)]),
    ("Children aged 6 months to under 6 years", [(0.5, 6)]),
    ("Patients aged 60 and over", [(60, OLDEST)]),
    ("children under 2 years", [(0, 2)]),
    ("3个月以下的婴儿", [(0, 0.25)]),
    ("适用年龄：6个月以上", [(0.5, OLDEST)]),
    ("2至12岁", [(2, 13)]),
    ("Infuse over 30 minutes for 3 to 5 days.", []),
    ("Give the child fluid over 4 hours.", []),
    ("疗程3个月以上。", []),
])  # fmt: skip
def test_bands(text: str, expected: list[tuple[float, float]]) -> None:
    assert bands(text) == expected


@pytest.mark.parametrize(("question", "years"), [
    ("What dose for a 3 month old baby?", [0.25]), ("Dose in a 70 year old", [70]), ("a man aged 45", [45]),
    ("7岁孩子用多少", [7]), ("6个月婴儿", [0.5]), ("How long is the 3 month course?", []), ("疗程3个月够吗", []),
])  # fmt: skip
def test_the_age_of_a_question(question: str, years: list[float]) -> None:
    assert [age for age, _ in named_ages(question)] == years


def test_an_age_that_no_band_holds_is_outside() -> None:
    band = "Children aged 6 months to under 6 years: 150 micrograms."
    assert outside("dose for a 3 month old", band)
    assert not outside("dose for a 3 year old", band)
    assert not outside("dose for a child", band)
    assert not outside("dose for a 3 month old", "150 micrograms.")
