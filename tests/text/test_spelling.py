"""Which words may be misspelt forms of one another."""

from __future__ import annotations

import pytest

from localmed.text.spelling import errors, is_near


@pytest.mark.parametrize(
    ("word", "other", "count"),
    [
        ("", "ab", 2),
        ("dose", "dose", 0),
        ("dosse", "dose", 1),
        ("odse", "dose", 1),
        ("dxse", "dose", 1),
        ("ca", "abc", 3),
    ],
)
def test_typing_errors_are_counted(word: str, other: str, count: int) -> None:
    assert errors(word, other) == errors(other, word) == count


@pytest.mark.parametrize(
    ("word", "other", "near"),
    [
        ("eliqius", "eliquis", True),
        ("leiquis", "eliquis", True),  # the first two letters in the other order
        ("dosse", "dose", False),  # too short to tell
        ("elliqis", "eliquis", False),  # two errors in seven letters
        ("spironlacton", "spironolactone", True),
        ("gluconate", "glucagon", False),
        ("penicillamine", "penicillin", False),
        ("hyperthyroidism", "hypothyroidism", False),
        ("asthmatic", "automatic", False),
        ("rapixaban", "apixaban", False),
        ("symptomatic", "asymptomatic", False),
    ],
)
def test_a_word_is_near_another_by_one_or_two_errors(word: str, other: str, near: bool) -> None:
    assert is_near(word, other) is near
