"""A guard for what tests/benchmarks/planted_faults.py measures, on two guidelines read from their sources."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from localmed.domain import Passage
from localmed.verification.comparison import fault
from localmed.verification.exceptions import omitted
from localmed.verification.matching import window
from tests.values import passage
from tests.verification.planting import KINDS, faults, pairs

GUIDELINES = Path(__file__).parents[2] / "corpora" / "starter" / "guidelines"
ALARMS = 3  # of 38; a paragraph is not quite the passage that the import makes
MISSED = 2
TITLES = {
    "sepsis-first-hour.md": "Sepsis in adults: the first hour",
    "anaphylaxis.txt": "Anaphylaxis: emergency treatment",
}


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    """The paragraphs of two guidelines; tables are left to the benchmark."""
    passages = []
    for name, title in TITLES.items():
        text = (GUIDELINES / name).read_text("utf-8")
        passages += [
            passage(paragraph, title)
            for paragraph in re.split(r"\n\s*\n", text)
            if len(paragraph) > 60 and "|" not in paragraph
        ]
    return passages


def caught(text: str, source: Passage) -> bool:
    rests_on = window(text, [source])
    return bool(fault(text, rests_on) or omitted(text, rests_on, [source]))


def test_right_statements_pass_and_planted_faults_do_not(passages: list[Passage]) -> None:
    right = pairs("statements_en", passages, tuple(TITLES.values()), tables=False)
    assert len(right) >= 35
    alarms = [pair.text for pair in right if caught(pair.text, pair.passage)]
    assert len(alarms) <= ALARMS, alarms
    planted = list(faults(right, passages))
    counts = Counter(pair.kind for pair in planted)
    caught_counts = Counter(pair.kind for pair in planted if caught(pair.text, pair.passage))
    assert set(counts) == set(KINDS)
    for kind in ("unit", "drug", "nowhere"):
        assert caught_counts[kind] == counts[kind], kind
    for kind in ("number", "citation"):
        assert caught_counts[kind] >= counts[kind] - MISSED, kind
    assert caught_counts["negation"] >= 0.7 * counts["negation"]
