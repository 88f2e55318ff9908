"""A record of one line, as colleagues write it to each other: "72M, AF, on warfarin 3 mg, wants ibuprofen".

It begins with age and sex. Each clause between commas is then read for itself, so that a wish in one says nothing of a
medicine in another; but where a clause stops or denies something and names no medicine, it may mean any of them, and
nothing is said to be taken. A clause that is nothing but a listed condition or its abbreviation is a problem.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from localmed.clinical import abbreviations, synonyms
from localmed.ingest.records import cues
from localmed.language import detect

LONGEST = 400  # characters of such a line
BEGINS = re.compile(
    r"\s*(?:(?P<age>\d{1,3})\s?(?:y/?o|yrs?|years? old)?\s?(?P<sex>[mf])\b"
    r"|\d{1,3}\s?岁\s?[男女]|[男女][性，, ]*\d{1,3}\s?岁)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,，;；。]?(?:[^,，;；。.\n]|\.(?=\d)|,(?=\d{3}\b))+|\.(?!\d)")
_EDGES = " \t,，;；。."


def is_summary(text: str) -> bool:
    """Whether ``text`` is such a line."""
    return "\n" not in text.strip() and len(text) <= LONGEST and bool(BEGINS.match(text))


def clauses(text: str) -> list[tuple[int, int]]:
    """Where the clauses of ``text`` stand, each with the mark before it."""
    return [match.span() for match in _CLAUSE.finditer(text) if match[0].strip(_EDGES)]


def unclear(text: str, medicines: Sequence[int]) -> bool:
    """Whether a clause that names none of the ``medicines`` (their places) stops, denies or plans one."""
    return any(
        cues.NOT_NOW.search(text, start, end) and not bisect_left(medicines, end) - bisect_left(medicines, start)
        for start, end in clauses(text)
    )


def problems(text: str) -> Iterator[tuple[int, int]]:
    """The clauses that are nothing but a condition, ``start:end``."""
    for start, end in clauses(text):
        words = text[start:end]
        first, last = start + len(words) - len(words.lstrip(_EDGES)), start + len(words.rstrip(_EDGES))
        if _is_condition(text[first:last]):
            yield first, last


def _is_condition(words: str) -> bool:
    """Whether ``words`` are the name of a listed condition, or an abbreviation of one."""
    meanings = (words, *abbreviations.meaning(words, detect(words)).split(", "))
    return any(synonyms.is_condition(meaning) for meaning in meanings if meaning)
