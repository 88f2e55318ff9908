"""How near two spellings are: by typing errors, after as many right letters, and never from one prefix to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spellchecker import SpellChecker

LEAST, TWO = 6, 9  # letters of a word that may have one typing error, and two
# What says something else by a letter or two: "hyperthyroidism" is no misspelt "hypothyroidism".
_PREFIXES = ("hyper", "hypo", "macro", "micro", "intra", "inter", "infra", "ante", "anti", "peri", "pre", "endo", "epi")


def allowed(word: str) -> int:
    """The number of typing errors allowed in ``word``."""
    return 0 if len(word) < LEAST else 1 if len(word) < TWO else 2


def is_english(word: str) -> bool:
    """Whether ``word`` is an English word ("starving") and so no misspelling."""
    return word in _english()


@cache
def _english() -> SpellChecker:
    from spellchecker import SpellChecker  # lazily: its list takes 0.2 s

    return SpellChecker(language="en")


def is_near(word: str, other: str) -> bool:
    """Whether ``word`` may be a misspelt ``other``."""
    if abs(len(word) - len(other)) > allowed(word):
        return False
    prefixes = [next((one for one in _PREFIXES if it.startswith(one)), "") for it in (word, other)]
    if prefixes[0] != prefixes[1] and "" not in prefixes:
        return False
    count = errors(word, other)
    first = word[:count] == other[:count] or word[:2] == other[1::-1]
    return first and count <= allowed(word)


def errors(word: str, other: str) -> int:
    """The edit distance with transpositions (Damerau 1964, Levenshtein 1966)."""
    before, last = list[int](), list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        this = [row]
        for column, its in enumerate(other, 1):
            this.append(min(last[column] + 1, this[-1] + 1, last[column - 1] + (letter != its)))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == its:
                this[-1] = min(this[-1], before[column - 2] + 1)
        before, last = last, this
    return last[-1]


def shapes(word: str) -> set[str]:
    """``word``, and ``word`` without each letter: two words one error apart share one of these."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def by_shape(names: Iterable[str]) -> Mapping[str, list[str]]:
    """``names`` by their shapes, to find those one error away without comparing all."""
    found: dict[str, list[str]] = {}
    for name in names:
        for shape in shapes(name):
            found.setdefault(shape, []).append(name)
    return found
