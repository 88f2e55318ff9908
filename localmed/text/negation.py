"""Denials in English and Chinese, with one list of cues for statements, sources and complaints.

The scope of a cue is not parsed: a clause denies or it does not. A limit ("not more than", 不超过) is no denial. In a
complaint, words before a sign in its clause may deny it. The table is ``negation.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from localmed.text.language import fold
from localmed.text.tables import cues, in_characters, in_words, listed, table

REACH = 6  # words between a denial and the sign that it denies
_GERUND = re.compile(r"[a-z]{3,}ing\b")
_NOT = re.compile(r"n't\b")
BEFORE = 120  # characters before a sign that are read for a denial
_ANOTHER = re.compile(r" and (?:now|i|he|she|it|they|my|his|her|their)\b")  # ends the reach of a denial


def _entry(section: str) -> Mapping[str, str]:
    entry: Mapping[str, str] = table("negation")[section]
    return entry


@cache
def _denies() -> re.Pattern[str]:
    entry = _entry("denies")
    return re.compile(rf"\b(?:{in_words(entry['en'])})|n't\b|{in_characters(entry['zh'])}")


@cache
def _limits() -> re.Pattern[str]:
    entry = _entry("limits")
    before, after = "|".join(listed(entry["before_en"])), in_words(entry["after_en"]).replace(r"\b", "")
    return re.compile(
        rf"\b(?:{before})(?: \w{{1,30}}){{0,3}}? (?:{after})\w*|\b(?:{in_words(entry['phrases_en'])})\w*"
        rf"|(?:{in_characters(entry['before_zh'])})(?:{in_characters(entry['after_zh'])})|{in_characters(entry['phrases_zh'])}"
    )


def without_limits(folded: str) -> str:
    """``folded`` text without limits and double denials."""
    return _limits().sub(" ", cues("negation", "twice").sub(" ", _NOT.sub(" not", folded)))


def denies(folded: str) -> bool:
    """Whether a folded clause denies or forbids; a limit does not count."""
    return bool(_denies().search(without_limits(folded)))


def after_denial(folded: str) -> str:
    """What follows the first denial of a folded clause; "" without one."""
    plain = without_limits(folded)
    match = _denies().search(plain)
    return plain[match.end() :] if match else ""


def without_denials(folded: str) -> str:
    """``folded`` text without words of denial."""
    return _denies().sub(" ", without_limits(folded))


def warns(text: str) -> bool:
    """Whether a sentence forbids, stops, warns or demands immediate action."""
    folded = fold(text)
    return any(cues("negation", section).search(folded) for section in ("warns", "urgent"))


# --- complaints -------------------------------------------------------------------------------------------------------


@cache
def _before_sign() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    entry = _entry("denied")
    verbs, also = ("|".join(listed(entry[name])) for name in ("verbs_en", "also_en"))
    english = rf"\b(?:{'|'.join(listed(entry['en']))}|(?:{verbs})(?:n'?t| not)(?: (?:{also})\b)?)\s"
    return (
        re.compile(rf".*(?P<whole>{english}(?P<between>[\w' ,/-]{{0,70}}))$"),
        re.compile(rf"\b(?:{in_words(entry['but_not_en'])})"),
        re.compile(rf"(?:{in_characters(entry['zh'])})(?P<between>[^,.;!?，。；！？]{{0,12}})$"),
        re.compile(in_characters(entry["but_not_zh"])),
    )


@cache
def _next_to_sign() -> re.Pattern[str]:
    words = "|".join(listed(_entry("denied")["next_en"]))
    return re.compile(rf"(?<!why )(?<!or )(?<!if )\b(?:{words})[ -]$")


@cache
def _missing() -> re.Pattern[str]:
    entry = _entry("missing")
    return re.compile(rf"(?:{in_words(entry['en'])})|{in_characters(entry['zh'])}")


def denied(clause: str, start: int) -> bool:
    """Whether the last denial before ``start`` of a folded clause applies to the sign there."""
    if _missing().match(clause, start):
        return False
    english, but_not, chinese, but_not_chinese = _before_sign()
    before = clause[max(0, start - BEFORE) : start]
    if _GERUND.match(clause, start) and _next_to_sign().search(before):
        return True
    if match := chinese.search(before):
        return not but_not_chinese.search(match["between"])
    match = english.search(_ANOTHER.split(before)[-1])
    if not match or but_not.search(match["whole"]):
        return False
    between = match["between"]
    if "," in between:
        return bool(re.search(r"\b(or|nor)\b", between))
    return len(between.split()) <= REACH


_STOPS_WHEN = re.compile(
    r"\b(?:stop|hold|withhold|omit|skip)\b(?: (?:it|dose|the dose))? (?:if|when|unless)\b"
    r"(?:(?!\band\b)[^.,;，；。\n])*"
    r"|[如若当][^.,;，；。\n]{1,20}?(?:停|不用|暂停)[^.,;，；。\n]*"
    r"|[^.,;，；。\n\s]{0,12}[<＜>＞≤≥]\s?\d[^.,;，；。\n]{0,12}?(?:暂停|停用|停)[^.,;，；。\n]*",
    re.IGNORECASE,
)


def stops_when(text: str) -> list[str]:
    """What ``text`` says of when not to take something: "hold if HR < 55"."""
    return [match[0] for match in _STOPS_WHEN.finditer(text)]


_STOPPING = re.compile(
    r"\b(?:stop\w*|hold|held|withh\w+|omit\w*|skip\w*|discontinu\w+|ceas\w+|paus\w+)\b|停(?!药后)", re.IGNORECASE
)


def speaks_of_stopping(text: str) -> bool:
    """Whether ``text`` has a word for stopping, pausing or leaving out."""
    return bool(_STOPPING.search(text))
