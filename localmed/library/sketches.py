"""Sketches, which compare texts without the texts (Broder 1997, "On the resemblance of documents").

A text is the set of its pairs of neighbouring words, folded; a Chinese character counts as a word. A sketch has the
least hashes of that set. Likeness is the Jaccard similarity of two sets: exact up to ``KEPT`` pairs, beyond that with a
standard error of at most 0.04.

Not covered: a text within a much longer one, translations, paraphrases.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from localmed.text.language import HAN, fold

KEPT = 128  # hashes of a sketch
HEX = 8  # characters of a hash in a sketch
ALIKE = 0.7  # likeness from which a text is a near copy: of 15 words one may differ (0.75), of a page many
_WORD = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")


def sketch(texts: Iterable[str]) -> str:
    """Return the sketch of a document's passages, "" for fewer than two words."""
    hashes: set[str] = set()
    for text in texts:
        words = _WORD.findall(fold(text))
        hashes.update(map(_hash, words, words[1:]))
    return "".join(sorted(hashes)[:KEPT])


def likeness(one: str, other: str) -> float:
    """Return the similarity of the texts of two sketches, 0 to 1."""
    hashes, others = _hashes(one), _hashes(other)
    least = sorted(hashes | others)[:KEPT]
    return sum(value in hashes and value in others for value in least) / len(least) if least else 0.0


def _hash(word: str, following: str) -> str:
    return hashlib.blake2b(f"{word} {following}".encode(), digest_size=HEX // 2).hexdigest()


def _hashes(text: str) -> set[str]:
    return {text[start : start + HEX] for start in range(0, len(text), HEX)}
