"""The area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence


def area_under_roc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """The probability that a positive scores higher than a negative, ties counting half; None if either is empty."""
    if not positive or not negative:
        return None
    above = sum((one > other) + (one == other) / 2 for one in positive for other in negative)
    return above / (len(positive) * len(negative))
