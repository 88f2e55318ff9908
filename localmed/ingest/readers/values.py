"""What the fields of a record mean: dates, languages and statuses in the words of many sources, made ours.

Rules: a date becomes ISO as precise as it was given; what is not a date stays as written ("3rd edition"). A language
becomes its two-letter code. A status that says "no longer valid" in a word we do not know is an error, never "current".
The words stand in ``vocabulary.toml``.

Not covered: dates with the day before the month (ambiguous; they stay as written).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from localmed.domain import message
from localmed.ingest.parsed import Unusable

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02d}" for number, name in enumerate(_MONTH_NAMES, start=1)}
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d|2100")
_NUMERIC = re.compile(
    r"(?P<year>\d{4})(?:[-/.年](?P<month>\d{1,2})(?:[-/.月](?P<day>\d{1,2}))?)?[日月年]?(?:[T ][\d:.Z+-]*)?"
)
_COMPACT = re.compile(r"(?P<year>\d{4})(?P<month>[01]\d)(?P<day>[0-3]\d)")
_MONTH_YEAR = re.compile(r"(?P<month>[A-Za-z]{3,9})\.?,? (?P<year>\d{4})")
_YEAR_MONTH = re.compile(r"(?P<year>\d{4}) (?P<month>[A-Za-z]{3,9})(?: (?P<day>\d{1,2}))?")

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
