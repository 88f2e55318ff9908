"""Which case a statement is for, as far as words tell: a value's band, an age, a grade, one of opposites, a moment.

A guideline says what to do case by case; of its statements only that of the case asked about answers. A statement is
for another case where it names one that shuts out the question's: a band that does not hold the value measured
(potassium 6.2, "between 5.5 and 5.9 mmol/L"), another weight or age, another grade of the same scale (IIa, IIb), an
opposite (``qualifiers.toml``), the other side of a moment, a thing that the question says is absent. What names no case
is for any. Not covered: cases that must be inferred (a stent is secondary prevention), and doses, which are no bands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from math import inf

from localmed.clinical import ages, measures, moments, negation, numbers
from localmed.clinical.qualifiers import located, opposites, rows_named
from localmed.clinical.tables import cues, in_characters, in_words, table
from localmed.domain.patient import Measured
from localmed.language import content_words, fold
from localmed.verification.intervals import Interval, intervals
from localmed.verification.matching import stems

_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6"}
_GRADE = r"(?P<{0}>[ivx]{{1,4}}|\d{{1,2}}|{1})(?P<{0}_part>[a-d])?"
_BARE = re.compile(r"(?<![a-z0-9])(?P<bare>i{1,3}|iv|v)(?P<bare_part>[a-d])(?![a-z0-9])")
_WHOSE = re.compile(
    r"\b(?:patients?|people|women|men|adults|children|infants|those|anyone|somebody)\s+(?:with|who|on|taking|whose)\b([^.,;:]*)"
    r"|(?:^|[，。；、])([^，。；、]{1,14})(?:的?患者|的?病人|者)(?=[，,])"
)
_LABELLED = re.compile(r"(?P<label>[^:：;；\n]{2,60})[:：]\s*(?P<value>[^:：;；\n]*\d[^:：;；\n]*)")
# Of a patient, though nobody says "weight"; a dose per kg is none.
_WEIGHT = re.compile(r"(?<![\d./])(?P<weight>\d{1,3}(?:\.\d+)?)\s*(?:kg|kilos?|公斤|千克)(?![a-z/])")
_BESIDE = 12  # characters between what a question measures and its number
_CELL = re.compile(r"[^:：;；\n]+[:：]\s*(?P<stub>[^;；\n]+)")
_WHOLE = "(?<![a-z0-9]){0}(?![a-z0-9])"  # a name that is no part of a longer one
_ABSENT_FAR = 2  # words, or Chinese characters, between a negation and the thing that it says is absent


def other(question: str, text: str, headings: str = "") -> bool:
    """Whether ``text``, which stands under ``headings``, is for another case than ``question`` is about."""
    return (
        _other_value(question, text)
        or _other_weight(question, text)
        or ages.outside(question, text)
        or _other_cell(question, text)
        or _other_grade(question, text)
        or _opposed(question, text, headings)
        or bool(moments.opposed(question, text))
        or _absent(question, text)
    )


def fits(value: Measured, text: str) -> bool:
    """Whether ``text`` names what ``value`` is of, with a band that holds it."""
    if value.name not in {measure.name for measure in measures.mentioned(text)}:
        return False
    return any(_holds(band, value.value) for band in _bands_of(text, value.name))


def given_values(text: str) -> tuple[Measured, ...]:
    """The values that ``text`` gives of somebody: none of a measure that it names a band of."""
    bands = _bands(text)
    return tuple(value for value in measures.measured(text) if not any(_is_of(band, value.name) for band in bands))


def banded(values: Sequence[Measured], text: str) -> bool:
    """Whether ``text`` says itself for which values of what ``values`` are of it holds."""
    bands = _bands(text)
    return any(_is_of(band, value.name) for band in bands for value in values)


def for_another(values: Sequence[Measured], text: str) -> bool:
    """Whether ``text`` has bands of something that a patient has ``values`` of, and none of them holds its value.

    A row of two measures is the patient's by either: 168/98 mmHg is grade 2 by the systolic pressure alone.
    """
    named = {measure.name for measure in measures.mentioned(text)}
    fitting = []
    for name in {value.name for value in values} & named:
        bands = _bands_of(text, name)
        own = [value.value for value in values if value.name == name]
        if bands:
            fitting.append(any(_holds(band, value) for band in bands for value in own))
    return bool(fitting) and not any(fitting)


def beside(text: str, first: str) -> bool:
    """Whether ``text`` is for another case than the statement ``first`` names: an opposite, or another band."""
    named, theirs = rows_named(first) - absent(first), rows_named(text) - absent(text)
    if any(row not in theirs and not opposites(row).isdisjoint(theirs) for row in named):
        return True
    mine, bands = _measured(first), _measured(text)
    return bool(mine and bands) and all(
        one.kind == two.kind and (one.high < two.low or two.high < one.low) for one in mine for two in bands
    )


def rows_of(question: str, rows: Sequence[str]) -> frozenset[str]:
    """Those of a table's ``rows`` whose first cell ``question`` names; none where it names none."""
    folded = fold(question)
    stubs = {row: fold(match["stub"]).strip() for row in rows if (match := _CELL.match(row))}
    named = {stub for stub in stubs.values() if len(stub) > 1 and re.search(_WHOLE.format(re.escape(stub)), folded)}
    longest = {stub for stub in named if not any(stub != longer and stub in longer for longer in named)}
    return frozenset(row for row, stub in stubs.items() if stub in longest)


