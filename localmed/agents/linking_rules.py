"""The roles of Link-Eval without a language model: references scored as passages are for an answer; no fluency."""

from __future__ import annotations

from collections.abc import Sequence

from localmed.agents.linking import FLUENCY, VALIDITY, FluencyInput, ValidityInput
from localmed.agents.roles import Rules
from localmed.domain import Hit, Passage
from localmed.language import detect
from localmed.library.lexical import LexicalIndex
from localmed.ports import Embedder, Reranker
from localmed.retrieval.relevance import fitted, judged


class LinkRules:
    """Scores references by the rules of ``retrieval.relevance``, wherever they come from."""

    def __init__(self, index: LexicalIndex, encoder: Embedder, reranker: Reranker | None) -> None:
        """``index`` weighs words; ``encoder`` and ``reranker`` compare meanings in the languages they know."""
        self._index, self._encoder, self._reranker = index, encoder, reranker

    def rules(self) -> Rules:
        """The roles it serves."""
        return {VALIDITY.name: self.validity, FLUENCY.name: not_measured}

    def validity(self, task: ValidityInput) -> tuple[float | None, ...]:
        """The probability that each reference holds an answer; None in a language that the encoder does not know.

        There words alone would be compared, and their score is on another scale than the threshold.
        """
        known = self._encoder.identity.languages
        if task.language not in known:
            return (None,) * len(task.references)
        read = [reference for reference in task.references if detect(reference.text) in known]
        scores = iter(self._scores(task.question, read) if read else ())
        return tuple(next(scores) if detect(reference.text) in known else None for reference in task.references)

    def _scores(self, question: str, references: Sequence[Passage]) -> tuple[float, ...]:
        texts = [reference.in_context for reference in references]
        vector = self._encoder.encode([question], "query")[0]
        near = self._encoder.encode(texts, "passage") @ vector
        read = self._reranker.score(question, texts) if self._reranker else [None] * len(texts)
        hits = [
            Hit(reference, 0.0, float(similarity), rerank_score=score)
            for reference, similarity, score in zip(references, near, read, strict=True)
        ]
        name = self._reranker.name if self._reranker else ""
        judge = fitted(self._encoder.identity.slug, name, detect(question))
        return tuple(probability for probability, _ in judged(question, hits, self._index, judge))


def not_measured(_: FluencyInput) -> tuple[float, ...]:
    """Nothing: rules do not see whether a sentence reads well."""
    return ()
