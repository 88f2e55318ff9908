"""Cochran's Q and tau squared: by hand, against a reference written from the published formula, and as published."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.vote import heterogeneity

# Colditz et al. 1994, the 13 BCG trials: tuberculosis and no tuberculosis, vaccinated and not. As log risk ratios they
# are the usual worked example; by DerSimonian and Laird Q = 152.2330 and tau squared = 0.3088 (R package metafor).
BCG = (
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232),
    (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
)  # fmt: skip


def reference(effects: list[float], variances: list[float]) -> tuple[float, float]:
    """The method of moments in matrix form: Q = y'Py, tau squared = (Q - (k - 1)) / trace(P), not below 0."""
    y, w = np.array(effects), np.diag(1 / np.array(variances))
    ones = np.ones((len(effects), 1))
    projection = w - w @ ones @ np.linalg.inv(ones.T @ w @ ones) @ ones.T @ w
    q = float(y @ projection @ y)
    return q, max(0.0, (q - (len(effects) - 1)) / float(np.trace(projection)))


def test_the_published_example() -> None:
    effects = [math.log((a / (a + b)) / (c / (c + d))) for a, b, c, d in BCG]
    variances = [1 / a - 1 / (a + b) + 1 / c - 1 / (c + d) for a, b, c, d in BCG]
    result = heterogeneity(effects, variances)
    assert result.q == pytest.approx(152.2330, abs=5e-5)
    assert result.tau2 == pytest.approx(0.3088, abs=5e-5)
    assert (result.q, result.tau2) == pytest.approx(reference(effects, variances), abs=1e-9)


def test_agreement_and_a_single_study_have_none() -> None:
    for effects in ([], [1], [-1, -1, -1, -1]):
        result = heterogeneity(effects)
        assert (result.q, result.tau2) == (0.0, 0.0)


EFFECTS = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(0.01, 10)), min_size=2, max_size=30
)  # fmt: skip


@given(EFFECTS)
def test_equal_to_the_reference(rows: list[tuple[float, float]]) -> None:
    effects, variances = [row[0] for row in rows], [row[1] for row in rows]
    result = heterogeneity(effects, variances)
    q, tau2 = reference(effects, variances)
    assert result.q == pytest.approx(q, abs=1e-9, rel=1e-9)
    assert result.tau2 == pytest.approx(tau2, abs=1e-9, rel=1e-9)
