"""Hybrid search over one open library: dense and lexical candidates, fused.

Dense search takes part only when the question's language is one the encoder knows; otherwise search is lexical and
says so. Any text is a valid question: one without a single searchable word finds nothing, which is not an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from localmed import language
from localmed.config import SearchSettings
from localmed.domain import Hit, SearchFilter
from localmed.library.library import Library
from localmed.ports import Embedder
from localmed.retrieval.fusion import fuse


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, whether dense search took part, and the question's language."""

    hits: tuple[Hit, ...]
    dense: bool
    language: str


class HybridSearch:
    """One-method search; holds nothing of one question for the next."""

    def __init__(self, library: Library, encoder: Embedder, settings: SearchSettings) -> None:
        """Search ``library``, whose vectors must be ``encoder``'s (raise ``WrongEncoder`` if not)."""
        library.require(encoder.identity)
        self._library, self._encoder, self._settings = library, encoder, settings

    def search(self, question: str, wanted: SearchFilter, limit: int) -> Found:
        """The best ``limit`` passages for ``question``, fused score descending."""
        settings = self._settings
        asked = question[: settings.query_characters]
        spoken = language.detect(asked)
        number = max(settings.candidates, limit)
        lexical = self._library.search_lexical(asked, number, wanted, settings.title_boost, settings.query_terms)
        use_dense = spoken in self._encoder.identity.languages and bool(language.words(asked))
        dense = self._dense(asked, number, wanted) if use_dense else []
        fused = fuse(
            [
                ([(passage, document) for passage, document, _ in lexical], settings.lexical_weight),
                ([(passage, document) for passage, document, _ in dense], settings.dense_weight),
            ],
            settings.rrf_k,
        )[:limit]
        return Found(self._hits(fused, lexical, dense), use_dense, spoken)

    def _dense(self, asked: str, number: int, wanted: SearchFilter) -> list[tuple[str, str, float]]:
        vector = self._encoder.encode([asked], "query")[0]
        return self._library.search_dense(vector, number, wanted)

    def _hits(
        self,
        fused: list[tuple[str, float]],
        lexical: list[tuple[str, str, float]],
        dense: list[tuple[str, str, float]],
    ) -> tuple[Hit, ...]:
        passages = self._library.passages([passage for passage, _ in fused])
        by_words = {passage: (rank, score) for rank, (passage, _, score) in enumerate(lexical)}
        by_meaning = {passage: (rank, score) for rank, (passage, _, score) in enumerate(dense)}
        hits = []
        for passage, score in fused:
            lexical_rank, lexical_score = by_words.get(passage, (-1, None))
            dense_rank, similarity = by_meaning.get(passage, (-1, None))
            hits.append(Hit(passages[passage], score, similarity, dense_rank, lexical_rank, lexical_score))
        return tuple(hits)
