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
    found = []
    for name, title in TITLES.items():
        text = (GUIDELINES / name).read_text("utf-8")
        found += [passage(each, title) for each in re.split(r"\n\s*\n", text) if len(each) > 60 and "|" not in each]
    return found


def caught(text: str, source: Passage) -> bool:
    rests_on = window(text, [source])
    return bool(fault(text, rests_on) or omitted(text, rests_on, [source]))


def test_right_statements_pass_and_planted_faults_do_not(passages: list[Passage]) -> None:
    right = pairs("statements_en", passages, tuple(TITLES.values()), tables=False)
    assert len(right) >= 35
    alarms = [each.text for each in right if caught(each.text, each.passage)]
    assert len(alarms) <= ALARMS, alarms
    planted = list(faults(right, passages))
    counts = Counter(each.kind for each in planted)
    found = Counter(each.kind for each in planted if caught(each.text, each.passage))
    assert set(counts) == set(KINDS)
    for kind in ("unit", "drug", "nowhere"):
        assert found[kind] == counts[kind], kind
    for kind in ("number", "citation"):
        assert found[kind] >= counts[kind] - MISSED, kind
    assert found["negation"] >= 0.7 * counts["negation"]