def restricted(question: str, text: str) -> bool:
    """Whether ``text`` is for patients with something that ``question`` does not speak of: an exception, there."""
    words = _words(question)
    for part in (match[1] or match[2] for match in _WHOSE.finditer(fold(text))):
        negated = cues("qualifiers", "absent").search(part)
        own = _words(part)
        if own and (words.isdisjoint(own) or (negated and not words.isdisjoint(_words(part[negated.end() :])))):
            return True
    return False


def _words(text: str) -> frozenset[str]:
    pairs = (word[at : at + 2] for word in content_words(text) if not word.isascii() for at in range(len(word) - 1))
    return stems(text) | frozenset(pairs) | rows_named(text)


def outside(question: str, text: str) -> tuple[str, ...]:
    """The values and ages of ``question`` that the bands of ``text`` do not hold, as they are written."""
    values = tuple(fold(question)[one.start : one.end] for one in _values_outside(question, text))
    written = tuple(written for _, written in ages.named_ages(question)) if ages.outside(question, text) else ()
    return (*values, *written)


def _other_value(question: str, text: str) -> bool:
    """Whether ``text`` has bands of what ``question`` gives a value of, and none that holds it."""
    return bool(_values_outside(question, text))


def _values_outside(question: str, text: str) -> list[Measured]:
    named = {measure.name for measure in measures.mentioned(text)}
    outside = []
    for value in measures.measured(question):
        bands = [band for band in _bands(text) if _is_of(band, value.name)] if value.name in named or not named else []
        if bands and not any(_holds(band, value.value) for band in bands):
            outside.append(value)
    return outside


def _other_weight(question: str, text: str) -> bool:
    """Whether ``text`` has bands of body weight, and none that holds the weight in ``question``."""
    weights = [float(match["weight"]) for match in _WEIGHT.finditer(fold(question))]
    bands = [band for band in _bands(text) if _is_of(band, "weight")]
    return bool(weights and bands) and not any(_holds(band, weight) for band in bands for weight in weights)


def _holds(band: Interval, value: float) -> bool:
    low = -inf if band.side == "upper" else min(band.written)
    high = inf if band.side == "lower" else max(band.written)
    return low <= value <= high


def _bands(text: str) -> list[Interval]:
    return [one for one in intervals(text) if one.written and not one.point]


def _bands_of(text: str, name: str) -> list[Interval]:
    """The bands of ``text`` that are of the measure ``name``; where others are named too, those behind its own name.

    Up to the next name: systolic and diastolic pressures have one unit.
    """
    folded, own = fold(text), re.compile(measures.by_name(name).pattern)
    rivals = [re.compile(one.pattern) for one in measures.mentioned(text) if one.name != name]
    parts = [folded[: _next(rivals, folded, match.end())][match.start() :] for match in own.finditer(folded)]
    return [band for part in parts if rivals for band in _bands(part) if _is_of(band, name)] or [
        band for band in _bands(text) if _is_of(band, name)
    ]


