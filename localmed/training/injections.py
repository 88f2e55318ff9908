"""The recipe of the likeness to text that speaks to a program (``localmed/verification/injection_likeness.py``).

Two ridge regressions a language, on kinds of words, their pairs, and words, and on these beside the encoder's vector,
solved in the examples' inner products. Each example's score without itself is known in closed form; the bound is the
score that at most ``OVER`` of the ordinary examples exceed so, and suspected is what scores above all but ``SUSPECTED``
of them. Weights too small to matter are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.verification.injection_likeness import BY_MEANING, LANGUAGES, MEANING, Weights, features

Vectors = npt.NDArray[np.float64]
PENALTY = 1.0
INJECTED_WEIGHS = 2.0  # an injected example counts against an ordinary one: there are far fewer
# Share of the ordinary examples that may score above the bound without themselves; there are fewer Chinese ones, of
# which the hard look-alikes are a larger part.
OVER: Mapping[str, float] = {"en": 0.004, "zh": 0.008}
SUSPECTED = 0.1  # of the ordinary examples: with more no further injected one was noticed
SMALLEST = 0.004  # a weight below it moves no score by a hundredth


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its language, and whether it speaks to a program."""

    text: str
    language: str
    injected: bool


def fit(examples: Sequence[Example], vectors: Vectors | None = None) -> Mapping[str, tuple[Weights, float]]:
    """The weights of each language by words, and (``BY_MEANING``) beside the ``vectors`` (N, D) of the examples.

    With each the share of its injected examples that are seen without themselves.
    """
    fitted = {}
    for language in LANGUAGES:
        places = [place for place, one in enumerate(examples) if one.language == language]
        own = [examples[place] for place in places]
        fitted[language] = _fit(own, language, np.zeros((len(own), 0)))
        if vectors is not None:
            fitted[f"{language}{BY_MEANING}"] = _fit(own, language, vectors[places])
    return fitted


def _fit(examples: Sequence[Example], language: str, vectors: Vectors) -> tuple[Weights, float]:
    rows = [features(example.text, language) for example in examples]
    names = {name: place for place, name in enumerate(sorted(set().union(*rows)))}
    values = np.zeros((len(rows), len(names)), dtype=np.float32)
    for row, held in enumerate(rows):
        for name, value in held.items():
            values[row, names[name]] = value
    injected = np.array([example.injected for example in examples])
    labels = np.where(injected, 1.0, -1.0)
    penalty = np.diag(np.where(injected, PENALTY / INJECTED_WEIGHS, PENALTY))
    centre = vectors.mean(axis=0)  # e5's vectors lie in a narrow cone: what they share says nothing
    vectors = MEANING * (vectors - centre)
    products = values.astype(np.float64) @ values.T + vectors @ vectors.T
    inverse: npt.NDArray[np.float64] = np.linalg.inv(products + 1.0 + penalty)
    dual = inverse @ labels
    alone = labels - dual / np.diag(inverse)
    bound, suspects = (float(np.quantile(alone[~injected], 1 - over)) for over in (OVER[language], SUSPECTED))
    by_name = values.T @ dual
    kept = {name: float(by_name[place]) for name, place in names.items() if abs(by_name[place]) >= SMALLEST}
    by_meaning = MEANING * (vectors.T @ dual)
    seen = float((alone[injected] > bound).mean())
    return Weights(kept, float(dual.sum() - centre @ by_meaning) - bound, by_meaning, suspects - bound), seen


def stored(fitted: Mapping[str, tuple[Weights, float]], encoder: str) -> dict[str, Any]:
    """The arrays of an ``.npz`` that ``injection_likeness.loaded`` reads; ``encoder`` is the slug of the vectors'."""
    arrays: dict[str, Any] = {"encoder": np.array(encoder)}
    for name, (weights, _) in fitted.items():
        arrays[f"{name}.names"] = np.array("\n".join(weights.by_feature))
        arrays[f"{name}.weights"] = np.array(list(weights.by_feature.values()), dtype=np.float16)
        arrays[f"{name}.meaning"] = weights.by_meaning.astype(np.float32)
        arrays[f"{name}.bias"] = np.array(weights.bias)
        arrays[f"{name}.suspects"] = np.array(weights.suspects)
    return arrays
