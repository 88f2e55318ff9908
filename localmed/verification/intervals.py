"""The numbers of a text as intervals: "5 or more" is from 5 up, "must not exceed 6 mg" up to 6 mg, "10 to 50" both.

So a limit is compared by what it means and not by its wording, and a value of one patient ("an eGFR of 38") by the
interval that it lies in. Kinds of unit are those of ``quantities``; a number without a unit has the kind "". The words
are in ``clinical/limits.toml``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isclose

from localmed.clinical import units
from localmed.clinical.tables import in_characters, listed, table
from localmed.once import once
from localmed.verification.quantities import TIMES, digits_of

BEFORE, AFTER = 48, 28  # characters around a number in which its side is read
DOSES = frozenset(("mg", "mL", "units", "tablet", "capsule", "puff", "drop", "mg/kg", "mL/kg", "mmol/kg"))

CLEARANCE = "mL/min"  # of a measure, and no dose

_NUMBER = r"\d+(?:,\d{3})*(?:[.·]\d+)?"
_COMPARATIVE = re.compile(r"\b\w+ than(?: \w+)?\s*$")
_NOT = re.compile(
    r"\b(?:not|never|no|cannot)\b(?! (?:more|less|fewer|lower|higher|later|longer|sooner|earlier|older)\b)|n't\b"
)
_DIRECT = re.compile(r"\b(?:no|not|never)\s*$")  # "no more than" is a limit by itself
_CONDITION = re.compile(r"\b(?:if|when|where|with|at|unless|once|until)\b")
_LIMIT_OF = re.compile(r"\s*(?:of\s*|is\s*|:\s*)?\d")  # "60 mg/kg, maximum 4500 mg": of the second number
_JOINT = r"\s*(?:-|–|—|~|～|\bto\b|至|到)\s*"


@dataclass(frozen=True, slots=True)
class Interval:
    """``low`` to ``high`` of ``kind``; ``side`` is "upper" or "lower" of a limit, "" of a value or range.

    ``at:end`` is where it stands in the text as ``digits_of`` writes it, ``written`` its numbers as they stand there,
    ``rate`` the time that it is divided by: an infusion's milligrams a minute are none an hour.
    """

    kind: str
    low: float
    high: float
    side: str
    at: int
    end: int
    written: tuple[float, ...] = ()
    rate: str = ""

    @property
    def limit(self) -> float:
        """The number that is written, of a range the first."""
        return self.high if self.side == "upper" else self.low

    def meets(self, other: Interval) -> bool:
        """Whether each number of this one is one of ``other``: of a range either end, in the same unit or none."""
        if self.kind == other.kind or {self.kind, other.kind} == {"", TIMES}:
            return all(any(isclose(mine, theirs) for theirs in other.ends) for mine in self.ends)
        bare = not (self.kind and other.kind) and not DOSES & {self.kind, other.kind}
        years = {self.kind, other.kind} == {"", "months"}
        mine, theirs = (self.written, other.written) if not years else (self.in_years, other.in_years)
        return bare and all(any(isclose(value, there) for there in theirs) for value in mine)

    @property
    def ends(self) -> tuple[float, ...]:
        """The numbers that are written, in the kind's unit."""
        return tuple(sorted({value for value in (self.low, self.high) if value not in (inf, -inf)}))

    @property
    def in_years(self) -> tuple[float, ...]:
        """The numbers, of an age in years."""
        return tuple(value / 12 for value in self.ends) if self.kind == "months" else self.written

    @property
    def point(self) -> bool:
        """Whether it is one value."""
        return self.low == self.high

    def holds(self, other: Interval) -> bool:
        """Whether the value ``other`` lies in this range or beyond this limit, in the same unit or none."""
        if self.point or not other.point or DOSES & {self.kind, other.kind}:
            return False
        if self.kind == other.kind or {self.kind, other.kind} == {"", TIMES}:
            return self.low <= other.low <= self.high
        if self.kind and other.kind:
            return False
        (value,) = other.in_years if "months" in (self.kind, other.kind) else other.written[:1]
        ends = self.in_years if "months" in (self.kind, other.kind) else self.written
        low = -inf if self.low == -inf else ends[0]
        high = inf if self.high == inf else ends[-1]
        return low <= value <= high


