"""How near the first section is, in three words, and the limits that a site's own questions give.

The score is the similarity of the section's nearest sentence with the share of the question's rare words that it holds.
It speaks of words and meaning, not of whether the section answers: on questions about the library's own subjects it
tells those with an answer from those without one hardly better than chance (tests/benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from localmed.config import SearchSettings
from localmed.domain.findings import Closeness
from localmed.domain.roc import area_under_roc

HELD = 0.4  # of the share of rare words that the first hit holds, beside the similarity of its nearest sentence
# By encoder: from which score a first hit is close, and below which nothing is near. Chosen on 580 questions of nine
# authors; with a tenth author's 16 of 610 that have an answer have nothing near and 137 are some way off, of 116 on a
# subject that the library lacks 27 and 75 (tests/benchmarks/sections.py).
LIMITS = {"multilingual-e5-small-q4": (0.60, 0.44)}
LOST = 0.025  # share of questions with an answer of which nothing may be said to be near
MISTAKEN = 0.10  # share of questions without an answer of which the first section may be said to be close


def limits(encoder: str, settings: SearchSettings) -> tuple[float, float] | None:
    """From which score a section is close, and below which nothing is near; None for an encoder without limits."""
    close, near = LIMITS.get(encoder, (0.0, 0.0))
    close, near = settings.close or close, settings.near or near
    return (max(close, near), near) if close and near else None


def said(score: float | None, encoder: str, settings: SearchSettings) -> Closeness:
    """What is said of a first section with ``score``."""
    found = limits(encoder, settings)
    return Closeness.UNKNOWN if score is None or found is None else word(score, *found)


def word(score: float, close: float, near: float) -> Closeness:
    """The word for ``score`` between the limits ``close`` and ``near``."""
    return Closeness.CLOSE if score >= close else Closeness.SOME_WAY if score >= near else Closeness.NOTHING_NEAR


@dataclass(frozen=True, slots=True)
class Calibration:
    """The limits that labelled questions give, and the area under the ROC curve of the score on them."""

    close: float
    near: float
    area: float


def calibrated(answered: Sequence[float], unanswered: Sequence[float]) -> Calibration:
    """The limits by which few of ``answered`` have nothing near (``LOST``) and few others a close one (``MISTAKEN``).

    The scores of neither kind may be empty.
    """
    near = sorted(answered)[math.floor(LOST * len(answered))]
    others = sorted(unanswered, reverse=True)
    close = math.nextafter(others[math.floor(MISTAKEN * len(others))], math.inf)
    return Calibration(max(close, near), near, area_under_roc(answered, unanswered) or 0.0)
