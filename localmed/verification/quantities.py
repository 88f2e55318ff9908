"""The quantities of a text, compared by meaning: whether a source holds every number of a statement, with its unit.

Amounts are brought to one unit of their kind (``amounts``), times to hours or months, so that mcg, µg and 微克 are
equal, 0.5 g is 500 mg, two weeks are 14 days, and a thousandfold slip is never equal. Numbers up to thirty may be
written as words, English or Chinese. A number that a table's header gives its unit, as in "(mmHg): 140 to 159", has it.

A number without a unit is compared as it is written, whatever it counts. Fractions in words are not read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from math import isclose

from localmed.clinical import numbers, units
from localmed.domain import Message, message
from localmed.language import fold
from localmed.verification.amounts import amounts

TIMES = "times"  # how often: not the same as how many
NUMBER, UNIT = message("support.number"), message("support.unit")

_ONCE = re.compile(r"\btwice\b|\bonce(?= (?:a|per|each|every|daily|weekly)\b)")
_ONE = re.compile(r"\bone(?=[ -](?:second|minute|hour|day|week|month|year|working)s?\b)")
_PER_COURSE = re.compile(r"(?<![一二三四五六七八九十\d])([一二两三四五六七八九])(?=个?(?:工作日|疗程))")

_DIGITS = r"\d+(?:,\d{3})*(?:[.·]\d+)?"


@cache
def _number_words() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(numbers.in_sources())})\b")


@cache
def _counted() -> re.Pattern[str]:
    return re.compile(rf"({numbers.HAN})(?=\s?(?:{numbers.counted('source')}))")


@cache
def _units() -> dict[str, tuple[str, float]]:
    return {**units.by_name("times"), **units.by_name("counts")}


@cache
def _measured() -> re.Pattern[str]:
    names = "|".join(
        f"{re.escape(name)}s?(?![a-z])" if name.isascii() else name
        for name in sorted(_units(), key=lambda name: (-len(name), name))
    )
    return re.compile(rf"({_DIGITS})(?:\s*(?:-|–|to|or|and|/|至|到|~|或)\s*({_DIGITS}))?[\s-]*({names})")


_NUMBER = re.compile(rf"(?<![a-z\d.])(?<![a-z]-){_DIGITS}")
_NAMING = re.compile(
    r"\btypes? [12](?: (?:and|or) [12])?\b|[12]型|-\d+(?:,\d+)*-(?=[^\d\s])"
)  # a number that is part of a name
_BETWEEN = re.compile(rf"\bbetween ({_DIGITS}) and(?= \d)")
_BRACKETS = re.compile(r"[(（]([^()（）]{1,12})[)）]")


@dataclass(frozen=True, slots=True)
class Quantities:
    """``measured`` are (kind, value) in the kind's unit, ``ranges`` (kind, low, high) of those given as one.

    ``written`` is every number as it stands, ``bare`` those without a unit; ``heads`` are the kinds that stand in
    brackets, as tables' headers name them.
    """

    measured: frozenset[tuple[str, float]]
    ranges: frozenset[tuple[str, float, float]]
    written: frozenset[float]
    bare: frozenset[float]
    heads: frozenset[str]


def quantities(text: str) -> Quantities:
    """The quantities of ``text``."""
    read = digits_of(text)
    ranges: set[tuple[str, float, float]] = set()
    with_unit: Counter[float] = Counter()
    for amount in amounts(read):
        ranges.add((amount.kind.removesuffix(" pair"), amount.low, amount.high))
        with_unit.update(map(_value, _NUMBER.findall(amount.written)))
    for first, second, name in _measured().findall(read):
        kind, scale = _units()[name] if name in _units() else _units()[name.removesuffix("s")]
        values = sorted(_value(number) for number in (first, second) if number)
        ranges.add((kind, values[0] * scale, values[-1] * scale))
        with_unit.update(values)
    measured = {(kind, value) for kind, low, high in ranges for value in (low, high)}
    written = Counter(map(_value, _NUMBER.findall(read)))
    heads = {amount.kind for inside in _BRACKETS.findall(read) for amount in amounts(f"1 {inside}")}
    real = frozenset(range_ for range_ in ranges if range_[1] != range_[2])
    return Quantities(frozenset(measured), real, frozenset(written), frozenset(written - with_unit), frozenset(heads))


@cache
def _numbered() -> re.Pattern[str]:
    """The number of a heading or of a list's item; "2.5 mg" or "1.5 to 2 tablets" ahead of a line is none."""
    names = units.pattern({name: "" for section in units.READ for name in units.by_name(section)})
    amount = rf"\s*(?:(?:{names})(?![a-z])|(?:to|or|and|times)\b|[-–~至到×]\s*\d)"
    return re.compile(rf"^\s*(?:\d+(?:\.\d+)*[.、)]|[1-9]\d*(?:\.\d+)+(?!{amount}))\s", re.MULTILINE)


def digits_of(text: str) -> str:
    """Folded ``text`` with its number words as digits, without numbers that are part of a name or of a list."""
    return _BETWEEN.sub(r"\1 to", _as_digits(_numbered().sub("", _NAMING.sub("", fold(text)))))


def missing(text: str, source: str) -> Message | None:
    """Why ``source`` does not hold every quantity of ``text`` (``NUMBER`` or ``UNIT``); None if it does."""
    stated, held = quantities(text), quantities(source)
    loose = held.bare | {value / 12 for kind, value in held.measured if kind == "months"}  # "an age of 65"
    if not all(any(isclose(value, other) for other in loose) for value in stated.bare):
        return NUMBER
    if all(_holds(held, *quantity) for quantity in stated.measured):
        return None if all(_spans(held, *range_) for range_ in stated.ranges) else NUMBER
    return UNIT if stated.written <= held.written else NUMBER


def _holds(held: Quantities, kind: str, value: float) -> bool:
    """Whether the source has the quantity, or the bare number under a header with its unit ("3 or more times")."""
    if any(kind == other and isclose(value, number) for other, number in held.measured):
        return True
    return kind in (*held.heads, TIMES) and any(isclose(value, number) for number in held.bare)


def _spans(held: Quantities, kind: str, low: float, high: float) -> bool:
    """Whether the source has the range as one, or none of the kind: then its ends are written apart."""
    ranges = [range_ for range_ in held.ranges if range_[0] == kind]
    return not ranges or any(isclose(low, range_[1]) and isclose(high, range_[2]) for range_ in ranges)


def spelt(text: str) -> str:
    """Folded ``text`` with its times and frequencies in one wording: "six-hourly" is "every six hours"."""
    for pattern, digits in numbers.spans():
        text = pattern.sub(digits, text)
    return _PER_COURSE.sub(_chinese_digits, text)


def _chinese_digits(match: re.Match[str]) -> str:
    return str(numbers.chinese()[match[1]])


def _as_digits(text: str) -> str:
    """``text`` with its number words as digits."""
    text = spelt(text)
    text = _ONCE.sub(lambda match: "1 time" if match[0] == "once" else "2 times", text)
    text = _ONE.sub("1", _number_words().sub(lambda match: str(numbers.in_sources()[match[0]]), text))
    return _counted().sub(_chinese_digits, text)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("·", "."))
