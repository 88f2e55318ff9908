"""Whether a statement puts two things the other way round than its source: after for before, effect for cause.

Both sides of a connecting word are read as (first, second), whatever the wording ("before A, B", "A after B"); where a
statement's first shares more with the source's second, and the other way round, it is turned. The words are in
``clinical/relations.toml``; a sentence with several of them is compared part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.clinical.tables import in_characters, listed, table
from localmed.language import content_words, fold
from localmed.verification.matching import alike, stems

_PART = re.compile(r"[;；。:：]|[.!?](?!\d)|\b(?:but|while|whereas)\b")
_LEADING = re.compile(r"^\s*(?:and |then |so )?$")
CROSSED = 1  # words more that the sides share crosswise than as they stand
_NO_ORDER = re.compile(
    r"\s*(?:\d|daily|an?\b|per\b|weekly|about|(?:each|every) (?:day|week|hour|month))"
)  # "after 4 weeks", "once a day"


@dataclass(frozen=True, slots=True)
class Order:
    """``first`` stands before ``second`` in the ``kind`` of order."""

    kind: str
    first: frozenset[str]
    second: frozenset[str]


@cache
def _patterns() -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    made = []
    for kind, entry in table("relations").items():
        if isinstance(entry, dict):
            for name, forward in (("forward", True), ("backward", False)):
                english = "|".join(
                    rf"\b{re.escape(word)}\b" for word in sorted(listed(entry[f"{name}_en"]), key=len, reverse=True)
                )
                passive = r"(?! by\b)" if forward else ""
                made.append((kind, forward, re.compile(f"(?:{english}){passive}|{in_characters(entry[f'{name}_zh'])}")))
    return tuple(made)


def reversed_order(statement: str, source: str) -> bool:
    """Whether an order of ``statement`` is one of ``source`` turned round."""
    theirs = [*_orders(source), *_orders(source, whole=True)]
    return any(_crossed(mine, [other for other in theirs if other.kind == mine.kind]) for mine in _orders(statement))


def _orders(text: str, whole: bool = False) -> Iterator[Order]:
    """The orders of ``text``, between the nearest clauses or (``whole``) all that stands before and after."""
    for part in _PART.split(fold(text)):
        for kind, forward, pattern in _patterns():
            for match in pattern.finditer(part):
                if kind == "time" and _NO_ORDER.match(part, match.end()):
                    continue
                yield from _order(kind, forward, part[: match.start()], part[match.end() :], whole)


def _order(kind: str, forward: bool, before: str, after: str, whole: bool) -> Iterator[Order]:
    if _LEADING.match(before):  # "before A, B" is "B before A"
        after, comma, before = after.partition(",")
        if not comma:
            return
    first, second = (before, after) if forward else (after, before)
    if kind != "cause" and not whole:  # a further clause is neither
        before, after = _near(before.split(",")[::-1]), _near(after.split(","))
        first, second = (before, after) if forward else (after, before)
    sides = _words(first), _words(second)
    if all(sides):
        yield Order(kind, sides[0] - sides[1], sides[1] - sides[0])


def _near(parts: Sequence[str]) -> str:
    """The first of ``parts`` that says anything."""
    return next((part for part in parts if _words(part)), "")


def _words(text: str) -> frozenset[str]:
    return frozenset(map(alike, stems(" ".join(content_words(text))))) - {""}


def _crossed(mine: Order, theirs: Sequence[Order]) -> bool:
    """Whether every order of the source that is like it is the other way round, and one is."""
    turned = False
    for other in theirs:
        along = len(mine.first & other.first) + len(mine.second & other.second)
        across = len(mine.first & other.second) + len(mine.second & other.first)
        crossed = bool(mine.first & other.second and mine.second & other.first)
        if mine.kind == "degree" and crossed and not mine.second & other.second:
            turned = True  # what both say of the two counts for neither
        elif along and along >= across:
            return False
        turned = turned or (crossed and across >= along + CROSSED)
    return turned
