"""Compares quantities: whether a source has every number of a statement with its unit.

Amounts are converted to one unit of their kind (``amounts``), times to hours or months: mcg, µg and 微克 are equal,
0.5 g is 500 mg, two weeks are 14 days. Numbers up to thirty may be words, English or Chinese.

A number without a unit on one side (in a question, under a table's header) is compared as written. A bare "1" is often
no number. Fractions in words are not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isclose

from localmed.domain import Message, message
from localmed.text import numbers, units
from localmed.text.amounts import amounts
from localmed.text.language import fold

UNSAID = ("times", "units")  # kinds of which a source need not say that it is one: "daily", "before each unit"
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


@dataclass(frozen=True, slots=True)
class Quantities:
    """``measured``: the written number for each (kind, value in the kind's unit); ``ranges``: (kind, low, high);
    ``written``: all numbers as written; ``bare``: those without a unit.
    """

    measured: Mapping[tuple[str, float], float]
    ranges: frozenset[tuple[str, float, float]]
    written: frozenset[float]
    bare: frozenset[float]


def quantities(text: str) -> Quantities:
    """The quantities of ``text``."""
    read = digits_of(text)
    measured: dict[tuple[str, float], float] = {}
    ranges: set[tuple[str, float, float]] = set()
    with_unit: Counter[float] = Counter()
    for amount in amounts(read):
        kind, ends = amount.kind.removesuffix(" pair"), sorted({amount.low, amount.high})
        numbers_ = sorted(map(_value, _NUMBER.findall(amount.written)))
        measured |= {(kind, end): number for end, number in zip(ends, numbers_ or ends, strict=False)}
        ranges |= {(kind, ends[0], ends[-1])} if len(ends) > 1 else set()
        with_unit.update(numbers_)
    for first, second, name in _measured().findall(read):
        kind, scale = _units()[name] if name in _units() else _units()[name.removesuffix("s")]
        values = sorted({_value(number) for number in (first, second) if number})
        measured |= {(kind, value * scale): value for value in values}
        ranges |= {(kind, values[0] * scale, values[-1] * scale)} if len(values) > 1 else set()
        with_unit.update(_value(number) for number in (first, second) if number)
    written = Counter(map(_value, _NUMBER.findall(read)))
    return Quantities(measured, frozenset(ranges), frozenset(written), frozenset(written - with_unit))


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
    """The reason why ``source`` lacks a quantity of ``text`` (``NUMBER`` or ``UNIT``), or ``None``."""
    stated, held = quantities(text), quantities(source)
    loose = held.written | {value / 12 for kind, value in held.measured if kind == "months"}  # "an age of 65"
    if not all(value == 1 or _among(value, loose) for value in stated.bare):
        return NUMBER
    if all(_holds(held, *quantity, written) for quantity, written in stated.measured.items()):
        return None if all(_spans(held, *range_) for range_ in stated.ranges) else NUMBER
    return UNIT if stated.written <= held.written else NUMBER


def _holds(held: Quantities, kind: str, value: float, written: float) -> bool:
    """Whether the source has the quantity, or its number without a unit ("Weeks: 37"); "once" may go unsaid."""
    same = [number for other, number in held.measured if other == kind]
    return _among(value, same) or _among(written, held.bare) or (kind in UNSAID and value == 1 and not same)


def _among(value: float, numbers_: Iterable[float]) -> bool:
    return any(isclose(value, number) for number in numbers_)


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