def _next(patterns: Sequence[re.Pattern[str]], text: str, start: int) -> int:
    """Where the next of ``patterns`` begins from ``start`` on."""
    return min((match.start() for one in patterns if (match := one.search(text, start))), default=len(text))


def _measured(text: str) -> list[Interval]:
    """The bands of ``text`` that are of something measured: no dose, no time."""
    names = [measure.name for measure in measures.all_measures()]
    return [band for band in _bands(text) if band.kind and any(_is_of(band, name) for name in names)]


def _is_of(band: Interval, name: str) -> bool:
    """Whether a band may be of the measure ``name``: by its unit, or without one where it needs none."""
    measure = measures.by_name(name)
    kind = band.kind.casefold()
    return any(re.fullmatch(pattern, kind) for pattern, _, _ in measure.units) or (not kind and measure.bare)


def _other_cell(question: str, text: str) -> bool:
    """Whether a cell of the row ``text`` gives a band of what its label names, and not the question's number."""
    folded = fold(question)
    for cell in _LABELLED.finditer(fold(text)):
        words = sorted(stems(cell["label"]), key=len, reverse=True)
        numbers_named = (
            re.search(rf"\b{re.escape(word)}\w*[^\d;,.]{{0,{_BESIDE}}}?(\d+(?:\.\d+)?)", folded) for word in words
        )
        number = next((match[1] for match in numbers_named if match), "")
        bands = [band for band in _bands(cell["value"]) if not band.kind]
        if number and bands and not any(_holds(band, float(number)) for band in bands):
            return True
    return False


def _other_grade(question: str, text: str) -> bool:
    mine, theirs = _grades(question), _grades(text)
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _grades(text: str) -> frozenset[str]:
    """The grades that ``text`` names, in digits: grade II, stage 3b, IIa, 三级."""
    folded = fold(text)
    named = set()
    for pattern in (*_scales(), _BARE):
        for match in pattern.finditer(folded):
            name = next(key for key, value in match.groupdict().items() if value and not key.endswith("_part"))
            named.add(_digits(match[name]) + (match[f"{name}_part"] or ""))
    return frozenset(named)


def _digits(number: str) -> str:
    return _ROMAN.get(number) or str(numbers.chinese().get(number, number))


@cache
def _scales() -> tuple[re.Pattern[str], re.Pattern[str]]:
    scales = table("qualifiers")["scales"]
    han = f"[{''.join(numbers.chinese())}]"
    english = rf"\b(?:{in_words(scales['en'])})\s*[:]?\s*{_GRADE.format('en', han)}(?![a-z0-9.])"
    chinese = rf"(?:{in_characters(scales['zh'])})\s*[:：]?\s*{_GRADE.format('zh', han)}(?![a-z0-9.])"
    behind = rf"(?<![a-z0-9第哪几同上下]){_GRADE.format('behind', han)}\s*(?:{in_characters(scales['zh_behind'])})"
    return re.compile(english), re.compile(f"{chinese}|{behind}")


def _opposed(question: str, text: str, headings: str) -> bool:
    theirs = rows_named(text) - absent(text)
    above = rows_named(headings)
    for row in rows_named(question) - absent(question):
        others = opposites(row)
        if row not in theirs and (others & theirs or (others & above and row not in above)):
            return True
    return False


def _absent(question: str, text: str) -> bool:
    """Whether ``text`` is for those who have what ``question`` says is absent; one that denies anything may not be."""
    folded = fold(text)
    denied = cues("qualifiers", "absent").search(folded) or negation.denies(folded)
    return bool(absent(question) & rows_named(text)) and not denied


def absent(question: str) -> frozenset[str]:
    """The rows that ``question`` names right behind a negation."""
    folded = fold(question)
    negations = [match.end() for match in cues("qualifiers", "absent").finditer(folded)]
    return frozenset(
        row
        for match, rows in located(folded)
        for row in rows
        if any(_near(folded[end : match.start]) for end in negations if end <= match.start)
    )


def _near(between: str) -> bool:
    return len(between.split()) <= _ABSENT_FAR if between.isascii() else len(between) <= _ABSENT_FAR
