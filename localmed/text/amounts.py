"""Amounts in a sentence, English or Chinese: numbers with a unit, brought to one unit of their kind.

``0.5 g``, ``500mg``, ``500 毫克`` and ``500,000 micrograms`` are one amount; ``5-10 mg`` is a range, ``130/80 mmHg`` a
pair. Kinds never compare with one another: a mass is not a mass per kilogram. Body weights ("under 50 kg"), ages and
durations are no amounts. Text is folded (NFKC, lower case) before it is read, so units in full width count.

Numbers: ``5,000``, ``5 000``, ``1.5``, ``1·5`` and ``0,25``. What else holds a comma (``1,5``) may be a decimal or two
numbers: it is not read, and neither is its tail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from localmed.text import units
from localmed.text.language import fold

# Folding makes a plain space of thin and non-breaking ones.
_NUMBER = r"(?:0,\d+|(?:[1-9]\d{0,2}(?:(?:,\d{3})+|(?: \d{3})+)|\d+)(?:[.·]\d+)?)(?!,?\d)"


@cache
def _amount() -> re.Pattern[str]:
    names, parts = units.pattern(units.by_name("amounts")), units.pattern(_divided_by())
    return re.compile(
        rf"(?<![a-z0-9./·])(?<!\d,)(?<!\d\s)(?<![a-z]-)(?P<first>{_NUMBER})\s*(?P<unit1>{names})?\s*"
        rf"(?:(?P<joint>-|–|—|~|to|至|到|/)\s*(?P<second>{_NUMBER})\s*)?"
        rf"(?P<unit>{names})?(?P<per>(?:\s*(?:/|per\s)\s*(?:{parts})(?![a-z0-9]))*)(?![a-z0-9])"
    )


@cache
def _divisor() -> re.Pattern[str]:
    return re.compile(rf"(?:/|per\s)\s*({units.pattern(_divided_by())})")


def _divided_by() -> dict[str, str]:
    """What an amount may be divided by. A time says how often, not how much: it belongs to the sentence."""
    return {**units.divisors(), **dict.fromkeys(units.rates(), "")}


# "1-2 500 mg tablets" is no thousand.
_COUNTED = re.compile(r"\s*(?:tablet|capsule|vial|ampoule|suppositor|sachet|puff|[片粒支])")
# A clause ends at punctuation that is not inside a number.
_CLAUSE_END = re.compile(r"[;；，。、]|[,.](?!\d)")
_SPACES = re.compile(r"\s+")
_LATIN = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Amount:
    """``low`` to ``high`` (equal if it is no range) of ``kind``'s unit, as ``written``.

    A pair such as a blood pressure has its second number as ``low`` and its first as ``high``, and a kind of its own.
    """

    low: float
    high: float
    kind: str
    written: str


def amounts(sentence: str) -> list[Amount]:
    """The amounts of ``sentence``, in order."""
    folded = fold(sentence)
    ends = [0, *(match.end() for match in _CLAUSE_END.finditer(folded)), len(folded)]
    return [amount for start, end in pairwise(ends) for amount in _of_clause(folded[start:end])]


def _of_clause(clause: str) -> Iterator[Amount]:
    for match in _amount().finditer(clause):
        unit = match["unit"] or (match["unit1"] if not match["second"] else "")
        if not unit or (_spaced(match) and _COUNTED.match(clause, match.end())):
            continue
        known = units.by_name("amounts")
        kind, scale = known[unit]
        divisors = [per for name in _divisor().findall(match["per"]) if (per := units.divisors().get(name))]
        first = _value(match["first"]) * (known[match["unit1"]][1] if match["unit1"] else scale)
        second = _value(match["second"]) * scale if match["second"] else first
        pair = " pair" if match["joint"] == "/" else ""
        written = _LATIN.sub(lambda name: units.shown(name[0]), _SPACES.sub(" ", match[0]).strip())
        yield Amount(min(first, second), max(first, second), "/".join((kind, *divisors)) + pair, written)


def _value(number: str) -> float:
    if number.startswith("0,"):
        return float(number.replace(",", "."))
    return float(number.replace(",", "").replace(" ", "").replace("·", "."))


def _spaced(match: re.Match[str]) -> bool:
    """Whether a space stands within one of the numbers."""
    return " " in f"{match['first']}{match['second'] or ''}"
