"""Reliability: the table, the bonus by rank, what the rules read in an abstract; hand-worked scores."""

from __future__ import annotations

import pytest

from localmed.answering.reliability import ASPECTS, BONUSES, bonuses, failed
from localmed.domain import Kind
from localmed.text.publications import base

BLINDED = "We randomly assigned 400 adults to aspirin or placebo in a double-blind trial."


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BLINDED, ()),
        (f"{BLINDED} Forty were lost to follow-up.", ("complete_data",)),
        ("We searched MEDLINE and Embase for trials. Reviewers were masked to authorship; raters were blinded.", ()),
        ("An open-label randomised trial.", ("blinding",)),
        ("A non-randomised comparison, not blinded.", ("random_selection", "blinding")),
        ("A cohort of 90 adults. Residual confounding may have led to bias.", tuple(set(ASPECTS) - {"complete_data"})),
        ("随机、双盲、安慰剂对照试验。", ()),
        ("回顾性研究，部分患者失访，存在选择偏倚。", tuple(ASPECTS)),
        ("", ("random_selection", "blinding")),
        ("Risk of bias was assessed by two authors in a systematic review of double-blind trials.", ()),
    ],
)
def test_the_aspects(text: str, expected: tuple[str, ...]) -> None:
    assert set(failed("", text)) == set(expected)
