"""The area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence


def area_under_roc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """How likely one of ``positive`` has the higher score than one of ``negative``, equal ones counting half.

    1 tells them apart, 0.5 is chance; None where there are none of one kind.
    """
    if not positive or not negative:
        return None
    above = sum((one > other) + (one == other) / 2 for one in positive for other in negative)
    return above / (len(positive) * len(negative))
