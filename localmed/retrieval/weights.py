"""A text's share of a question's index terms, weighted by their rarity in the library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from localmed.domain import Passage
from localmed.library.lexical import LexicalIndex
from localmed.text.language import question_words


@dataclass(frozen=True, slots=True)
class Question:
    """The weight (inverse document frequency) of each of a question's index terms."""

    weights: dict[str, float]

    def coverage(self, words: Iterable[str]) -> float:
        """The weighted share of the question's terms in ``words``; 0 for a question without terms."""
        total = sum(self.weights.values())
        have = set(words)
        return sum(weight for term, weight in self.weights.items() if term in have) / total if total else 0.0


def weigh(question: str, index: LexicalIndex) -> Question:
    """The terms of ``question`` with their rarity; an unknown word weighs most."""
    return of_terms(" ".join(question_words(question)), index)


def of_terms(text: str, index: LexicalIndex) -> Question:
    """All search terms of ``text`` with their rarity."""
    terms = list(dict.fromkeys(index.analyse(text, for_query=True)))
    return Question(dict(zip(terms, index.rarity(terms), strict=True)))


def searched_text(passage: Passage) -> str:
    """The searched text of a passage: title, headings, text."""
    return " ".join((passage.title, *passage.headings, passage.text))
