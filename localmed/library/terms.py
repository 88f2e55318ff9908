"""A terminology's entry for one concept, and the folding of names for look-up.

Terminology readers yield ``Term``s for the concept graph, as other readers yield ``parsed.SourceRecord``s.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from localmed.text.language import fold

# Kinds of names, best first. "replaced" is the name of an obsolete term.
KINDS = ("name", "exact", "abbreviation", "narrow", "related", "broad", "replaced")

_NO_WORD = re.compile(r"[\W_]+")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
_KEEP_S = ("ss", "us", "is")  # abscess, lupus, arthritis: the s is no plural's
_LEAST_PLURAL = 4  # letters; shorter words are mostly abbreviations (AIDS is folded like any plural, on both sides)


@dataclass(frozen=True, slots=True)
class Term:
    """A concept as one row or stanza of a source describes it; parts with the same id add up to one concept.

    ``names`` are ``(text, language, kind)`` besides the preferred ``name``, language "" if not stated; ``relations``
    are ``(subject, predicate, object, detail)`` with this concept at one end; ``xrefs`` are ids of the same thing
    elsewhere. ``replaced_by`` redirects the term's names to another concept. ``edition`` is the source's stated date,
    ``end`` the number of bytes of the file read so far.
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
    """Fold ``name`` for look-up: ignores case, accents, hyphens and other marks, possessives and a plural s."""
    plain = fold(name)
    if not plain.isascii():
        decomposed = unicodedata.normalize("NFD", plain)
        plain = unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))
    plain = _POSSESSIVE.sub("", plain)
    words = _NO_WORD.sub(" ", plain).split()
    return " ".join(singular(word) for word in words) or plain.strip()


def singular(word: str) -> str:
    """Return an English word without its plural s. Over-cutting is harmless: compared names are cut alike."""
    if len(word) < _LEAST_PLURAL or not word.endswith("s") or word.endswith(_KEEP_S):
        return word
    return word[:-1]
