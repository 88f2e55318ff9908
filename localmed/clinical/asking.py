"""What a question asks of its subject: a dose, signs, a price (``asking.toml``); and its words that name nothing.

A slot that a question asks for and a sentence does not fill leaves the question open. English and Chinese. Not covered:
whether the value is that of the thing asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from localmed.clinical.tables import table
from localmed.language import fold

AMOUNT = "amount"  # any number


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that a question asks for, by its ``name``, and what a sentence gives that holds one."""

    name: str
    fills: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that a question asks for (``[kinds]``): its headings and what its sentences say, both folded."""

    headings: re.Pattern[str]
    says: re.Pattern[str] | None


def kinds(question: str) -> tuple[Kind, ...]:
    """What kinds of things ``question`` asks for; none where it cannot be told."""
    folded = fold(question)
    return tuple(kind for asks, kind in _kinds() if asks.search(folded))


@cache
def _kinds() -> tuple[tuple[re.Pattern[str], Kind], ...]:
    return tuple(
        (re.compile(row["asks"]), Kind(re.compile(row["headings"]), re.compile(row["says"]) if "says" in row else None))
        for row in table("asking")["kinds"].values()
    )


@cache
def _asks() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    rows = table("asking")["slots"].items()
    return tuple((name, re.compile(row["asks"]), row["fills"]) for name, row in rows)


@cache
def everyday() -> frozenset[str]:
    """Words of questions that are nobody's subject."""
    return frozenset(word for words in table("asking")["everyday"].values() for word in words.split())


def slots(question: str) -> tuple[Slot, ...]:
    """The values that ``question`` asks for; those that say more than "a number" stand for it as well."""
    folded = fold(question)
    matches = [(name, match, fills) for name, asks, fills in _asks() if (match := asks.search(folded))]
    chosen = [row for row in matches if row[0] != AMOUNT] or matches
    return tuple(Slot(name, _filled(match, fills)) for name, match, fills in chosen)


def filled(slots: Iterable[Slot], texts: Iterable[str]) -> bool:
    """Whether each of ``slots`` is filled by one of ``texts``; True where no value is asked for."""
    folded = [fold(text) for text in texts]
    return all(any(slot.fills.search(text) for text in folded) for slot in slots)


def defined(question: str) -> str:
    """The name of what ``question`` asks to be defined, "" if it asks something else."""
    folded = fold(question).strip()
    matches = (re.match(pattern, folded) for pattern in table("asking")["definition"]["asks"])
    return next((match["term"] for match in matches if match), "")


def defining(sentence: str) -> str:
    """What ``sentence`` may define: all before its first "is" or colon; "" if it has none."""
    folded = fold(sentence)
    says = re.search(table("asking")["definition"]["says"], folded)
    return folded[: says.start()] if says else ""


def _filled(match: re.Match[str], fills: str) -> re.Pattern[str]:
    counted = match.groupdict().get("of") or r"\w"
    return re.compile(fills.replace("{of}", counted))
