"""Normalises dates, languages and statuses in the words of many sources (``vocabulary.toml``).

Rules: a date becomes ISO, as precise as given; other editions stay as written ("3rd edition"). A language becomes its
two-letter code. An unknown status is an error, never "current".

Not covered: dates with the day before the month (ambiguous; they stay as written).
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from localmed.domain import message
from localmed.ingest.parsed import Unusable
from localmed.text.language import detect

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02d}" for number, name in enumerate(_MONTH_NAMES, start=1)}
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d|2100")
_NUMERIC = re.compile(
    r"(?P<year>\d{4})(?:[-/.年](?P<month>\d{1,2})(?:[-/.月](?P<day>\d{1,2}))?)?[日月年]?(?:[T ][\d:.Z+-]*)?"
)
_COMPACT = re.compile(r"(?P<year>\d{4})(?P<month>[01]\d)(?P<day>[0-3]\d)")
_MONTH_YEAR = re.compile(r"(?P<month>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})")
_YEAR_MONTH = re.compile(r"(?P<year>\d{4}) (?P<month>[A-Za-z]{3,9})(?: (?P<day>\d{1,2}))?")

UNKNOWN = "und"  # ISO 639: undetermined
_WORD = re.compile(r"[^\W\d_]+")
_KANA_HANGUL = re.compile("[\u3041-\u30ff\u1100-\u11ff\uac00-\ud7af]")
_OTHER_SCRIPTS = re.compile("[\u0370-\u1fff]")  # Greek, Cyrillic, Arabic, Thai, ...
_ELSEWHERE = 0.05  # of the letters: Japanese and Korean have more of their own, Chinese next to none
_CLEARLY, _LEAST_WORDS = 2, 3  # another language has so many times the English function words, and so many more
_ENOUGH_WORDS, _LEAST_SHARE = 100, 0.01  # lists of medicines have fewer function words than prose, but some

_RAISED = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")


@cache
def vocabulary() -> Mapping[str, Mapping[str, Any]]:
    """The tables of ``vocabulary.toml``."""
    return tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text("utf-8"))


def meaning(name: str, word: str) -> str:
    """The entry of the table ``name`` that lists ``word``, or ""."""
    return next((entry for entry, words in vocabulary()[name].items() if word in words), "")


def iso_date(year: str, month: str = "", day: str = "") -> str:
    """``2024-05-01`` from parts as sources write them; shorter if a part is missing or invalid, "" without a year."""
    if not _YEAR.fullmatch(year):
        return ""
    number = _MONTHS.get(month[:3].lower(), "")
    if month.isdecimal():
        number = f"{int(month):02d}" if 1 <= int(month) <= 12 else ""
    if not number:
        return year
    return f"{year}-{number}-{int(day):02d}" if day.isdecimal() and 1 <= int(day) <= 31 else f"{year}-{number}"


def edition(value: str) -> str:
    """``value`` as an ISO date if it is a date, else as written."""
    stripped = " ".join(value.split())
    for pattern in (_COMPACT, _NUMERIC, _YEAR_MONTH, _MONTH_YEAR):
        if match := pattern.fullmatch(stripped):
            parts = match.groupdict()
            return iso_date(parts["year"], parts.get("month") or "", parts.get("day") or "") or stripped
    return stripped


def language(value: str) -> str:
    """The two-letter code of a language given as a code of two or three letters, a locale or a name."""
    code = re.split(r"[-_]", value.strip().lower())[0]
    return meaning("languages", code) or code


def language_of(text: str) -> str:
    """Detect the language of ``text``: "zh", one of ``[function_words]``, or "und"; a few words count as English."""
    letters = sum(map(str.isalpha, text))
    if len(_KANA_HANGUL.findall(text)) > _ELSEWHERE * letters:
        return UNKNOWN
    if detect(text) == "zh":
        return "zh"
    if len(_OTHER_SCRIPTS.findall(text)) > letters / 2:
        return UNKNOWN
    words = Counter(_WORD.findall(text.casefold()))
    counts = {code: sum(words[word] for word in listed) for code, listed in _function_words().items()}
    for code, telling in _telling_forms().items() if words.total() < _ENOUGH_WORDS else ():
        counts[code] += sum(number for word, number in words.items() if telling.search(word))
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    if counts[best] >= _CLEARLY * counts["en"] + _LEAST_WORDS:
        return best
    return UNKNOWN if words.total() >= _ENOUGH_WORDS and counts["en"] < _LEAST_SHARE * words.total() else "en"


@cache
def _telling_forms() -> Mapping[str, re.Pattern[str]]:
    """By language a pattern of the letters and endings of its words, except function words."""
    forms = {}
    for code, letters in vocabulary()["letters"].items():
        function_words, endings = "|".join(_function_words()[code]), "|".join(vocabulary()["endings"][code].split())
        forms[code] = re.compile(rf"^(?!(?:{function_words})$).*(?:[{letters}]|\w(?:{endings})$)")
    return forms


@cache
def _function_words() -> Mapping[str, frozenset[str]]:
    return {code: frozenset(listed.split()) for code, listed in vocabulary()["function_words"].items()}


def status(value: str) -> str:
    """``current``, ``superseded``, ``withdrawn``, or "" for none; raise ``Unusable`` for an unknown word."""
    word = " ".join(value.lower().split())
    known = meaning("statuses", word)
    if word and not known:
        raise Unusable(message("reader.status"))
    return known


def one_line(text: str) -> str:
    """Replace every run of white space by one space."""
    return " ".join(text.split())


def superscript(text: str) -> str:
    """Raise the figures of ``text`` if it is a number: 10 and a raised 9 must not become 109."""
    return text.translate(_RAISED) if any(map(str.isdecimal, text)) and not any(map(str.isalpha, text)) else text
