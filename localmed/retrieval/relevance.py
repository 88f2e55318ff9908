"""The starter relevance judge: does the library hold an answer to this question? A calibrated probability, no model.

Two features of a passage: its cosine similarity to the question, and the share of the question's weight (inverse
document frequency; a word the library has never seen weighs most) that it holds. A logistic function of the highest of
each among the best passages was fitted on questions from MedQuAD and PubMedQA, over libraries from which half of the
subjects or abstracts had been removed, so that half of the questions had no answer
(tests/benchmarks/calibrate_relevance.py; error rates in RESULTS.md). What it cannot tell: a question about a disease
whose close relative is in the library.

Chinese questions have no similarity on ``starter``; they are judged by the share of their weight alone, against another
threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from localmed.domain import Hit, Passage
from localmed.language import question_words
from localmed.library.lexical import LexicalIndex

# Fitted by tests/benchmarks/calibrate_relevance.py; the command and the data are in RESULTS.md.
SIMILARITY, COVERAGE, INTERCEPT = 19.02, 1.88, -14.10


@dataclass(frozen=True, slots=True)
class Question:
    """The weight (inverse document frequency) of each of a question's index terms."""

    weights: dict[str, float]

    def coverage(self, words: Iterable[str]) -> float:
        """The share of the question's weight that ``words`` hold; 0 for a question without words."""
        total = sum(self.weights.values())
        have = set(words)
        return sum(weight for term, weight in self.weights.items() if term in have) / total if total else 0.0


def weigh(question: str, index: LexicalIndex) -> Question:
    """The terms of ``question`` as ``index`` weighs them; a word the index has never seen weighs most."""
    terms = list(dict.fromkeys(index.analyse(" ".join(question_words(question)), for_query=True)))
    return Question(dict(zip(terms, index.rarity(terms), strict=True)))


def relevance(question: Question, hits: Sequence[Hit], index: LexicalIndex, dense: bool) -> tuple[float, ...]:
    """The probability (0 to 1) that each of ``hits`` holds an answer; for lexical-only search its coverage instead."""
    return tuple(
        _probability(*features, dense) if question.weights else 0.0 for features in _features(question, hits, index)
    )


def together(question: Question, hits: Sequence[Hit], index: LexicalIndex, dense: bool) -> float:
    """The same of all ``hits`` as one: the highest similarity and the best coverage, be it of another passage."""
    if not hits or not question.weights:
        return 0.0
    similarities, coverages = zip(*_features(question, hits, index), strict=True)
    return _probability(max(similarities), max(coverages), dense)


def _features(question: Question, hits: Sequence[Hit], index: LexicalIndex) -> list[tuple[float, float]]:
    """Similarity and coverage of each hit."""
    return [(hit.similarity or 0.0, question.coverage(index.analyse(searched_text(hit.passage)))) for hit in hits]


def _probability(similarity: float, coverage: float, dense: bool) -> float:
    if not dense:
        return coverage
    return 1.0 / (1.0 + exp(-(SIMILARITY * similarity + COVERAGE * coverage + INTERCEPT)))


def searched_text(passage: Passage) -> str:
    """All the words of a passage that are searched: title, headings, text."""
    return " ".join((passage.title, *passage.headings, passage.text))
