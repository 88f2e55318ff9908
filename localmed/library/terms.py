"""What a terminology says of one concept, and how names are folded so that they are found however they are written.

The seam between the readers of terminologies and the concept graph, as ``parsed.SourceRecord`` is for documents.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from localmed.text.language import fold

# How well a name names its concept, best first. "replaced" is what an obsolete term was called.
KINDS = ("name", "exact", "abbreviation", "narrow", "related", "broad", "replaced")

_NO_WORD = re.compile(r"[\W_]+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_KEEP_S = ("ss", "us", "is")  # abscess, lupus, arthritis: the s is no plural's
_LEAST_PLURAL = 4  # letters; shorter words are mostly abbreviations (AIDS is folded like any plural, on both sides)


@dataclass(frozen=True, slots=True)
class Term:
    """A concept as one row or stanza of a source describes it; parts with the same id add up to one concept.

    ``names`` are ``(text, language, kind)`` beside the preferred ``name``, language "" where the source does not say;
    ``relations`` are ``(subject, predicate, object, detail)``, of which this concept is one end; ``xrefs`` are the ids
    of the same thing in other sources. ``replaced_by`` makes the term a redirection of its names, not a concept.
    ``edition`` is the source's date where it states one, ``end`` how many bytes of the file had been read.
    """

    id: str
    name: str = ""
    definition: str = ""
    names: tuple[tuple[str, str, str], ...] = ()
    relations: tuple[tuple[str, str, str, str], ...] = ()
    xrefs: tuple[str, ...] = ()
    replaced_by: str = ""
    edition: str = ""
    end: int = 0


def folded(name: str) -> str:
    """``name`` as it is looked up: case, accents, hyphens and other marks, possessives and a plural s do not count."""
    plain = _POSSESSIVE.sub("", _without_accents(fold(name)))
    words = _NO_WORD.sub(" ", plain).split()
    return " ".join(singular(word) for word in words) or plain.strip()


def singular(word: str) -> str:
    """An English word without its plural s; what is cut too much is cut alike wherever names are compared."""
    if len(word) < _LEAST_PLURAL or not word.endswith("s") or word.endswith(_KEEP_S):
        return word
    return word[:-1]


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    characters = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(c for c in characters if not unicodedata.combining(c)))
