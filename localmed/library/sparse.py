"""The sparse index: learned token weights (BGE-M3's lexical retrieval; Chen et al. 2024) in a Tantivy index of its own.

Weights are stored in steps of 1/64, so each is off by at most 1/128. A passage is the terms ``token_steps`` of its
tokens. A question looks up each token with all occurring steps and scores each hit by a constant, the question's weight
times the steps': the sum is exactly the dot product of the question's weights with the stored ones.

Only generations of a sparse encoder have this folder. It is immutable once written and shared by hard link.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tantivy

from localmed.domain import Passage, SearchFilter
from localmed.library.tantivy_index import TantivyIndex, Writer, raw_fields, raw_values

if TYPE_CHECKING:
    from localmed.domain.ports import Weights

STEP = 1 / 64  # of a weight; BGE-M3's lie between 0 and 0.6, mostly
MOST_STEPS = 255  # a weight above 4 counts as 4
MOST_TOKENS = 64  # of a question, about 50 words; each is looked up with every weight it is stored with
FIELD = "weights"


class SparseIndex(TantivyIndex):
    """One index folder, opened for reading; ``writer`` opens it for writing (in a generation being built)."""

    def __init__(self, folder: Path, within: Sequence[str] | None = None, make: bool = False) -> None:
        """Open the index in ``folder``; with ``make``, create an empty one if the folder is empty."""
        builder = tantivy.SchemaBuilder()
        raw_fields(builder)
        builder.add_text_field(FIELD, tokenizer_name="whitespace", index_option="basic")
        super().__init__("sparse", folder, builder.build(), within, make)

    def writer(self, memory: int) -> SparseWriter:
        """Return a writer with a heap of ``memory`` bytes; raise ``Busy`` if there is one already."""
        return SparseWriter(self._writer(memory))

    def search(self, weights: Weights, limit: int, filters: SearchFilter) -> list[tuple[str, str, float]]:
        """Return the best ``limit`` passages with a common token as ``(id, document, dot product)``, best first.

        Only the ``MOST_TOKENS`` largest of ``weights`` count.
        """
        heaviest = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_TOKENS]
        clauses = [clause for token, weight in heaviest for clause in self._clauses(token, weight)]
        if not clauses or limit < 1:
            return []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])
        return self._best(self._limited(query, filters), limit)

    def _clauses(self, token: int, weight: float) -> list[tantivy.Query]:
        stored = self._searcher.terms_with_prefix(FIELD, f"{token}_", limit=MOST_STEPS)
        return [
            tantivy.Query.const_score_query(
                tantivy.Query.term_query(self._schema, FIELD, term, index_option="basic"),
                weight * int(term.rpartition("_")[2]) * STEP,
            )
            for term, _ in stored
        ]


class SparseWriter(Writer):
    """Adds passages with their weights."""

    def add(self, passages: Sequence[Passage], weights: Sequence[Weights]) -> None:
        """Add passages; the caller has deleted older ones of the same document."""
        for passage, token_weights in zip(passages, weights, strict=True):
            self._writer.add_document(tantivy.Document(**raw_values(passage), **{FIELD: terms(token_weights)}))


def terms(weights: Weights) -> str:
    """Convert ``{17: 0.25}`` to ``"17_16"``, the field's text; weights that round to zero are left out."""
    return " ".join(f"{token}_{number}" for token, weight in weights.items() if (number := steps(weight)))


def steps(weight: float) -> int:
    """Return a weight as a number of ``STEP``."""
    return min(round(weight / STEP), MOST_STEPS)
