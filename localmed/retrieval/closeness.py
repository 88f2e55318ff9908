"""The closeness of the first section in three words, and limits calibrated on a site's questions.

The score combines the similarity of the section's nearest sentence with the share of the question's rare words in it.
It does not say whether the section answers: on the library's own subjects it separates questions with and without an
answer hardly better than chance (tests/benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from localmed.config import SearchSettings
from localmed.domain.findings import Closeness
from localmed.domain.roc import area_under_roc

HELD = 0.4  # weight of the share of rare words beside the similarity
# By encoder: least score for "close", least score for "some way off". Chosen on 580 questions of nine authors. Over all
# sets (tests/benchmarks/results.json), of 746 with an answer 34 have nothing near and 187 are some way off; of 116 on a
# subject that the library lacks 48 and 58.
LIMITS = {"multilingual-e5-small-q4": (0.60, 0.44)}
LOST = 0.025  # tolerated share of questions with an answer for which nothing is near
MISTAKEN = 0.10  # tolerated share of questions without an answer whose first section is close


def limits(encoder: str, settings: SearchSettings) -> tuple[float, float] | None:
    """The limits (close, near) of an encoder, or ``None``."""
    close, near = LIMITS.get(encoder, (0.0, 0.0))
    close, near = settings.close or close, settings.near or near
    return (max(close, near), near) if close and near else None


def said(score: float | None, encoder: str, settings: SearchSettings) -> Closeness:
    """The closeness of a first section with ``score``."""
    found = limits(encoder, settings)
    return Closeness.UNKNOWN if score is None or found is None else word(score, *found)


def word(score: float, close: float, near: float) -> Closeness:
    """The closeness of ``score`` by the limits ``close`` and ``near``."""
    return Closeness.CLOSE if score >= close else Closeness.SOME_WAY if score >= near else Closeness.NOTHING_NEAR


@dataclass(frozen=True, slots=True)
class Calibration:
    """Limits from labelled questions, and the score's area under the ROC curve on them."""

    close: float
    near: float
    area: float


def calibrated(answered: Sequence[float], unanswered: Sequence[float]) -> Calibration:
    """The limits that keep ``LOST`` on ``answered`` and ``MISTAKEN`` on ``unanswered`` scores, both not empty."""
    near = sorted(answered)[math.floor(LOST * len(answered))]
    others = sorted(unanswered, reverse=True)
    close = math.nextafter(others[math.floor(MISTAKEN * len(others))], math.inf)
    return Calibration(max(close, near), near, area_under_roc(answered, unanswered) or 0.0)
