"""Emergencies and ordinary complaints by another author: table and likeness together, as the departments flow asks."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from localmed.answering.asking import QuestionInput
from localmed.models.e5 import E5, Uncentred
from localmed.safety.red_flags import red_flags
from localmed.safety.safety_likeness import WHOLE, like_emergency
from tests.fakes import HashedWords

CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="module")
def encoder() -> Uncentred:
    return Uncentred(E5())


def texts(name: str, language: str) -> list[str]:
    lists = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))
    return [case["text"] for cases in lists.values() for case in cases if case["language"] == language]


def urgent(encoder: Uncentred, text: str) -> bool:
    return bool(red_flags(text)) or like_emergency(encoder, QuestionInput(text))


SPENT = ("development", "held_back", "second_author")


@pytest.mark.parametrize("name", SPENT)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.slow
def test_what_it_was_fitted_on_is_told_apart(encoder: Uncentred, name: str, language: str) -> None:
    emergencies = [urgent(encoder, text) for text in texts(f"emergencies_{name}", language)]
    ordinary = [urgent(encoder, text) for text in texts(f"ordinary_{name}", language)]
    assert sum(emergencies) >= 0.98 * len(emergencies)
    assert sum(ordinary) <= 0.05 * len(ordinary)


@pytest.mark.parametrize("text", [
    "known angina, spray twice and it is just the same, lying in bed",
    "在家生的孩子，老婆整夜不睡，说菩萨要把孩子带走",
])  # fmt: skip
def test_it_sees_what_the_table_does_not(encoder: Uncentred, text: str) -> None:
    assert not red_flags(text)
    assert like_emergency(encoder, QuestionInput(text))


def test_a_sentence_of_a_long_complaint_counts(encoder: Uncentred) -> None:
    ordinary = "I would like a new prescription for my hay fever, the same as every spring. "
    long = ordinary * (2 + WHOLE // len(ordinary)) + "Baby 10 weeks old, feels hot and grunts, hardly feeds."
    assert like_emergency(encoder, QuestionInput(long))


def test_a_text_without_a_known_word_and_another_encoder_than_the_fitted_one_say_nothing(encoder: Uncentred) -> None:
    assert not any(like_emergency(encoder, QuestionInput(text)) for text in ("", "q", "12", "qqq qqq"))
    assert not like_emergency(HashedWords(), QuestionInput("he is not breathing and his lips are blue"))


def test_a_group_is_scored_without_itself() -> None:
    from tests.benchmarks.train_safety import ridge

    labels, groups = np.array([True, True, False, False]), np.array(["a", "a", "b", "c"])
    features = np.array([[1.0, 0.2], [0.9, 0.1], [-1.0, 0.3], [-0.8, -0.2]])
    _, alone = ridge(features @ features.T + 1.0, labels, 1.0, groups)
    rest, _ = ridge(features[2:] @ features[2:].T + 1.0, labels[2:], 1.0, groups[2:])
    assert alone[:2] == pytest.approx((features[:2] @ features[2:].T + 1.0) @ rest)
