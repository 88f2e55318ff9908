"""Before, within or after which moment something is: "after the first hour", 手术后 (``asking.toml``, ``[sides]``).

A moment is known by the words that name it, a Chinese one by its last character (手术后, 术后); the same moment in
other words is another one. Not covered: moments that are only amounts ("more than 3 hours after birth" is after birth).
"""

from __future__ import annotations

import re
from functools import cache

from localmed.clinical.tables import in_characters, in_words, listed, table
from localmed.language import HAN, fold

WORDS = 3  # of a moment's name

_SIDES = ("until", "after")
_WORD = r"(?!(?:of|to|in|on|at|for|and|or|is|are|has|have|can|may|should|with|the|by|from|if|when)\b)[a-z0-9]+"
_ARTICLE = r"(?:(?:the|an?|her|his|their|its|your|each|every|any)\s+)?"
_UNITS = "时天日周月年钟秒次个先最以之"  # before a Chinese side: no moment, but an amount of time or part of a word


def opposed(question: str, text: str) -> tuple[str, ...]:
    """The moments of ``question``, as written, of which ``text`` is on the other side, and nowhere on the same side."""
    mine, theirs = _moments(question), _moments(text)
    if not mine.keys().isdisjoint(theirs):
        return ()
    return tuple(written for (side, name), written in mine.items() if (_other(side), name) in theirs)


def agreed(question: str, text: str) -> bool:
    """Whether ``text`` is on the same side of a moment of ``question``."""
    return not _moments(question).keys().isdisjoint(_moments(text))


def other_ordinals(question: str, text: str) -> tuple[str, ...]:
    """What ``question`` names by its number (第二剂, the second dose) where ``text`` names only another of the same."""
    theirs = dict[str, set[str]]()
    for match in _ordinals().finditer(fold(text)):
        theirs.setdefault(_of(match), set()).add(_number(match))
    mine = list(_ordinals().finditer(fold(question)))
    return tuple(match[0] for match in mine if _number(match) not in theirs.get(_of(match), {_number(match)}))


def _number(match: re.Match[str]) -> str:
    """The number of an ordinal, English and Chinese alike."""
    written = match["en"] or match["zh"]
    groups = (listed(group) for group in table("asking")["ordinals"].values())
    return next((group[0] for group in groups if written in group), written)


def _of(match: re.Match[str]) -> str:
    return _singular(match["thing"] or match["zh_thing"])


@cache
def _ordinals() -> re.Pattern[str]:
    names = [name for group in table("asking")["ordinals"].values() for name in listed(group)]
    english = "|".join(name for name in names if name.isascii())
    chinese = "|".join(name for name in names if not name.isascii())
    return re.compile(rf"\b(?P<en>{english})[ -](?P<thing>[a-z]+)|(?P<zh>{chinese})(?P<zh_thing>[{HAN}])")


def _other(side: str) -> str:
    return _SIDES[1 - _SIDES.index(side)]


def _moments(text: str) -> dict[tuple[str, str], str]:
    """The sides and names of the moments that ``text`` names, each as it is written."""
    folded = fold(text)
    return {
        (side, _singular(match["name"])): match[0]
        for side, pattern in _patterns()
        for match in pattern.finditer(folded)
    }


def _singular(name: str) -> str:
    return " ".join(word.removesuffix("s") if len(word) > WORDS else word for word in name.split())


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    sides = table("asking")["sides"]
    made = []
    for side in _SIDES:
        name = rf"(?P<name>{_WORD}(?:[\s-]+{_WORD}){{0,{WORDS - 1}}})"
        english = rf"\b(?:{in_words(sides[f'{side}_en'])})\s+{_ARTICLE}{name}"
        chinese = rf"(?P<name>(?![{_UNITS}])[{HAN}])(?:{in_characters(sides[f'{side}_zh'])})"
        made += [(side, re.compile(english)), (side, re.compile(chinese))]
    return tuple(made)
