"""Keyword extraction degradation (LINS, Methods, "Keyword extraction degradation algorithm"), and keywords by rule.

Every keyword is a restriction: a passage must hold them all. A long question leaves nothing that does, so the least
important keyword is dropped until something is found. The caller hands in the keywords, most important first; where
even the first alone is nowhere (under the filter in force), it is dropped in its turn and the others are tried, so that
the result is empty only if no keyword occurs at all.

Without a model the keywords are n-grams of the question (one to three words, no stop word at an edge; in Chinese the
dictionary's words), ranked by how rare their words are in the library and how near they are to the whole question.
Words are taken together where the library does so ("septic shock", but not "symptoms of sepsis"), and no word stands in
two keywords, so that dropping one keyword drops one restriction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from localmed.domain.findings import KeywordStep
from localmed.text import language

Rows = list[tuple[str, str, float]]  # (passage id, document id, score), best first

LONGEST = 3  # words of an n-gram; "type 2 diabetes", "shortness of breath"
_BREAK = re.compile(r"[.?!](?=\s|$)|[,;:()\[\]\"，。；：？！、（）]")  # no n-gram runs over these


# Share of the rarest word's passages that hold the phrase. In MedQuAD names have 0.15 ("type 2 diabetes") to 0.75
# ("blood pressure"), chance neighbours up to 0.07 ("liver failure", "symptoms of sepsis").
BOUND = 0.12


@dataclass(frozen=True, slots=True)
class NGram:
    """A keyword to be: its index ``terms``, their mean ``rarity`` and its ``similarity`` to the question."""

    text: str
    terms: tuple[str, ...]
    rarity: float
    similarity: float = 0.0


def degrade(keywords: Sequence[str], search: Callable[[Sequence[str]], Rows]) -> tuple[Rows, tuple[KeywordStep, ...]]:
    """What ``search`` finds for as many of ``keywords`` (most important first) as find anything; and every step."""
    steps: list[KeywordStep] = []
    for first in range(len(keywords)):
        for last in range(len(keywords), first, -1):
            rows = search(keywords[first:last])
            steps.append(KeywordStep(last - first, len(rows)))
            if rows:
                return rows, tuple(steps)
    return [], tuple(steps)


def candidates(question: str) -> list[str]:
    """The n-grams of ``question`` that may be keywords, each once, in order."""
    if language.detect(question) == "zh":
        return list(dict.fromkeys(language.content_words(question)))
    content = frozenset(language.content_words(question))
    grams: dict[str, None] = {}
    for piece in _BREAK.split(question):
        words = language.words(piece, for_query=True)
        for start, word in enumerate(words):
            ends = range(start + 1, min(start + LONGEST, len(words)) + 1) if word in content else ()
            grams.update((" ".join(words[start:end]), None) for end in ends if words[end - 1] in content)
    return list(grams)


def outermost(grams: Iterable[NGram], most: int) -> list[NGram]:
    """The n-grams that are not part of another one; of more than ``most`` the rarest."""
    by_length = sorted(grams, key=lambda gram: -len(gram.terms))
    kept: list[NGram] = []
    for gram in by_length:
        if not any(set(gram.terms) <= set(other.terms) for other in kept):
            kept.append(gram)
    return sorted(kept, key=lambda gram: -gram.rarity)[:most]


def ranked(grams: Sequence[NGram], most: int) -> tuple[str, ...]:
    """At most ``most`` keywords, most important first, no index term in two of them."""
    rarity = max((gram.rarity for gram in grams), default=0.0) or 1.0
    near = max((gram.similarity for gram in grams), default=0.0)
    chosen: list[NGram] = []
    for gram in sorted(grams, key=lambda gram: -(gram.rarity / rarity + (gram.similarity / near if near > 0 else 0.0))):
        if not any(set(gram.terms) & set(other.terms) for other in chosen):
            chosen.append(gram)
    return tuple(gram.text for gram in chosen[:most])
