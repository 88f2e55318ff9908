"""Measures and statistics against values worked out by hand."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.lab import measures, plot
from localmed.lab.measures import JUDGED, MEASURES, scores

pytestmark = pytest.mark.extra("eval")

# Gains 0 to 3; relevant from 2. "deep" finds its only relevant document at rank 11, "none" finds nothing.
JUDGEMENTS = {
    "graded": {"a": 3, "b": 1, "c": 2, "d": 0, "e": 2},
    "deep": {"x": 2},
    "none": {"x": 2},
}
RUN = {
    "graded": ["b", "u1", "a", "d", "c", "u2"],
    "deep": [*(f"u{number}" for number in range(10)), "x"],
    "none": [],
}
FOUND = 1 / math.log2(2) + 3 / math.log2(4) + 2 / math.log2(6)  # b at rank 1, a at 3, c at 5
BEST = 3 / math.log2(2) + 2 / math.log2(3) + 2 / math.log2(4) + 1 / math.log2(5)  # a, c, e, b
EXPECTED = {
    "MRR@10": {"graded": 1 / 3, "deep": 0.0, "none": 0.0},
    "MAP": {"graded": (1 / 3 + 2 / 5) / 3, "deep": 1 / 11, "none": 0.0},
    "nDCG@10": {"graded": FOUND / BEST, "deep": 0.0, "none": 0.0},
    "recall@5": {"graded": 2 / 3, "deep": 0.0, "none": 0.0},
    "recall@10": {"graded": 2 / 3, "deep": 0.0, "none": 0.0},
    JUDGED: {"graded": 4 / 6, "deep": 0.0, "none": 0.0},
}


@pytest.mark.parametrize("measure", EXPECTED)
def test_measures_are_what_they_are_by_hand(measure: str) -> None:
    values = scores(RUN, JUDGEMENTS, relevant_from=2)
    assert set(values) == {*MEASURES, JUDGED}
    assert values[measure] == pytest.approx(EXPECTED[measure], abs=1e-4)


def test_where_relevance_begins_which_order_counts_and_what_a_run_lacks() -> None:
    assert scores(RUN, JUDGEMENTS, relevant_from=1)["MRR@10"]["graded"] == 1.0
    assert scores(RUN, JUDGEMENTS, relevant_from=3)["recall@5"]["graded"] == 1.0
    for first in "ac":  # not the order of the documents' names
        assert scores({"q": [first, "b"]}, {"q": {"b": 1}}, 1)["MRR@10"]["q"] == 0.5
    values = scores({"q": ["x"]}, {"q": {"x": 1}, "other": {"x": 1}}, 1)
    assert {value["other"] for value in values.values()} == {0.0}


def test_the_interval_is_that_of_the_mean_and_the_paired_test_is_exact() -> None:
    values = np.array([0.0, 1.0] * 10)
    low, high = measures.interval(values, 1)
    assert low < 0.5 < high
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(20), rel=0.15)  # as the normal distribution has it
    assert measures.interval(values, 1) == (low, high) != measures.interval(values, 2)
    better = np.array([0.4, 0.6, 0.7, 0.9, 0.5])
    worse = better - np.array([0.1, 0.2, 0.3, 0.1, 0.2])
    for one, other in ((better, worse), (worse, better)):
        assert measures.paired_p(one, other, 1) == pytest.approx(2 / 2**5)  # both ways in which all swaps agree
    assert measures.paired_p(better, better, 1) == 1.0


def test_holm_by_hand() -> None:
    assert measures.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert measures.holm({"a": 0.6, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert measures.holm({}) == {}


@pytest.mark.parametrize(("adapter", "library"), [(measures, "ir_measures"), (measures, "scipy"), (plot, "matplotlib")])
def test_a_missing_library_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, adapter: ModuleType, library: str
) -> None:
    real = builtins.__import__

    def without(name: str, names: Mapping[str, Any] | None = None, *others: Any) -> Any:
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, names, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelError, match=r"not_installed|not installed") as error:
        adapter.require()
    assert library.replace("_", "-") in error.value.what
    assert "localmed[eval]" in error.value.remedy
    assert "--no-index" in error.value.remedy
