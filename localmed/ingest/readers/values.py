"""What the fields of a record mean: dates, languages and statuses in the words of many sources, made ours.

Rules: a date becomes ISO as precise as it was given; what is not a date stays as written ("3rd edition"). A language
becomes its two-letter code. A status that says "no longer valid" in a word we do not know is an error, never "current".

Not covered: dates with the day before the month (ambiguous; they stay as written).
"""

from __future__ import annotations

import re

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

_LANGUAGES = {
    "eng": "en",
    "english": "en",
    "chi": "zh",
    "zho": "zh",
    "chinese": "zh",
    "cn": "zh",
    "中文": "zh",
    "英文": "en",
}
_STATUSES = {
    "current": ("current", "active", "valid", "in force", "published", "final", "现行", "有效", "现行有效"),
    "superseded": ("superseded", "replaced", "outdated", "obsolete", "已更新", "被替代", "已替代", "过期"),
    "withdrawn": (
        "withdrawn",
        "retracted",
        "removed",
        "revoked",
        "repealed",
        "废止",
        "已废止",
        "作废",
        "撤回",
        "已撤回",
        "撤稿",
    ),
}
_STATUS_WORDS = {word: status for status, words in _STATUSES.items() for word in words}
_RAISED = str.maketrans("0123456789+-−–()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾")


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
    return _LANGUAGES.get(code, code)


def status(value: str) -> str:
    """``current``, ``superseded`` or ``withdrawn``; "" for none given; ``Unusable`` for a word that is not known."""
    word = " ".join(value.lower().split())
    if not word:
        return ""
    if word not in _STATUS_WORDS:
        raise Unusable(message("reader.status"))
    return _STATUS_WORDS[word]


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
