"""How sure a mean is and whether two differ: resampling over questions, by SciPy. Everything is seeded.

Intervals are percentile bootstrap intervals of the mean. Two configurations are compared on the same questions by a
two-sided paired randomisation test: under the null hypothesis the two values of a question could be swapped (Smucker,
Allan & Carterette 2007 recommend it for retrieval). Several comparisons with one reference are corrected by Holm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

RESAMPLES = 2000  # the bounds then vary by less than a tenth of the interval's width
PERMUTATIONS = 9999  # the smallest p is 0.0002
CONFIDENCE = 0.95
BATCH = 200  # resamples at once: 200 x 10,000 questions are 16 MB


def require() -> Any:
    """The library; raise ``ModelError`` if it is not installed."""
    try:
        from scipy import stats
    except ImportError:
        raise ModelError("evaluation.no_statistics", package="scipy") from None
    return stats


def interval(values: Values, seed: int) -> tuple[float, float]:
    """The confidence interval of the mean of ``values`` (Q,), Q at least 2."""
    result = require().bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, batch=BATCH, confidence_level=CONFIDENCE, method="percentile",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def paired_p(values: Values, reference: Values, seed: int) -> float:
    """The two-sided p of the mean difference of two (Q,) arrays over the same questions; 1 where they are equal."""
    if np.array_equal(values, reference):
        return 1.0
    result = require().permutation_test(
        (values, reference), _difference, permutation_type="samples", vectorized=True, n_resamples=PERMUTATIONS,
        batch=BATCH, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(result.pvalue)


def _difference(values: Values, reference: Values, axis: int) -> Values:
    difference: Values = np.mean(values - reference, axis=axis)
    return difference


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """The p of a family of comparisons, corrected: the smallest times their number, the next times one less, ..."""
    corrected: dict[str, float] = {}
    highest = 0.0
    for place, name in enumerate(sorted(p, key=lambda name: (p[name], name))):
        highest = max(highest, min(1.0, p[name] * (len(p) - place)))
        corrected[name] = highest
    return corrected


def array(values: Mapping[str, float], questions: Sequence[str]) -> Values:
    """The values of ``questions`` in their order, (Q,)."""
    return np.array([values[question] for question in questions], np.float64)
