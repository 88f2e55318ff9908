"""Reranking: the first passages that fusion found are read again with the question, and put in a new order.

The order is by the reranker's score together with the lexical and the fused one, each made comparable over the passages
at hand (mean 0, deviation 1). The lexical score is what a reranker by meaning lacks: rare words that are the same. The
weights were chosen on MedQuAD's tuning questions (tests/benchmarks/RESULTS.md). A passage that has a phrase of the
question word for word stays at least where words ranked it. Passages further down keep their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from localmed.config import SearchSettings
from localmed.domain import Hit
from localmed.language import question_words, words
from localmed.ports import Reranker

PHRASE = 5  # words (pairs of Chinese characters) in a row that a passage has as the question has them
CONTENT = 3  # of them at least are no filler


def rerank(question: str, hits: Sequence[Hit], reranker: Reranker, settings: SearchSettings) -> tuple[Hit, ...]:
    """``hits`` with the first ``settings.rerank`` ones in their new order.

    A passage that the lexical search did not find counts as the lowest one that it did.
    """
    read, rest = hits[: settings.rerank], hits[settings.rerank :]
    scores = list(reranker.score(question, [hit.passage.in_context for hit in read], keep=True))
    parts = (
        (1.0, scores),
        (settings.rerank_lexical_weight, _lexical(read)),
        (settings.rerank_fused_weight, [hit.score for hit in read]),
    )
    order = _kept(best_first(parts), [_verbatim_rank(question, hit) for hit in read])
    return (*(replace(read[place], rerank_score=float(scores[place])) for place in order), *rest)


def best_first(parts: Sequence[tuple[float, Sequence[float]]]) -> list[int]:
    """The places by the sum of weighted scores, each made comparable; equal ones stay as they were."""
    weighted = [[weight * score for score in standardised(scores)] for weight, scores in parts]
    together = [sum(column) for column in zip(*weighted, strict=True)]
    return sorted(range(len(together)), key=lambda place: -together[place])


def _kept(order: Sequence[int], most: Sequence[int | None]) -> list[int]:
    """``order`` where no place stands further down than its entry in ``most`` allows; None allows all."""
    kept = list(order)
    for place in sorted(order, key=lambda place: (most[place] is None, most[place] or 0)):
        allowed = most[place]
        if allowed is not None and kept.index(place) > allowed:
            kept.remove(place)
            kept.insert(allowed, place)
    return kept


def _verbatim_rank(question: str, hit: Hit) -> int | None:
    """The lexical rank of a passage that has a phrase of ``question`` word for word; None of any other."""
    if hit.lexical_rank < 0:
        return None
    terms, content = words(question, for_query=True), set(question_words(question))
    held = f" {' '.join(words(hit.passage.text, for_query=True))} "
    phrases = (terms[at : at + PHRASE] for at in range(len(terms) - PHRASE + 1))
    verbatim = any(len(content.intersection(one)) >= CONTENT and f" {' '.join(one)} " in held for one in phrases)
    return hit.lexical_rank if verbatim else None


def _lexical(hits: Sequence[Hit]) -> list[float]:
    lowest = min((hit.lexical_score for hit in hits if hit.lexical_score is not None), default=0.0)
    return [lowest if hit.lexical_score is None else hit.lexical_score for hit in hits]


def standardised(scores: Sequence[float]) -> list[float]:
    """``scores`` with mean 0 and standard deviation 1; all 0 where they are equal."""
    if not scores:
        return []
    mean, deviation = fmean(scores), pstdev(scores)
    return [(score - mean) / deviation if deviation else 0.0 for score in scores]
