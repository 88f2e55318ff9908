"""Cochran's Q and tau squared, against a reference written from the published formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.vote import heterogeneity


def reference(effects: list[float]) -> tuple[float, float]:
    """The method of moments in matrix form: Q = y'Py, tau squared = (Q - (k - 1)) / trace(P), not below 0."""
    y, k = np.array(effects), len(effects)
    projection = np.eye(k) - np.ones((k, k)) / k
    q = float(y @ projection @ y)
    return q, max(0.0, (q - (k - 1)) / float(np.trace(projection)))


def test_agreement_and_a_single_study_have_none() -> None:
    for effects in ([], [1], [-1, -1, -1, -1]):
        result = heterogeneity(effects)
        assert (result.q, result.tau2) == (0.0, 0.0)


@given(st.lists(st.sampled_from([-1.0, 1.0]) | st.floats(-3, 3), min_size=2, max_size=30))
def test_equal_to_the_reference(effects: list[float]) -> None:
    result = heterogeneity(effects)
    assert (result.q, result.tau2) == pytest.approx(reference(effects), abs=1e-9, rel=1e-9)
