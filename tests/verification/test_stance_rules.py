"""The rules of entailment on written cases: negation, direction, numbers, units, doubt, other subjects."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.verification.stance_rules import RuleJudge, coverage, signals, stems

ADRENALINE = "Give adrenaline 500 micrograms into the muscle."
SMOKING = "Smoking increased the risk of stroke in men."
CASES = [
    ("Metformin lowers blood sugar.", "Metformin lowers blood sugar.", "entailment"),
    ("Zinc lozenges shortened the common cold by one day.", "Zinc lozenges shorten the common cold.", "entailment"),
    ("Zinc lozenges did not shorten the common cold.", "Zinc lozenges shorten the common cold.", "contradiction"),
    ("Honey helps against cough.", "Honey does not help against cough.", "contradiction"),
    ("None of the patients with measles reported earache.", "Earache is a symptom of measles.", "contradiction"),
    (ADRENALINE, "Give adrenaline 500 mg into the muscle.", "contradiction"),
    (ADRENALINE, "Give adrenaline 0.5 mg into the muscle.", "entailment"),
    (ADRENALINE, "Give adrenaline 500 mcg into the muscle.", "entailment"),
    (SMOKING, "Smoking decreases the risk of stroke.", "contradiction"),
    (SMOKING, "Smoking raises the risk of stroke.", "entailment"),
    ("Exercise reduced blood pressure.", "Exercise raises blood pressure.", "contradiction"),
    ("The vaccine was effective against measles.", "The vaccine was ineffective against measles.", "contradiction"),
    ("Whether vitamin D prevents falls is still unclear.", "Vitamin D prevents falls.", "neutral"),
    ("Amoxicillin is given three times a day.", "Ibuprofen is given three times a day.", "neutral"),
    ("The clinic on the second floor opens at nine.", "Statins lower cholesterol.", "neutral"),
    ("", "Statins lower cholesterol.", "neutral"),
]


@pytest.mark.parametrize(("premise", "hypothesis", "label"), CASES)
def test_a_written_case(premise: str, hypothesis: str, label: str) -> None:
    (stance,) = RuleJudge().judge([(premise, hypothesis)])
    assert stance.label == label


def test_only_amounts_are_sure_enough_to_withhold_a_sentence() -> None:
    pairs = [(premise, hypothesis) for premise, hypothesis, label in CASES if label == "contradiction"]
    sure = [pair for pair, stance in zip(pairs, RuleJudge().judge(pairs), strict=True) if stance.contradiction >= 0.6]
    assert sure == [(ADRENALINE, "Give adrenaline 500 mg into the muscle.")]


def test_numbers_that_differ_keep_equal_words_from_being_the_same() -> None:
    (same, other) = RuleJudge().judge(
        [("It took 5 visits.", "It took 5 visits."), ("It took 5 visits.", "It took 9 visits.")]
    )
    assert same.entailment > other.entailment


def test_words_are_compared_without_their_endings() -> None:
    assert stems("protects protected protecting protection") == {"protect"}
    assert coverage("Masks protect nurses.", "A mask protected the nurse.") == 1.0
    assert coverage("Masks protect nurses.", "Masks protect teachers.") == pytest.approx(2 / 3)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_gives_bounded_signals_and_probabilities(premise: str, hypothesis: str) -> None:
    assert all(-1 <= each <= 1 for each in astuple(signals(premise, hypothesis)))
    (stance,) = RuleJudge().judge([(premise, hypothesis)])
    assert stance.entailment + stance.neutral + stance.contradiction == pytest.approx(1)
