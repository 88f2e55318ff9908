"""Cochran's Q and tau squared, against a reference written from the published formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.vote import outcome


def reference(effects: list[float]) -> tuple[float, float]:
    """The method of moments in matrix form: Q = y'Py, tau squared = (Q - (k - 1)) / trace(P), not below 0."""
    y, k = np.array(effects), len(effects)
    projection = np.eye(k) - np.ones((k, k)) / k
    q = float(y @ projection @ y)
    return q, max(0.0, (q - (k - 1)) / float(np.trace(projection)))


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=30))
def test_equal_to_the_reference(votes: list[int]) -> None:
    q, tau2, voters = outcome(votes, [1.0] * len(votes)).heterogeneity
    effects = [float(one) for one in votes if one]
    assert voters == len(effects)
    expected = reference(effects) if voters > 1 else (0.0, 0.0)
    assert (q, tau2) == pytest.approx(expected, abs=1e-9, rel=1e-9)
