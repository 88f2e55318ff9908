"""What the fields of a record mean: dates, languages and statuses in the words of many sources, made ours.

Rules: a date becomes ISO as precise as it was given; what is not a date stays as written ("3rd edition"). A language
becomes its two-letter code. A status that says "no longer valid" in a word we do not know is an error, never "current".
The words stand in ``vocabulary.toml``.

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
_OTHER_SCRIPTS = re.compile("[\u0370-\u1fff]")  # between Latin and its additions: Greek, Cyrillic, Arabic, Thai, ...
_ELSEWHERE = 0.05  # of the letters: Japanese and Korean have more of their own, Chinese next to none
_CLEARLY, _LEAST_WORDS = 2, 3  # times the English function words, and so many more, to be another language
_ENOUGH_WORDS, _LEAST_SHARE = 100, 0.01  # lists of medicines have fewer function words than prose, but some

_RAISED = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")


@cache
def vocabulary() -> Mapping[str, Mapping[str, Any]]:
    """The tables of ``vocabulary.toml``."""
    return tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text("utf-8"))


def meaning(name: str, word: str) -> str:
    """Which entry of the table ``name`` lists ``word``; "" if none does."""
    return next((entry for entry, words in vocabulary()[name].items() if word in words), "")


def iso_date(year: str, month: str = "", day: str = "") -> str:
    """``2024-05-01`` from parts as sources write them; shorter where a part is missing or makes no sense."""
    if not _YEAR.fullmatch(year):
        return ""
    number = _month(month)
    if not number:
        return year
    return f"{year}-{number}-{int(day):02d}" if day.isdecimal() and 1 <= int(day) <= 31 else f"{year}-{number}"


def edition(value: str) -> str:
    """``value`` as an ISO date where it is a date, else as it stands."""
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
    """The language that ``text`` is written in: "zh", one of ``[function_words]``, or "und" where none is made out.

    Too few words to tell are taken for English.
    """
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
    """By language what a word of it, that is no function word, often holds or ends with."""
    letters, endings = vocabulary()["letters"], vocabulary()["endings"]
    function_words = _function_words()
    return {
        code: re.compile(
            rf"^(?!(?:{'|'.join(function_words[code])})$).*(?:[{letters[code]}]|\w(?:{'|'.join(endings[code].split())})$)"
        )
        for code in letters
    }


@cache
def _function_words() -> Mapping[str, frozenset[str]]:
    return {code: frozenset(listed.split()) for code, listed in vocabulary()["function_words"].items()}


def status(value: str) -> str:
    """``current``, ``superseded`` or ``withdrawn``; "" for none given; ``Unusable`` for a word that is not known."""
    word = " ".join(value.lower().split())
    known = meaning("statuses", word)
    if word and not known:
        raise Unusable(message("reader.status"))
    return known


def one_line(text: str) -> str:
    """``text`` with every run of white space made one space."""
    return " ".join(text.split())


def superscript(text: str) -> str:
    """``text`` with its figures raised where it is a number: 10 and a raised 9 must not become 109."""
    return text.translate(_RAISED) if any(map(str.isdecimal, text)) and not any(map(str.isalpha, text)) else text


def _month(value: str) -> str:
    if value.isdecimal():
        return f"{int(value):02d}" if 1 <= int(value) <= 12 else ""
    return _MONTHS.get(value[:3].lower(), "")
