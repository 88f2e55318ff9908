"""Retrieval measures by ir-measures, with trec_eval's compiled code, and statistics over questions.

Measures are per question, from 0 to 1. MRR@10: reciprocal rank of the first relevant document among ten. MAP: average
precision over the whole run. nDCG@10: linear gains, discount ``1 / log2(rank + 1)`` (Järvelin & Kekäläinen 2002).
recall@k: share of the relevant documents among the first k. Judged@10, the share of the first ten (or fewer) documents
that were judged, is no measure of quality.

SciPy resamples over questions, seeded. Intervals are percentile bootstrap intervals of the mean. Two configurations are
compared on the same questions by a two-sided paired randomisation test: under the null hypothesis a question's two
values are exchangeable (recommended for retrieval by Smucker, Allan & Carterette 2007). Several comparisons with one
reference are corrected by Holm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.domain.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.float64]

Run = Mapping[str, Sequence[str]]  # question id -> document ids, best first
Scores = Mapping[str, Mapping[str, float]]  # measure -> question id -> value

MEASURES = ("MRR@10", "MAP", "nDCG@10", "recall@5", "recall@10")
JUDGED = "judged@10"


def require() -> tuple[Any, Any]:
    """ir-measures and ``scipy.stats``; raise ``ModelError`` if they are not installed."""
    try:
        import ir_measures
        from scipy import stats
    except ImportError:
        raise ModelError("evaluation.not_installed", package="ir-measures, scipy") from None
    return ir_measures, stats


def scores(run: Run, judgements: Mapping[str, Mapping[str, int]], relevant_from: int) -> Scores:
    """Every measure of every judged question; a question missing from the run scores 0."""
    library, _ = require()
    known = {
        library.RR(rel=relevant_from) @ 10: "MRR@10",
        library.AP(rel=relevant_from): "MAP",
        library.nDCG @ 10: "nDCG@10",
        library.R(rel=relevant_from) @ 5: "recall@5",
        library.R(rel=relevant_from) @ 10: "recall@10",
        library.Judged @ 10: JUDGED,
    }
    # Scores that fall with the rank: trec_eval sorts by score, and would break ties by document id.
    ranked = {
        question: {document: float(len(documents) - rank) for rank, document in enumerate(documents)}
        for question, documents in run.items()
        if documents  # ir-measures 0.4.3 divides by zero for judged@10 of nothing
    }
    values: dict[str, dict[str, float]] = {name: dict.fromkeys(judgements, 0.0) for name in known.values()}
    for metric in library.iter_calc(list(known), judgements, ranked):
        values[known[metric.measure]][metric.query_id] = float(metric.value)
    return values


# --- how sure a mean is -----------------------------------------------------------------------------------------------


RESAMPLES = 2000  # the bounds then vary by less than a tenth of the interval's width
PERMUTATIONS = 9999  # the smallest p is 0.0002
CONFIDENCE = 0.95
BATCH = 200  # resamples at once: 200 x 10,000 questions are 16 MB


def interval(values: Values, seed: int) -> tuple[float, float]:
    """The confidence interval of the mean of ``values`` (Q,), Q at least 2."""
    result = require()[1].bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, batch=BATCH, confidence_level=CONFIDENCE, method="percentile",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def paired_p(values: Values, reference: Values, seed: int) -> float:
    """The two-sided p of the mean difference of two (Q,) arrays over the same questions; 1 if they are equal."""
    if np.array_equal(values, reference):
        return 1.0
    result = require()[1].permutation_test(
        (values, reference), _difference, permutation_type="samples", vectorized=True, n_resamples=PERMUTATIONS,
        batch=BATCH, rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(result.pvalue)


def _difference(values: Values, reference: Values, axis: int) -> Values:
    difference: Values = np.mean(values - reference, axis=axis)
    return difference


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """The p values of a family of comparisons, corrected by Holm."""
    corrected: dict[str, float] = {}
    highest = 0.0
    for place, name in enumerate(sorted(p, key=lambda name: (p[name], name))):
        highest = max(highest, min(1.0, p[name] * (len(p) - place)))
        corrected[name] = highest
    return corrected


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval, and the test against the reference; ``None`` where undefined."""

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None


def estimates(values: Mapping[str, Values], reference: str, seed: int) -> dict[str, Estimate]:
    """The mean of each array over the same questions, tested against ``reference``."""
    several = len(values[reference]) > 1
    p = {
        name: paired_p(array, values[reference], seed)
        for name, array in values.items()
        if several and name != reference
    }
    corrected = holm(p)
    return {name: Estimate(*mean(array, seed), p.get(name), corrected.get(name)) for name, array in values.items()}


def mean(values: Values, seed: int) -> tuple[float, float | None, float | None]:
    """The mean of ``values`` with its interval, which a single value does not have."""
    return float(values.mean()), *(interval(values, seed) if len(values) > 1 else (None, None))
