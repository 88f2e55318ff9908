"""An ``Embedder`` without a model: texts that share words are near each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from localmed.language import question_words
from localmed.ports import EncoderIdentity

DIMENSIONS = 64


class WordEmbedder:
    """The sum of one random direction a word, length one; counts what it was asked."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    @property
    def identity(self) -> EncoderIdentity:
        return EncoderIdentity("words", "1", DIMENSIONS, ("en",))

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
        self.encoded.extend(texts)
        vectors = np.stack([_direction("")] * len(texts)) * 1e-3
        for row, text in enumerate(texts):
            for word in set(question_words(text)):
                vectors[row] += _direction(word)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(unit, np.float32)


def _direction(word: str) -> npt.NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    return np.random.default_rng(seed).standard_normal(DIMENSIONS)
