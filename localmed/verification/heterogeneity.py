"""Heterogeneity of the studies on a claim: Cochran's Q and the variance between studies by DerSimonian and Laird.

M-Eval (III-D, formulas 2 and 3; DerSimonian & Laird 1986): study i states the effect ``y_i`` with the sampling variance
``v_i`` and weight ``w_i = 1 / v_i``; ``Q = sum w_i (y_i - mean)^2`` with the weighted mean; ``tau^2 = max(0, (Q - (k -
1)) / (sum w_i - sum w_i^2 / sum w_i))``. Abstracts do not state variances, so M-Eval gives every study the same; the
paper does not say which, ours is 1. An effect is +1 (supports) or -1 (contradicts): studies that say neither take no
part, for they would look like disagreement where there is none. Higher values tell of studies that disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

VARIANCE = 1.0  # of every study, in the unit of an effect squared


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Cochran's ``q`` with ``k - 1`` degrees of freedom, and ``tau2``, of ``k`` effects; both 0 for fewer than two."""

    q: float = 0.0
    tau2: float = 0.0
    k: int = 0


def heterogeneity(effects: Sequence[float], variances: Sequence[float] = ()) -> Heterogeneity:
    """Of ``effects`` (k) with their sampling ``variances`` (k, above 0; empty: ``VARIANCE`` each)."""
    k = len(effects)
    if k < 2:
        return Heterogeneity(k=k)
    weights = [1.0 / variance for variance in variances] or [1.0 / VARIANCE] * k
    total = fsum(weights)
    mean = fsum(weight * effect for weight, effect in zip(weights, effects, strict=True)) / total
    q = fsum(weight * (effect - mean) ** 2 for weight, effect in zip(weights, effects, strict=True))
    scale = total - fsum(weight * weight for weight in weights) / total
    return Heterogeneity(q, max(0.0, (q - (k - 1)) / scale), k)
