"""Hybrid search over one open library: dense and lexical candidates, fused.

Dense search takes part only when the question's language is one the encoder knows; otherwise search is lexical and
says so. Any text is a valid question: one without a single searchable word finds nothing, which is not an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed import language
from localmed.config import SearchSettings
from localmed.domain import Hit, SearchFilter
from localmed.library.library import Library
from localmed.ports import Embedder, Reranker
from localmed.retrieval.fusion import fuse


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, whether dense search took part, the question's language, and who reranked the hits ("": nobody)."""

    hits: tuple[Hit, ...]
    dense: bool
    language: str
    reranker: str = ""


class HybridSearch:
    """One-method search; holds nothing of one question for the next."""

    def __init__(
        self, library: Library, encoder: Embedder, settings: SearchSettings, reranker: Reranker | None = None
    ) -> None:
        """Search ``library``, whose vectors must be ``encoder``'s (raise ``WrongEncoder`` if not)."""
        library.require(encoder.identity)
        self._library, self._encoder, self._settings, self._reranker = library, encoder, settings, reranker

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
        )
        if not self._reranker or not use_dense:
            return Found(self._hits(fused[:limit], lexical, dense), use_dense, spoken)
        hits = self._reranked(asked, self._hits(fused[: max(limit, settings.rerank)], lexical, dense))
        return Found(hits[:limit], use_dense, spoken, self._reranker.name)

    def _reranked(self, asked: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """The first ``rerank`` hits in the reranker's order, the others after them as they were."""
        assert self._reranker
        first, rest = hits[: self._settings.rerank], hits[self._settings.rerank :]
        scores = self._reranker.score(asked, [hit.passage.in_context for hit in first])
        scored = [replace(hit, rerank_score=float(score)) for hit, score in zip(first, scores, strict=True)]
        return (*sorted(scored, key=lambda hit: -(hit.rerank_score or 0.0)), *rest)

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
