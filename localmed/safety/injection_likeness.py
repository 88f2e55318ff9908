"""How like a sentence is to ones that speak to whoever answers from a document by program: what no wording rule knows.

A linear score over the kinds of words that stand together in it (``text/injection.toml``: who is spoken to, what it
is to say, what it is to set aside), pairs of kinds, and its words and pairs of words (Chinese: runs of one to three
characters). It only suspects, a tenth of ordinary sentences: alone it was wrong about one guideline sentence in 200. A
second score adds the vector of multilingual-e5-small and decides; without that encoder nothing does. The weights were
fitted (``tests/benchmarks/train_injections.py``); a sentence counts from ``MARGIN`` above their bound on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from localmed.domain.ports import Embedder
from localmed.text.language import HAN, detect, fold
from localmed.text.tables import in_characters, in_words, listed, table

WEIGHTS = Path(__file__).with_name("injection_likeness.npz")
LANGUAGES = ("en", "zh")
BY_MEANING = "+meaning"  # behind a language: the weights of words beside a vector
LONGEST_RUN = 3  # Chinese characters
LEAST = 8  # characters; a heading or a cell of a table speaks to nobody
# Weights of the three sorts of features; a vector without its centre is 0.45 long.
KINDS, WORDS, MEANING = 1.0, 1.4, 6.5
# Above the fitted bound, which look-alikes written for it have set. At 0 one sentence in 3,500 of 60,000 of real
# leaflets and 2 of 8,183 of a real guideline counted, at 0.2 one in 8,600 and none; of injected ones 54 for 55 of 60.
MARGIN = 0.2
_WORD = re.compile(r"[a-z']+")
_MATHS = re.compile(r"\$[^$\n]{1,200}\$|[<>](?=\s*=?\s*[\d.-])")  # formulas and comparisons (P < 0.05) are no markup
_RUN = re.compile(f"[{HAN}]+")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each feature by its name, the ``bias`` with its bound taken off, and ``by_meaning`` (D,).

    A sentence is suspected from a score of ``suspects`` on; D is 0 where words alone are weighed.
    """

    by_feature: Mapping[str, float]
    bias: float
    by_meaning: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    suspects: float = 0.0

    def score(self, sentence: str, language: str) -> float:
        """The score of ``sentence`` without its meaning."""
        values = features(sentence, language).items()
        return self.bias + sum(value * self.by_feature.get(name, 0.0) for name, value in values)


def suspected(sentence: str) -> bool:
    """Whether ``sentence`` is worth a look at its meaning."""
    language = _language(sentence)
    return bool(language) and loaded()[language].score(sentence, language) > loaded()[language].suspects


def spoken_by_meaning(sentences: Sequence[str], encoder: Embedder) -> list[bool]:
    """Whether each sentence scores above the bound of its language, by words and meaning.

    None does with another encoder than the one that was fitted.
    """
    if not sentences or encoder.identity.slug != fitted_encoder():
        return [False] * len(sentences)
    vectors = encoder.encode(sentences, "passage").astype(np.float64)
    marks = []
    for sentence, vector in zip(sentences, vectors, strict=True):
        language = _language(sentence)
        weights = loaded()[f"{language}{BY_MEANING}"] if language else None
        marks.append(bool(weights and weights.score(sentence, language) + vector @ weights.by_meaning > MARGIN))
    return marks


def _language(sentence: str) -> str:
    """The language of ``sentence``, "" of one that is too short or in another one."""
    language = detect(sentence)
    return language if len(sentence) >= LEAST and language in LANGUAGES else ""


def features(sentence: str, language: str) -> dict[str, float]:
    """The features of ``sentence`` by name: kinds, pairs of kinds, words."""
    folded = _MATHS.sub(" ", fold(sentence))
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
    """The weights that come with the package, by language, and by language with ``BY_MEANING`` behind it."""
    names = [f"{language}{suffix}" for language in LANGUAGES for suffix in ("", BY_MEANING)]
    with np.load(path, allow_pickle=False) as kept:
        return {name: _read(kept, name) for name in names}


def _read(kept: Mapping[str, npt.NDArray[np.generic]], name: str) -> Weights:
    by_feature = zip(str(kept[f"{name}.names"]).split("\n"), map(float, kept[f"{name}.weights"]), strict=True)
    meaning = kept[f"{name}.meaning"].astype(np.float64)
    return Weights(dict(by_feature), float(kept[f"{name}.bias"]), meaning, float(kept[f"{name}.suspects"]))


@cache
def fitted_encoder(path: Path = WEIGHTS) -> str:
    """The slug of the encoder whose vectors were fitted."""
    with np.load(path, allow_pickle=False) as kept:
        return str(kept["encoder"])