@cache
def _pattern() -> re.Pattern[str]:
    names = units.pattern(_units())
    parts = units.pattern({**units.divisors(), **dict.fromkeys(units.rates(), "")})
    unit = rf"(?:{names})(?![a-z0-9])"
    return re.compile(
        rf"(?<![a-z\d./·])(?<!\d,)(?<![a-z]-)(?P<first>{_NUMBER})(?:[\s-]*(?P<unit1>{unit}))?"
        rf"(?:{_JOINT}(?P<second>{_NUMBER}))?(?:[\s-]*(?P<unit>{unit}))?"
        rf"(?P<per>(?:\s*(?:/|per\s)\s*(?:{parts})(?![a-z0-9]))*)"
    )


@cache
def _units() -> dict[str, tuple[str, float]]:
    named = {name: unit for section in units.READ for name, unit in units.by_name(section).items()}
    return {f"{name}s": unit for name, unit in named.items() if name.isascii() and len(name) > 2} | named


@cache
def _sides() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
    """Each side with what is written before a number and after it."""
    between = "|".join(listed(table("limits")["between"]["en"]))
    made = []
    for side in ("upper", "lower"):
        entry = table("limits")[side]
        before = "|".join(rf"(?<![a-z]){re.escape(word)}" for word in sorted(listed(entry["before_en"]), key=len)[::-1])
        after = "|".join(rf"{re.escape(word)}\b" for word in sorted(listed(entry["after_en"]), key=len)[::-1])
        made.append(
            (
                side,
                re.compile(
                    rf"(?:{before})(?:\s(?:{between})\b)*\s*$|(?:{in_characters(entry['before_zh'])})[了为约至到]?\s*$"
                ),
                re.compile(rf"[\s,]*(?:{after})|\s*个?(?:{in_characters(entry['after_zh'])})"),
            )
        )
    return tuple(made)


def intervals(text: str) -> list[Interval]:
    """The intervals of ``text``, in order."""
    return list(_intervals(text))


@once
def _intervals(text: str) -> tuple[Interval, ...]:
    read = _swapped().sub(r"\1 \3 \2", digits_of(text))
    return tuple(_sided(_value(match), read) for match in _pattern().finditer(read))


@cache
def _swapped() -> re.Pattern[str]:
    """A unit behind the words of a limit: "two or more weeks"."""
    names = units.pattern(units.by_name("times"))
    return re.compile(rf"({_NUMBER}) ((?:or|and) (?:more|fewer|less|longer|over)) ((?:{names})(?![a-z]))")


def _value(match: re.Match[str]) -> Interval:
    name = match["unit"] or match["unit1"] or ""
    kind, scale = _units().get(name, ("", 1.0)) if name else ("", 1.0)
    own = _units()[match["unit1"]][1] if match["unit1"] else scale
    per = [shown for part in re.findall(r"[^\s/]+", match["per"]) if (shown := units.divisors().get(part))]
    written = tuple(
        float(match[name].replace(",", "").replace("·", ".")) for name in ("first", "second") if match[name]
    )
    values = [written[0] * own, *(value * scale for value in written[1:])]
    kind = "/".join((kind, *per)) if kind else ""
    kind = CLEARANCE if kind == "mL" and "min" in match["per"] else kind
    rate = next((shown for part in re.findall(r"[^\s/]+", match["per"]) if (shown := units.rate(part))), "")
    return Interval(kind, min(values), max(values), "", *match.span(), tuple(sorted(written)), rate)


def _sided(value: Interval, read: str) -> Interval:
    before, after = read[max(0, value.at - BEFORE) : value.at], read[value.end : value.end + AFTER]
    # What stands behind a number is nearer to it than the words before: "below 60 kg or more" is no text.
    side = next(
        (
            name
            for name, _, behind in _sides()
            if (match := behind.match(after)) and not _LIMIT_OF.match(after, match.end())
        ),
        "",
    )
    ahead = [(match.start(), name) for name, pattern, _ in _sides() if (match := pattern.search(before))]
    side = side or (_turned(min(ahead)[1], before) if ahead else "")  # the longest wording: "not sooner than"
    if not side or value.low != value.high:
        return value
    return replace(value, side=side, low=-inf) if side == "upper" else replace(value, side=side, high=inf)


def _turned(side: str, before: str) -> str:
    """The other side where a negation before a comparative turns it: "do not give more than"."""
    match = _COMPARATIVE.search(before)
    ahead = _CONDITION.split(before[: match.start()])[-1] if match else ""
    if not _NOT.search(ahead) or _DIRECT.search(ahead):
        return side
    return "lower" if side == "upper" else "upper"
