"""Likeness of a text to sentences on suicide, for wordings that ``safety_rules`` lacks.

A linear score over the text's words and pairs of words (Chinese: runs of one to three characters) and, in English, the
vector of multilingual-e5-small. Its weights were fitted (``tests/benchmarks/train_safety.py``) on our own sentences,
``tests/benchmarks/safety_sentences.toml``, indirect wordings against what only sounds like them. With another
encoder English is scored by words alone; a Chinese text never loads the encoder.

The whole text and each sentence are scored, since one sentence of a long complaint may count. It errs on the side of
the message; ``safety_rules`` has the error rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.answering.asking import QuestionInput
from localmed.domain.ports import Embedder
from localmed.safety.safety import READ, SafetyInput, Screening
from localmed.text.language import sentences, terms

Floats = npt.NDArray[np.float64]

WEIGHTS = Path(__file__).with_name("safety_likeness.npz")
SENTENCES = 8  # the last ones are scored each for itself, at the cost of a question each: what is asked for ends a text
FITTED = ("en", "en_words", "zh")  # English with the encoder's vector and without, Chinese
PARTS = ("terms", "encoder", "by_term", "by_meaning", "bias", "bounds", "by_pair", "centre")


@dataclass(frozen=True, slots=True)
class Weights:
    """Of K scores; here two: the message is due (to a patient), and the writer speaks of themselves (disclosure).

    ``terms``: term -> row of ``by_term`` (T, K); ``by_meaning`` (D, K), D = 0 without an encoder; ``bias`` (K,).
    ``bounds`` (K,): a score above its bound counts. ``encoder`` is the slug of the one that was fitted, "" for none.
    ``by_pair`` (D, D) weighs the products of two places of a vector without its ``centre`` (D,); (0, 0) for none.
    """

    terms: Mapping[str, int]
    by_term: Floats
    by_meaning: Floats
    bias: Floats
    bounds: Floats
    encoder: str
    by_pair: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    centre: Floats = field(default_factory=lambda: np.zeros(0))

    def knows(self, text: str, language: str) -> bool:
        """Whether the weights have a word of ``text``: a vector alone says too little about "x"."""
        return any(term in self.terms for term in terms(text, language))

    def scores(self, texts: list[str], language: str, vectors: Floats) -> Floats:
        """The scores above their bounds, (N, K), of ``texts`` with their ``vectors`` (N, D)."""
        scores: Floats = vectors @ self.by_meaning + self.bias - self.bounds
        if self.by_pair.size:
            centred = vectors - self.centre
            scores += np.sum((centred @ self.by_pair) * centred, axis=1, keepdims=True)
        for row, text in enumerate(texts):
            held = terms(text, language)
            known = [self.terms[term] for term in held if term in self.terms]
            scores[row] += np.sum(self.by_term[known], axis=0) / sqrt(len(held) or 1)
        return scores


def stored(weights: Mapping[str, Weights]) -> dict[str, Any]:
    """The arrays of an ``.npz`` that ``loaded`` reads."""
    arrays: dict[str, Any] = {}
    for name, fitted in weights.items():
        arrays |= {f"{name}.terms": np.array("\n".join(fitted.terms)), f"{name}.encoder": np.array(fitted.encoder)}
        arrays |= {f"{name}.by_term": fitted.by_term.astype(np.float16), f"{name}.bias": fitted.bias}
        arrays |= {f"{name}.by_meaning": fitted.by_meaning.astype(np.float32), f"{name}.bounds": fitted.bounds}
        arrays |= {f"{name}.by_pair": fitted.by_pair.astype(np.float16), f"{name}.centre": fitted.centre}
    return arrays


@cache
def loaded(path: Path = WEIGHTS, names: tuple[str, ...] = FITTED) -> Mapping[str, Weights]:
    """The weights of an ``.npz`` of the package, by name."""
    with np.load(path, allow_pickle=False) as kept:
        there = set(kept.files)
        return {
            name: _weights({part: kept[f"{name}.{part}"] for part in PARTS if f"{name}.{part}" in there})
            for name in names
        }


def _weights(kept: Mapping[str, npt.NDArray[Any]]) -> Weights:
    numbers = {part: kept[part].astype(np.float64) for part in PARTS[2:] if part in kept}
    names = {term: row for row, term in enumerate(str(kept["terms"]).split("\n"))}
    return Weights(terms=names, encoder=str(kept["encoder"]), **numbers)


def likened(encoder: Embedder, task: SafetyInput) -> Screening:
    """The role ``safety_likeness``: for a patient both scores count, for staff only disclosure."""
    texts, language = _pieces(task.question[-READ:], 2), task.language
    weights = loaded()[language]
    if not any(weights.knows(text, language) for text in texts):
        return Screening()
    vectors: Floats = np.zeros((len(texts), 0))
    if weights.encoder and weights.encoder == encoder.identity.slug:
        vectors = encoder.encode(texts, "query").astype(np.float64)
    elif weights.encoder:
        weights = loaded()[f"{language}_words"]
    due, disclosed = weights.scores(texts, language, vectors).max(axis=0)
    if disclosed > 0:
        return Screening("disclosure", subject=True)
    return Screening("means", subject=True) if due > 0 and task.audience == "patient" else Screening()


def _pieces(text: str, least: int) -> list[str]:
    """The text, and its last sentences if it has at least ``least``."""
    pieces = [text[start:end] for start, end in sentences(text)]
    return [text, *pieces[-SENTENCES:]] if len(pieces) >= least else [text]


# --- emergencies ------------------------------------------------------------------------------------------------------

# How like a complaint is to emergencies in patients' words: what the table of red flags has no wording for. The same
# score, of one number a language, always with the vector. Its weights were fitted on complaints of our own and on
# development cases (``tests/benchmarks/train_emergencies.py``). It can only add to what the table reads, never take
# away; what it adds is told as "not sure".

EMERGENCIES = Path(__file__).with_name("emergency_likeness.npz")
LANGUAGES = ("en", "zh")
SCORED = 4_000  # characters of a complaint
WHOLE = 300  # characters up to which a complaint is scored as a whole only, as the ones that it was fitted on


def like_emergency(encoder: Embedder, task: QuestionInput) -> bool:
    """The role ``emergency_likeness``: whether the complaint, or a sentence of a long one, scores above the bound.

    With another encoder than the one that was fitted it says no.
    """
    weights, complaint = loaded(EMERGENCIES, LANGUAGES)[task.language], task.question[:SCORED]
    pieces = _pieces(complaint, 1) if len(complaint) > WHOLE else [complaint]
    texts = [text for text in pieces if weights.knows(text, task.language)]
    if not texts or weights.encoder != encoder.identity.slug:
        return False
    vectors = encoder.encode(texts, "query").astype(np.float64)
    return bool(weights.scores(texts, task.language, vectors).max() > 0)
