"""The age that a question names, and the bands of age that a text is for, in years, English and Chinese.

A number is an age by its unit (years; months, weeks and days only of children) or by "aged" before it. Not covered:
ages in words, and ages that a table gives in a column of bare numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from localmed.language import fold

OLDEST = 200.0  # years; where a band has no end
CHILDHOOD = 18.0  # years at which it ends

_A_YEAR = {"y": 1, "岁": 1, "m": 12, "月": 12, "w": 52, "周": 52, "d": 365, "日": 365, "天": 365}  # units in a year
_UNIT = r"(?:years?|yrs?|months?|weeks?|days?)"
_ZH_UNIT = "(?:岁|个月|月龄|周龄|日龄)"
_ASKED = re.compile(
    rf"(?P<age>\d{{1,3}})\s?-?\s?(?P<unit>{_UNIT})?[ -]?old\b|\baged?\s(?P<aged>\d{{1,3}})\b(?!\s?(?:and|or|to|-))"
    rf"|(?P<zage>\d{{1,3}})\s?(?P<zunit>岁(?!以|及|或)|个月(?=大|龄|的?(?:婴|宝|孩|小|幼|患))|月龄|周龄|日龄)"
)
_BAND = re.compile(
    rf"(?:\b(?:aged|from|between)\s)?(?P<from>\d{{1,3}})\s?(?P<from_unit>{_UNIT})?\s?(?:to|-|–|and)\s"
    rf"(?P<under>under |less than )?(?P<to>\d{{1,3}})\s?(?P<to_unit>{_UNIT})\b(?! after| before| ago)"
    rf"|(?:\baged\s|\b(?:over|above|from|at least|older than)\s)(?P<low>\d{{1,3}})\s?(?P<low_unit>{_UNIT})\b"
    rf"|\baged?\s(?:over\s|above\s)?(?P<aged>\d{{1,3}})(?=\s(?:and|or) (?:over|older|above))"
    rf"|(?P<and>\d{{1,3}})\s?(?P<and_unit>{_UNIT})\s?(?:of age\s)?(?:and|or) (?:over|older|above)"
    rf"|\b(?:under|below|younger than|up to|less than)\s(?P<high>\d{{1,3}})\s?(?P<high_unit>{_UNIT})\b"
    rf"|(?P<zfrom>\d{{1,3}})\s?{_ZH_UNIT}?(?:至|到|-|~|–|—)(?P<zto>\d{{1,3}})\s?(?P<zto_unit>{_ZH_UNIT})"
    rf"|(?P<zlow>\d{{1,3}})\s?(?P<zlow_unit>{_ZH_UNIT})(?:及|或)?以上"
    rf"|(?P<zhigh>\d{{1,3}})\s?(?P<zhigh_unit>{_ZH_UNIT})(?:及|或)?以下"
)
_OF_CHILDREN = re.compile(r"\b(?:age|aged|old|child\w*|infants?|bab(?:y|ies)|newborns?|neonates?)\b|龄|婴|儿|孩|宝宝")
_YEARS = ("y", "岁")


def named_ages(question: str) -> Iterator[tuple[float, str]]:
    """The ages that ``question`` names, in years, as they are written."""
    for match in spans(question):
        number = match["age"] or match["aged"] or match["zage"]
        yield _years(number, match["unit"] or match["zunit"]), match[0]


def spans(question: str) -> Iterator[re.Match[str]]:
    """Where the folded ``question`` names ages."""
    return _ASKED.finditer(fold(question))


def bands(text: str) -> list[tuple[float, float]]:
    """The ages, from and below, in years, that ``text`` says it is for."""
    folded = fold(text)
    children = _OF_CHILDREN.search(folded)
    spans_of_ages = []
    for match in _BAND.finditer(folded):
        units = [value for name, value in match.groupdict().items() if name.endswith("unit") and value]
        if children or all(unit[0] in _YEARS for unit in units):
            spans_of_ages.append(_band(match))
    return spans_of_ages


def outside(question: str, text: str) -> bool:
    """Whether ``text`` is for other ages than that of ``question``; not where either names none."""
    covered = bands(text)
    return bool(covered) and any(not any(low <= age < high for low, high in covered) for age, _ in named_ages(question))


def _band(match: re.Match[str]) -> tuple[float, float]:
    if match["from"] or match["zfrom"]:
        unit = match["to_unit"] or match["zto_unit"]
        last = int(match["to"] or match["zto"]) + (0 if match["under"] else 1)
        return _years(match["from"] or match["zfrom"], match["from_unit"] or unit), _years(last, unit)
    if match["high"] or match["zhigh"]:
        return 0.0, _years(match["high"] or match["zhigh"], match["high_unit"] or match["zhigh_unit"])
    low = match["low"] or match["aged"] or match["and"] or match["zlow"]
    return _years(low, match["low_unit"] or match["and_unit"] or match["zlow_unit"]), OLDEST


def _years(number: str | int, unit: str | None) -> float:
    key = (unit or "y").removeprefix("个")[0]
    return int(number) / _A_YEAR[key]
