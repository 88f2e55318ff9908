"""Reads a question before the search: writes out abbreviations, measured values and names of medicines.

Readings are searched for beside the typed text, as further words and a further query by meaning, and are shown ("read
as: K 7.1 = potassium 7.1 mmol/L"). Tables: ``text/ward.toml`` (ward shorthand), ``medicines.toml`` (brands), the site's
glossary (``search.glossary``). A likely typing error is read as the library's spelling or a listed medicine; the name
of a medicine is never read as another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from localmed.domain.findings import ALL, Question, Reading
from localmed.text import language, medicines, synonyms
from localmed.text.spelling import LEAST, by_shape, errors, is_english, is_near, shapes
from localmed.text.tables import table

SEVERE = (180, 120)  # mmHg, from which guidelines speak of a severe or emergency hypertension
RAISED = (140, 90)  # mmHg, from which they speak of hypertension
LOW = 90  # mmHg systolic
VERY_HIGH = {
    "en": ("very high blood pressure", "hypertension", "hypertensive emergency"),
    "zh": ("血压极高", "高血压", "高血压急症"),
}
HIGH = {"en": ("high blood pressure", "hypertension"), "zh": ("高血压",)}
TOO_LOW = {"en": ("low blood pressure", "hypotension"), "zh": ("低血压",)}
_PRESSURE = re.compile(
    r"(?P<called>(?:\bbp\b|blood pressure|血压)\D{0,6})?(?<![\d./])(?P<both>(?P<high>\d{2,3})\s?/\s?(?P<low>\d{2,3}))"
    r"(?![\d./])",
    re.IGNORECASE,
)
MOST = 8  # readings of one question; nobody reads a longer list
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9&-]*|#")
_JOINTS = (" ", "/")  # between two words of one name
_VALUE = (
    r"(?<![A-Za-z0-9])(?<!vitamin )(?<!vit )(?<!give )(?<!transfuse )"
    r"(?P<name>{names}|[A-Za-z]{{1,3}}4?)\+?\s*(?:(?:of|is|was|at|level|=|:|：|为|是)\s*){{0,2}}"
    r"(?P<number>\d{{1,4}}(?:\.\d{{1,2}})?)(?![\d.]*\d)(?!\s*(?:mg|g|ml|mcg|µg|%|units?|tabs?|h\b|hours?|mins?\b|kg"
    r"|days?|d\b|weeks?|months?|times|x\b|per\b|pools?\b|bags?\b|in (?:the|a)\b|target\b|goal\b"
    r"|次|天|日|周|个月|单位|袋))"
)


def read(
    typed: str,
    glossary: Mapping[str, Sequence[str]] | None = None,
    near: Callable[[str], str] | None = None,
    left_out: Collection[str] = (),
) -> Question:
    """Read ``typed``.

    ``near`` gives the library's spelling of an unknown word, or "". ``glossary``: the site's folded terms with other
    names. ``left_out``: readings to ignore, as written.
    """
    found: dict[str, Reading] = {}
    spoken = language.detect(typed)
    for one in (*_values(typed, spoken), *_pressures(typed, spoken), *_site(typed, glossary or {}),
                *_table(typed, spoken), *_brands(typed, spoken),
                *(_spelling(typed, spoken, near) if near else ())):  # fmt: skip
        key = language.fold(one.written)
        taken = any(key in before.split() for before in found)
        if not taken and language.fold(one.means) != key:
            found.setdefault(key, one)
    ordered = sorted(found.values(), key=lambda one: language.fold(typed).find(language.fold(one.written)))
    names = {*map(_name, left_out)}
    return Question(
        typed, tuple(replace(one, left_out=bool({ALL, _name(one.written)} & names)) for one in ordered[:MOST])
    )


def _name(written: str) -> str:
    """A reading's name with normal spaces: forms change line ends."""
    return " ".join(language.fold(written).split())


def _values(typed: str, spoken: str) -> Iterator[Reading]:
    """Values after a measure's letters or name, if the number is plausible for it, with what one beyond the bounds is
    called.
    """
    ward, chinese = table("ward"), spoken == "zh"
    measured: Mapping[str, Any] = ward["measured"]
    for match in _value().finditer(typed):
        written = match["name"].lower()
        name = written if written in measured else _measures().get(written, "")
        if not name:
            continue
        long, low, high, unit = measured[name]
        number = float(match["number"])
        if not low <= number <= high or (written == "mg" and match["name"] not in ("Mg", "MG")):
            continue
        shown = ward["measured_zh"][name] if chinese else long
        below = [row[1 + chinese] for row in (ward["below"].get(name),) if row and number < row[0]]
        above = [row[1 + chinese] for row in (ward["above"].get(name),) if row and number >= row[0]]
        if below or above or name == written:
            means = ", ".join((f"{shown} {match['number']} {unit}".strip(), *below, *above))
            called = tuple(name for row in (*below, *above) for name in row.split(", "))
            yield Reading(match[0].strip(), means, called=called, high=bool(above) if called else None)


