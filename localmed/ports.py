"""The seams: what localmed needs of a model, each a Protocol of one method. Adapters live in ``models/``.

More ports (chat model, entailment) come with the adapters that need them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which encoder made a vector. Two vectors compare only if their identities are equal.

    ``languages`` are those the encoder was trained for: a question in another language is not searched densely.
    """

    name: str
    version: str
    dimensions: int
    languages: tuple[str, ...]

    @property
    def slug(self) -> str:
        """The identity as a file name."""
        return f"{self.name}-{self.version}-{self.dimensions}".replace("/", "-")


class Embedder(Protocol):
    """A dense encoder."""

    @property
    def identity(self) -> EncoderIdentity:
        """Who this is."""
        ...

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """Unit vectors of ``texts``: float32, shape ``(len(texts), dimensions)``, in their order."""
        ...


class Reranker(Protocol):
    """Reads a question and a passage together, more closely than a search over all passages can."""

    @property
    def name(self) -> str:
        """Name and version, for an answer's provenance."""
        ...

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """One score a passage, in their order; higher is better; comparable within one call only."""
        ...


Weights = Mapping[int, float]  # token id -> weight, above 0


class SparseEncoder(Embedder, Protocol):
    """An encoder that weighs a text's tokens as well (learned sparse retrieval; BGE-M3, Chen et al. 2024)."""

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """``encode``'s vectors and each text's weights, from one pass over the texts."""
        ...
