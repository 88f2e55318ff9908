"""The starter relevance judge: does the library hold an answer to this question? A calibrated probability, no model.

Three features of the best passages: the highest cosine similarity to the question; how rare the rarest word of the
question is that the passage lacks (a question about a disease that no passage names has one missing word of full
weight); and the share of the question's adjacent word pairs that the passage has, by weight. A logistic function of
them was fitted on 1,000 MedQuAD questions over a library from which half of the subjects had been removed; on another
1,000 its area under the ROC curve is 0.886 (tests/benchmarks/RESULTS.md has the error rates at the thresholds).

Chinese questions have no similarity on ``starter``; they are judged by the weighted share of their character pairs that
the passage holds, with a threshold of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from localmed.domain import Hit
from localmed.language import question_words
from localmed.library.lexical import LexicalIndex

# Fitted by tests/benchmarks/calibrate_relevance.py; the command and the data are in RESULTS.md.
SIMILARITY, MISSING, PAIRS, INTERCEPT = 11.87, -3.50, 1.90, -8.72


@dataclass(frozen=True, slots=True)
class Question:
    """A question's index terms in order, and the weight (inverse document frequency) of each."""

    terms: tuple[str, ...]
    weights: dict[str, float]
    heaviest: float

    def coverage(self, words: Iterable[str]) -> float:
        """The share of the question's weight that ``words`` hold; 0 for a question without words."""
        total = sum(self.weights.values())
        have = set(words)
        return sum(weight for term, weight in self.weights.items() if term in have) / total if total else 0.0

    def missing(self, words: Iterable[str]) -> float:
        """The weight of the heaviest term that ``words`` lack, as a share of the heaviest there can be."""
        have = set(words)
        return max((weight for term, weight in self.weights.items() if term not in have), default=0.0) / self.heaviest

    def pairs(self, words: Sequence[str]) -> float:
        """The weighted share of the question's adjacent pairs that stand side by side in ``words``."""
        wanted = {pair: self.weights[pair[0]] + self.weights[pair[1]] for pair in pairwise(self.terms)}
        if not wanted:
            return self.coverage(words)
        have = set(pairwise(words))
        return sum(weight for pair, weight in wanted.items() if pair in have) / sum(wanted.values())


def weigh(question: str, index: LexicalIndex) -> Question:
    """The terms of ``question`` as ``index`` weighs them; a word the index has never seen weighs most."""
    terms = tuple(index.analyse(" ".join(question_words(question)), for_query=True))
    distinct = list(dict.fromkeys(terms))
    heaviest = log(1 + (len(index) + 0.5) / 0.5)
    return Question(terms, dict(zip(distinct, index.rarity(distinct), strict=True)), heaviest)


def relevance(question: Question, hits: Sequence[Hit], index: LexicalIndex, dense: bool) -> float:
    """The probability (0 to 1) that ``hits`` hold an answer; for lexical-only search the best coverage instead."""
    if not hits or not question.terms:
        return 0.0
    read = [index.analyse(" ".join((hit.passage.title, *hit.passage.headings, hit.passage.text))) for hit in hits]
    if not dense:
        return max(question.coverage(words) for words in read)
    best = max(read, key=question.coverage)
    similarity = max((hit.similarity or 0.0 for hit in hits), default=0.0)
    logit = SIMILARITY * similarity + MISSING * question.missing(best) + PAIRS * question.pairs(best) + INTERCEPT
    return 1.0 / (1.0 + exp(-logit))
