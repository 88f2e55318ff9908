"""Reliability: the table and the bonus by rank; hand-worked scores."""

from __future__ import annotations

import pytest

from localmed.answering.reliability import BONUSES, bonuses
from localmed.domain import Kind
from localmed.text.publications import base


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("Systematic Review",), 7), (("Journal Article", "Meta-Analysis"), 7), (("Randomized Controlled Trial",), 6),
        (("Clinical Trial, Phase II",), 6), (("Clinical Trial",), 6), (("Practice Guideline",), 6),
        (("Observational Study", "Journal Article"), 5), (("Multicenter Study",), 4), (("Case Reports",), 3),
        (("Journal Article",), 3), (("Review", "Preprint"), 2), ((), 2), (("Unheard Of",), 2), (("Letter",), 1),
        (("Clinical Trial Protocol",), 1),
    ],
)  # fmt: skip
def test_the_base(types: tuple[str, ...], expected: int) -> None:
    assert base(types) == expected


def test_a_guideline_without_a_type_is_one_by_its_collection() -> None:
    assert base((), Kind.GUIDELINE) == 6
    assert base((), Kind.LITERATURE) == base((), Kind.BOOK) == 2


def test_the_bonus_goes_by_rank_of_the_date() -> None:
    assert BONUSES[:2] == (1.0, 0.8)
    assert bonuses(["2020", "2024-05-01", "", "2024-05", "2020"]) == (0.6, 1.0, 0.0, 0.8, 0.6)
    assert bonuses([str(year) for year in range(2024, 2017, -1)]) == (1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0)
    assert bonuses([]) == ()
    assert bonuses(["", ""]) == (0.0, 0.0)
