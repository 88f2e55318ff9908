"""An encoder that encodes each text of a consultation once: the badge compares what the answer was chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from localmed.ports import Embedder, EncoderIdentity

if TYPE_CHECKING:
    from localmed.ports import Vectors

REMEMBERED = 512  # texts: those of a question's few roles; a vector of 384 numbers has 1.5 kB


class Remembering:
    """``Embedder`` over another. Lives as long as its consultation, so no text outlives the question it belongs to."""

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self._known: dict[tuple[str, str], Vectors] = {}

    @property
    def identity(self) -> EncoderIdentity:
        """The encoder's."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        unknown = [text for text in dict.fromkeys(texts) if (kind, text) not in self._known]
        if len(self._known) + len(unknown) > REMEMBERED:
            self._known.clear()
            unknown = list(dict.fromkeys(texts))
        if unknown:
            vectors = self._encoder.encode(unknown, kind)
            self._known |= {(kind, text): vector for text, vector in zip(unknown, vectors, strict=True)}
        found = [self._known[kind, text] for text in texts]
        return np.stack(found) if found else self._encoder.encode((), kind)
