"""How like a sentence is to ones that speak to whoever answers from a document by program: what no wording rule knows.

A linear score over the kinds of words that stand together in it (``clinical/injection.toml``: who is spoken to, what it
is to say, what it is to set aside), pairs of kinds, and its words and pairs of words (Chinese: runs of one to three
characters). Its weights were fitted (``localmed/training/injections.py``); above zero a sentence counts. No encoder is
asked: e5's vector added 1 of 50 English and 1 of 30 Chinese wordings at the same share of false alarms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from math import sqrt
from pathlib import Path

import numpy as np

from localmed.clinical.tables import in_characters, in_words, listed, table
from localmed.language import HAN, detect, fold

WEIGHTS = Path(__file__).with_name("injection_likeness.npz")
LANGUAGES = ("en", "zh")
LONGEST_RUN = 3  # Chinese characters
LEAST = 8  # characters; a heading or a cell of a table speaks to nobody
KINDS, WORDS = 1.0, 1.4  # weights of the two sorts of features
_WORD = re.compile(r"[a-z']+")
_RUN = re.compile(f"[{HAN}]+")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each feature by its name, and the ``bias``, its bound taken off."""

    by_feature: Mapping[str, float]
    bias: float


def spoken_to_a_program(sentence: str) -> bool:
    """Whether ``sentence`` scores above the bound of its language."""
    language = detect(sentence)
    if len(sentence) < LEAST or language not in LANGUAGES:
        return False
    weights = loaded()[language]
    values = features(sentence, language).items()
    return weights.bias + sum(value * weights.by_feature.get(name, 0.0) for name, value in values) > 0


def features(sentence: str, language: str) -> dict[str, float]:
    """The features of ``sentence`` by name: kinds, pairs of kinds, words."""
    folded = fold(sentence)
    kinds = [name for name, pattern in _kinds() if pattern.search(folded)]
    named = [f"[{name}]" for name in (*kinds, *(f"{one}+{other}" for one, other in combinations(kinds, 2)))]
    terms = _terms(folded, language)
    of_kinds = dict.fromkeys(named, KINDS / sqrt(4 + len(kinds)))
    return of_kinds | dict.fromkeys(terms, WORDS / sqrt(len(terms) or 1))


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _pattern(entry)) for name, entry in table("injection").items() if isinstance(entry, dict))


def _pattern(entry: Mapping[str, str]) -> re.Pattern[str]:
    english = listed(entry["en"])
    words = ", ".join(word for word in english if word[0].isalnum())
    signs = [re.escape(sign) for sign in english if not sign[0].isalnum()]
    parts = [*([rf"(?<![a-z])(?:{in_words(words)})"] if words else []), *signs, in_characters(entry["zh"])]
    return re.compile("|".join(parts))


def _terms(folded: str, language: str) -> frozenset[str]:
    """The words of an English sentence and their pairs; the runs of one to three characters of a Chinese one."""
    if language == "en":
        words = _WORD.findall(folded.replace("’", "'"))
        return frozenset(words) | set(map(" ".join, pairwise(words)))
    return frozenset(
        run[start : start + length]
        for run in _RUN.findall(folded)
        for length in range(1, LONGEST_RUN + 1)
        for start in range(len(run) - length + 1)
    )


@cache
def loaded(path: Path = WEIGHTS) -> Mapping[str, Weights]:
    """The weights that come with the package, by language."""
    with np.load(path, allow_pickle=False) as kept:
        return {
            language: Weights(
                dict(
                    zip(
                        str(kept[f"{language}.names"]).split("\n"), map(float, kept[f"{language}.weights"]), strict=True
                    )
                ),
                float(kept[f"{language}.bias"]),
            )
            for language in LANGUAGES
        }
