"""Finds the document of a reference by its title, without guessing between two.

A reference ("WHO. Guidelines on malaria, 2nd edition, 2023", "Kim J. Malaria in children. Lancet 2020;1:2") names a
document if both have the same words apart from years, editions and publishers; else if it contains the whole title;
else if the title begins with it. Numbers count ("type 1"). Of several documents the one of the reference's year is
taken, without a year the one in force; if two remain, none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from localmed.domain import Document, Status
from localmed.text.language import words

LEAST_WORDS = 3  # of a title within a reference, or of a reference that begins a title; "Asthma" is in any text
# How a title fits a reference: not; begins with it; is contained in it; same but for generic words; equal.
NONE, BEGUN, WHOLE, SAME, EQUAL = range(5)
_YEAR = re.compile(r"(?:19|20)\d\d")
# Words in which references to one document differ.
_GENERIC = frozenset(
    re.findall(
        r"\S+",
        """
        a an and at by for from in of on or the to with its
        guideline guidelines guidance recommendation recommendations edition editions ed updated update version revised
        revision new consolidated 1st 2nd 3rd 4th 5th first second third fourth fifth available online accessed pdf
        who world health organization organisation nice national institute excellence care cdc esc aha acc ada geneva
        london isbn
        """,
    )
)
_GENERIC_CHINESE = re.compile(r"世界卫生组织|临床实践指南|诊疗指南|防治指南|指南|第.版|更新版?|修订版?|版本|年")


def years(text: str) -> frozenset[str]:
    """The years in ``text``."""
    return frozenset(_YEAR.findall(text))


def named_by(reference: str, candidates: Iterable[Document]) -> Document | None:
    """The candidate that ``reference`` names, ``None`` if none or several fit."""
    reference_words = _words(reference)
    ranked: dict[int, list[Document]] = {}
    for document in candidates:
        ranked.setdefault(_likeness(_words(document.title), reference_words), []).append(document)
    best = max(ranked, default=NONE)
    if best == WHOLE:  # the longer of titles that contain each other
        longest = max(len(_words(document.title)) for document in ranked[best])
        ranked[best] = [document for document in ranked[best] if len(_words(document.title)) == longest]
    return _one(reference, ranked[best]) if best else None


def _words(text: str) -> tuple[str, ...]:
    """The words of ``text`` in order without years; Chinese in pairs of characters."""
    plain = _GENERIC_CHINESE.sub(" ", text)
    return tuple(word for word in words(plain, for_query=True) if not _YEAR.fullmatch(word))


def _likeness(title: Sequence[str], reference: Sequence[str]) -> int:
    """How well a title fits a reference, as one of the constants above."""
    if not title:
        return NONE
    if title == reference:
        return EQUAL
    own, theirs = _telling(title), _telling(reference)
    if own == theirs and (len(own) > 1 or title == reference[: len(title)]):
        return SAME
    if len(title) >= LEAST_WORDS and f" {' '.join(title)} " in f" {' '.join(reference)} ":
        return WHOLE
    return BEGUN if len(theirs) >= LEAST_WORDS and own[: len(theirs)] == theirs else NONE


def _telling(title: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in title if word not in _GENERIC)


def _one(reference: str, left: Sequence[Document]) -> Document | None:
    """The equally fitting document of the reference's year, else the one in force, else ``None``."""
    cited = years(reference)
    if cited and len(left) > 1:
        left = [document for document in left if cited & (years(document.edition) | years(document.title))]
    if len(left) > 1:
        left = [document for document in left if document.status is Status.CURRENT]
    return left[0] if len({document.content for document in left}) == 1 else None
