"""Compares an order with its restatement: numbers with units, frequencies, routes, sides and negations.

The same rules read facts of both texts, English or Chinese, and the facts are counted: "tid", "three times a day" and
"一日三次" are one fact, "500 mg" and "0.5 g" are two (a restatement keeps the order's unit). Facts that only the order
has are ``lost``; numbers, frequencies and negations that only the restatement has are ``added``.

Not covered: whether a fact stands beside the right medicine; names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from localmed.text import numbers, units
from localmed.text.language import fold
from localmed.text.tables import table

_DAY = r"(?:a|per|each|every|/)\s?day|daily|/\s?d\b"
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
_JOINT = re.compile(r"\s?(?:-|–|~|to|至|到|/|x|×|or|或)\s?(?=\d|[一二两三四五六七八九十])")


@cache
def _words() -> Mapping[str, str]:
    """The digits of each number that is written as an English word, or as half."""
    return {word: str(value) for word, value in numbers.english().items()} | dict.fromkeys(
        ("a half", "half", "半"), "0.5"
    )


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """How facts but numbers are written, in the order in which they are read: what each is, its name and pattern."""
    words = "|".join(word for word, value in numbers.english().items() if value)
    number = rf"(\d+(?:\.\d+)?|{words}|{numbers.HAN}{{1,3}})"
    parts = {"<range>": rf"{number}(?:\s?(?:-|–|to|至|到|~)\s?{number})?", "<day>": f"(?:{_DAY})"}
    return tuple(
        (what, name, re.compile(re.sub(r"<\w+>", lambda part: parts[part[0]], "|".join(written))))
        for what, section in (("time", "times"), ("way", "ways"), ("sense", "senses"))
        for name, written in table("orders")[section].items()
    )


@cache
def _number() -> re.Pattern[str]:
    words = "|".join(word for word in _words() if word.isascii() and word != "zero")
    return re.compile(
        rf"(?<![\w.])(?P<digits>\d+(?:\.\d+)?|\.\d+)(?:st|nd|rd|th)?|\b(?P<word>{words})\b"
        rf"|(?P<han>[半{numbers.HAN[1:]}{{1,3}})(?=\s?(?:{numbers.counted('order')}))"
        r"|(?P<inside>(?<=[a-z×*/\u4e00-\u9fff])\d+(?:\.\d+)?)"
    )


@cache
def _read_units() -> tuple[tuple[str, re.Pattern[str]], ...]:
    ended = r"(?:(?<=[a-z])s?(?![a-z])|(?<![a-z]))"
    return tuple((name, re.compile(rf"\s?-?(?:{pattern}){ended}")) for name, pattern in units.in_orders())


Facts = Counter[tuple[str, str]]  # (what: number, time, way or sense; which) -> how often


def facts(text: str) -> Facts:
    """The facts of ``text``."""
    left, counts = _GROUPED.sub("", fold(text)), Facts()
    for what, name, pattern in _patterns():
        counts.update((what, _named(name, match)) for match in pattern.finditer(left))
        left = pattern.sub(lambda match: " " * len(match[0]), left)
    counts.update(("number", number) for number in _numbers(left))
    return counts


def places(folded: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """What each time, way and sense of a folded text is, and its place."""
    left = folded
    for what, _, pattern in _patterns():
        yield from ((what, match.span()) for match in pattern.finditer(left))
        left = pattern.sub(lambda match: " " * len(match[0]), left)


def lost(order: str, restatement: str) -> list[str]:
    """The facts that ``restatement`` has less often than ``order``. A number may gain a unit."""
    there, missing = facts(restatement), []
    for (what, name), count in facts(order).items():
        has = there[what, name]
        if what == "number" and " " not in name:
            has = sum(often for (kind, other), often in there.items() if kind == "number" and other.split()[0] == name)
        if has < count:
            missing.append(f"{what}: {name}")
    return missing


def added(order: str, restatement: str) -> list[str]:
    """The numbers, times, ways and senses of ``restatement`` that ``order`` lacks."""
    here = facts(order)
    plain = {name.split()[0] for what, name in here if what == "number"}
    return [
        f"{what}: {name}"
        for what, name in facts(restatement)
        if not here[what, name] and not (what == "number" and name.split()[0] in plain)
    ]


def _named(name: str, match: re.Match[str]) -> str:
    """A fact with the pattern's numbers in it, as digits: "every {1} hour" with 4 and 6 is "every 4-6 hour"."""
    groups = [_digits(group) for group in match.groups() if group]
    return name.replace("{1}", "-".join(groups))


def _digits(number: str) -> str:
    """A number as digits in one spelling: "two", "两", "2.0" and "2" are the same."""
    if number in _words():
        return _words()[number]
    if number[0] in numbers.chinese():
        return str(_of_han(number))
    return f"{float(number):g}"


def _of_han(number: str) -> int:
    """A Chinese number up to 99."""
    digits = numbers.chinese()
    tens, ten, ones = number.rpartition("十")
    return (digits.get(tens, 1) * 10 if ten else 0) + digits.get(ones, 0)


def _numbers(text: str) -> list[str]:
    """Each number with the unit after it; the numbers of a range or pair share the last one's unit."""
    numbers: list[str] = []
    waiting: list[str] = []
    for match in _number().finditer(text):
        value = _digits(next(group for group in match.groups() if group))
        if _JOINT.match(text, match.end()):
            waiting.append(value)
            continue
        unit = next((name for name, pattern in _read_units() if pattern.match(text, match.end())), "")
        numbers += [f"{number} {unit}".strip() for number in (*waiting, value)]
        waiting = []
    return numbers + waiting
