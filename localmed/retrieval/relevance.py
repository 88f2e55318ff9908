"""The starter relevance judge (LINS, PRA, without a model): may this passage answer the question? A probability.

Three features of a passage: its cosine similarity to the question, the share of the question's weight (inverse document
frequency; a word the library has never seen weighs most) that it holds, and MaxSim's score, where that reranked it.
What is judged on: questions about guidelines and the starter corpus, PubMedQA and MedQuAD with half of their subjects
taken out (tests/benchmarks/calibrate_relevance.py; error rates in RESULTS.md). The sets disagree: plain questions about
a guideline share few words with it, while a removed disease leaves relatives that share nearly all. The weights are a
compromise: a question about a disease whose close relative is in the library is often answered from the relative, under
its own title, and many a plain question is refused.

Chinese questions have no similarity on ``starter``; they are judged by the share of their weight alone, against another
threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

from localmed.clinical.qualifiers import qualifiers
from localmed.domain import Hit, Passage
from localmed.language import content_words, question_words
from localmed.library.lexical import LexicalIndex

# Weights of similarity, coverage and MaxSim's score, and the intercept (tests/benchmarks/calibrate_relevance.py).
RERANKED = (7.0, 2.8, 7.0, -10.7)
FOUND = (19.02, 1.88, 0.0, -14.10)  # where MaxSim has not read the passage
# What says how much, how long or of whom in general: hardly a source names it in those words.
MANNER = frozenset(("daily", "weekly", "long", "often", "much", "many", "given", "treated", "used", "right", "line",
                    "first", "patient", "patients", "need", "should", "allowed", "患者", "病人", "每天"))  # fmt: skip
MAXSIM = "MaxSim"  # what the name of the reranker begins with whose scores the weights know


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


def relevance(
    question: Question, hits: Sequence[Hit], index: LexicalIndex, dense: bool, reranker: str = ""
) -> tuple[float, ...]:
    """The probability (0 to 1) that each of ``hits`` holds an answer; for lexical-only search its coverage instead.

    ``reranker`` is the name of the one that scored the hits ("": none did).
    """
    known = reranker.startswith(MAXSIM)
    return tuple(_probability(question, hit, index, dense, known) for hit in hits)


def _probability(question: Question, hit: Hit, index: LexicalIndex, dense: bool, reranked: bool) -> float:
    if not question.weights:
        return 0.0
    coverage = question.coverage(index.analyse(searched_text(hit.passage)))
    if not dense:
        return coverage
    score = hit.rerank_score if reranked else None
    similarity, covered, read, intercept = FOUND if score is None else RERANKED
    return 1.0 / (
        1.0 + exp(-(similarity * (hit.similarity or 0.0) + covered * coverage + read * (score or 0.0) + intercept))
    )


def unnamed(question: str, hits: Sequence[Hit], index: LexicalIndex, most: int) -> tuple[str, ...]:
    """The words of ``question`` that none of ``hits`` holds, rarest first, at most ``most`` of them."""
    held = {term for hit in hits for term in index.analyse(searched_text(hit.passage))}
    content = (word for word in dict.fromkeys(content_words(question)) if word not in MANNER)
    terms = {word: index.analyse(word, for_query=True) for word in content}
    named = {name for hit in hits for name in qualifiers(searched_text(hit.passage))}
    missing = [word for word, parts in terms.items() if parts and held.isdisjoint(parts)]
    missing = [word for word in missing if not named.intersection(qualifiers(word))]  # pregnant, in pregnancy
    return tuple(sorted(missing, key=lambda word: -max(index.rarity(terms[word])))[:most])


def searched_text(passage: Passage) -> str:
    """All the words of a passage that are searched: title, headings, text."""
    return " ".join((passage.title, *passage.headings, passage.text))
