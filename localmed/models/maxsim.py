"""Late interaction over the starter encoder: MaxSim of ColBERT (Khattab & Zaharia 2020; Dual-RAG's second stage).

Each word piece of the question (punctuation and the model's marks left out) looks for the piece of the passage nearest
to it; the passage scores the mean of those similarities. The encoder was not trained for it, yet its pieces tell
symptoms from causes of the same disease where one vector a passage does not (tests/benchmarks/RESULTS.md). Passages
are encoded when asked, not stored: their token vectors would take a hundred times the room of their own vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from localmed.models.minilm import MiniLM

PASSAGE_PIECES = 160  # read of a passage: half the time of all 256, and no worse (tuning questions of MedQuAD)


class MaxSim:
    """``Reranker`` over a ``MiniLM``, whose owner is this one's owner."""

    def __init__(self, encoder: MiniLM) -> None:
        """Share ``encoder``'s weights."""
        self._encoder = encoder

    @property
    def name(self) -> str:
        """The encoder's name and version, and how much of a passage is read."""
        identity = self._encoder.identity
        return f"MaxSim over {identity.name} {identity.version}, {PASSAGE_PIECES} pieces"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``: from -1 to 1."""
        if not passages:
            return []
        first, *others = self._encoder.pieces([question, *passages])
        question_vectors, *read = self._encoder.token_vectors([first, *(other[:PASSAGE_PIECES] for other in others)])
        words = self._encoder.words(first)
        chosen = question_vectors[words] if any(words) else question_vectors
        return [float((chosen @ vectors.T).max(dim=1).values.float().mean()) for vectors in read]
