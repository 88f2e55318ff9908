"""The recipe of the likeness to text that speaks to a program (``localmed/verification/injection_likeness.py``).

One ridge regression a language on kinds of words, their pairs, and words, solved in the examples' inner products. Each
example's score without itself is known in closed form; the bound is the score that at most ``OVER`` of the ordinary
examples exceed so. Weights too small to matter are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localmed.verification.injection_likeness import LANGUAGES, Weights, features

PENALTY = 1.0
INJECTED_WEIGHS = 2.0  # an injected example counts against an ordinary one: there are far fewer
# Share of the ordinary examples that may score above the bound without themselves; there are fewer Chinese ones, of
# which the hard look-alikes are a larger part.
OVER: Mapping[str, float] = {"en": 0.004, "zh": 0.008}
SMALLEST = 0.004  # a weight below it moves no score by a hundredth


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its language, and whether it speaks to a program."""

    text: str
    language: str
    injected: bool


def fit(examples: Sequence[Example]) -> Mapping[str, tuple[Weights, float]]:
    """The weights of each language, and the share of its injected examples that are seen without themselves."""
    return {language: _fit([one for one in examples if one.language == language], language) for language in LANGUAGES}


def _fit(examples: Sequence[Example], language: str) -> tuple[Weights, float]:
    rows = [features(example.text, language) for example in examples]
    names = {name: place for place, name in enumerate(sorted(set().union(*rows)))}
    values = np.zeros((len(rows), len(names)), dtype=np.float32)
    for row, held in enumerate(rows):
        for name, value in held.items():
            values[row, names[name]] = value
    injected = np.array([example.injected for example in examples])
    labels = np.where(injected, 1.0, -1.0)
    penalty = np.diag(np.where(injected, PENALTY / INJECTED_WEIGHS, PENALTY))
    inverse: npt.NDArray[np.float64] = np.linalg.inv(values.astype(np.float64) @ values.T + 1.0 + penalty)
    dual = inverse @ labels
    alone = labels - dual / np.diag(inverse)
    bound = float(np.quantile(alone[~injected], 1 - OVER[language]))
    by_name = values.T @ dual
    kept = {name: float(by_name[place]) for name, place in names.items() if abs(by_name[place]) >= SMALLEST}
    return Weights(kept, float(dual.sum()) - bound), float((alone[injected] > bound).mean())