@cache
def _measures() -> Mapping[str, str]:
    """The letters of each measure by its name in either language."""
    ward: Mapping[str, Any] = table("ward")
    named: dict[str, str] = dict(ward["measured_as"])
    named |= {row[0].lower(): name for name, row in ward["measured"].items()}
    return named | {written: name for name, written in ward["measured_zh"].items()}


@cache
def _value() -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(_measures(), key=len, reverse=True)))
    return re.compile(_VALUE.format(names=names), re.IGNORECASE)


def _pressures(typed: str, spoken: str) -> Iterator[Reading]:
    """Pressures that are too high or too low by their number: few sections name the number that somebody has.

    Beside a condition or procedure a pressure is no subject: "BP 190/115 before thrombolysis".
    """
    beside = any(
        synonyms.is_in(it, one.written) for one in synonyms.named(typed) for it in ("conditions", "procedures")
    )
    most = 1 if beside else None
    for match in _PRESSURE.finditer(typed):
        high, low = int(match["high"]), int(match["low"])
        if (high >= SEVERE[0] or low >= SEVERE[1]) and low < high:
            yield Reading(
                match["both"], ", ".join(VERY_HIGH[spoken][:most]), called=() if beside else VERY_HIGH[spoken]
            )
        elif match["called"] and low < high and (high >= RAISED[0] or low >= RAISED[1]):
            yield Reading(match["both"], ", ".join(HIGH[spoken][:most]))
        elif match["called"] and low < high < LOW:
            yield Reading(match["both"], ", ".join(TOO_LOW[spoken][:most]), called=() if beside else TOO_LOW[spoken])


def _site(typed: str, glossary: Mapping[str, Sequence[str]]) -> Iterator[Reading]:
    """The site's terms."""
    folded = language.fold(typed)
    for name, names in glossary.items():
        at = folded.find(name) if name else -1
        inside = (
            at >= 0 and name.isascii() and (folded[at - 1 : at].isalnum() or folded[at + len(name) :][:1].isalnum())
        )
        own = [one for one in names if language.detect(one) == language.detect(typed)]
        if at >= 0 and not inside and own:
            yield Reading(typed[at : at + len(name)], " ".join(own))


def _table(typed: str, spoken: str) -> Iterator[Reading]:
    """Entries of the ward table: one or two Latin words ("f/u"), Chinese anywhere."""
    rows: Mapping[str, str] = table("ward")[spoken]
    words = [*_WORD.finditer(typed)]
    pairs = [(one, other) for one, other in pairwise(words) if typed[one.end() : other.start()] in _JOINTS]
    found = [typed[one.start() : other.end()] for one, other in (*pairs, *((word, word) for word in words))]
    read = [(one, rows.get(one) or rows.get(one.lower(), "")) for one in found]
    if spoken == "zh":
        longest = sorted((name for name in rows if not name.isalnum() or not name.isascii()), key=len, reverse=True)
        longest = [name for name in longest if name in typed]
        within = [*longest, *(one.written for one in synonyms.named(typed))]  # 低血糖 is no 血糖
        read += [(name, rows[name]) for name in longest if not any(name in it and name != it for it in within)]
        read = [(one, means) for one, means in read if not any(part in typed for part in means.split())]
    yield from (Reading(one, means) for one, means in read if means)


def _brands(typed: str, spoken: str) -> Iterator[Reading]:
    """Brands and other names of medicines, by the nonproprietary name in the question's language."""
    for one in medicines.mentions(typed):
        names = _names(one.ingredients, spoken)
        if names and language.fold(names) not in language.fold(typed):
            yield Reading(one.written, names)


def _names(ingredients: tuple[str, ...], spoken: str) -> str:
    """The first listed name of a medicine or combination in a language."""
    names = (name for name in medicines.same(ingredients) if language.detect(name) == spoken)
    return next(names, " ".join(ingredients) if spoken == "en" else "")


@cache
def _listed() -> Mapping[str, Sequence[str]]:
    return by_shape(medicines.listed_names())


def _spelling(typed: str, spoken: str, near: Callable[[str], str]) -> Iterator[Reading]:
    known, listed = medicines.words(typed, by_ending=False), medicines.listed_names()
    ended = medicines.words(typed) - known  # known by their ending, perhaps misspelt (gentamycin)
    for match in _WORD.finditer(typed):
        word = match[0].lower()
        # Short words are left alone: "ENT" is no misspelt "gent".
        if len(word) < LEAST or not word.isalpha() or word in known or (word not in ended and synonyms.named(word)):
            continue
        shaped = sorted({name for shape in shapes(word) for name in _listed().get(shape, ())})
        alike = [name for name in shaped if errors(word, name) == 1 and (is_near(word, name) or word == name[1:])]
        spelt = {name: errors(word, name) for name in (*alike, "" if word in ended else near(word)) if name}
        best = [name for name, count in spelt.items() if count == min(spelt.values())]
        best = [name for name in best if name in listed] or best  # all equally likely ones are searched for
        means = dict.fromkeys(it for name in best for it in (name, _names(listed.get(name, ()), spoken)) if it)
        if means and word not in means and (word in ended or not is_english(word)):
            yield Reading(match[0], " ".join(means))
