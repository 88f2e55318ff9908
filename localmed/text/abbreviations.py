"""Abbreviations of medical orders with their usual meanings (``abbreviations.toml``).

An abbreviation with several usual meanings gets all of them, unless the line itself decides ("chosen": "OD" behind a
dose in a line without an eye). "x5/7", "x2/52" and "x3/12" are days, weeks and months, and "5/7" behind "TDS"
or before "then stop"; elsewhere they may be dates or fractions and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.text import faithfulness, units
from localmed.text.language import detect, fold
from localmed.text.tables import cues, listed, table

LONGEST = 12  # characters of an abbreviation as written, points included
NEAR = 14  # characters before one that may rule it out: "stage IV"

_LATIN = re.compile(
    rf"(?<![A-Za-z0-9&-])[Uu]&[Ee]s?(?![A-Za-z0-9&-])|(?<![A-Za-z0-9-])(?=[A-Za-z])[A-Za-z0-9./]{{1,{LONGEST}}}(?![A-Za-z0-9-])"
)
_EVERY = re.compile(
    r"(?<![A-Za-z0-9])q\s?\.?\s?(?P<low>\d{1,3})(?:\s?[-–]\s?(?P<high>\d{1,3}))?\s?\.?\s?"
    r"(?P<unit>hours?|hrs?|h|days?|d|weeks?|wks?|w|min)\.?(?![A-Za-z])",
    re.IGNORECASE,
)
_LASTING = re.compile(  # "for 5/7" and "in 6/12" may be dates, "6/52" may be none of these
    r"(?<![A-Za-z0-9.–-])(?:[x×]\s?(?P<count>\d{1,3})/(?P<of>7|52|12)"
    r"|(?P<said>for|in) (?P<weeks>[1-9]|1\d|2[0-6])/52"
    r"|(?:(?<=[ .][bo]d )|(?<=[ .](?:tds|qds|bid|tid|qid) )|(?<= mane )|(?<= nocte )|(?=\d{1,2}/7,? then stop))"
    r"(?:for )?(?P<days>[1-9]|1\d|2[0-8])/7)(?![\d/.])",
    re.IGNORECASE,
)
_LONG = {"7": ("day", "天"), "52": ("week", "周"), "12": ("month", "个月")}
_UNITS = {"h": ("hour", "小时"), "d": ("day", "天"), "w": ("week", "周"), "m": ("minute", "分钟")}
PERIOD = re.compile(r"(?<![\d/])(\d{1,2})/(7|52|12)(?![\d/])")  # how British orders write days, weeks and months
_SHORTHAND = re.compile(
    rf"{PERIOD.pattern}|(?<![\d/])\d{{1,2}}/24(?![\d/])|(?<![A-Za-z0-9/&-])(?:[A-Z]{{2,5}}(?:&[A-Z]{{1,3}})?"
    r"|[A-Z]&[A-Z]{1,3}|c(?= meals?| food| water)|[b-df-hj-np-tv-xz]{2,5})(?![A-Za-z0-9/&-])"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,12})\s{0,2}$")
_AMOUNT_BEFORE = re.compile(r"(?P<number>\d?)(?P<word>[A-Za-zµ]{0,12})\.?\s{1,2}$")
_AMOUNT_AFTER = re.compile(r"\s?\d[\d.,]{0,6}\s?(?P<unit>[A-Za-zµ]{1,12})")
_LIMITED = re.compile(r"\b(?:omit|skip|miss|max(?:imum)?|no more than|up to)\b|不超过|最多|禁|漏", re.IGNORECASE)
_SMALL = re.compile(r"(?<![A-Za-z0-9/&-])[a-z]{2,3}(?![A-Za-z0-9/&-])")
_ROMAN_BEFORE_CHINESE = re.compile(r"\s?[级期型度]")

Meaning = tuple[str, str]  # English, Chinese


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """An abbreviation ``written`` at ``start:end`` of a text, with one or more ``meanings``."""

    written: str
    start: int
    end: int
    meanings: tuple[str, ...]


def abbreviations(text: str, language: str) -> tuple[Abbreviation, ...]:
    """The abbreviations of ``text``, a line of an order, with their meanings in ``language`` ("zh", else English)."""
    every = [_every(match, language) for match in _EVERY.finditer(text)]
    lasting = [_lasting(match, language) for match in _LASTING.finditer(text)]
    matches = [*every, *lasting, *_latin(text, language), *_chinese(text, language)]
    apart: list[Abbreviation] = []
    for abbreviation in sorted(matches, key=lambda entry: (entry.start, -entry.end)):
        if not apart or apart[-1].end <= abbreviation.start:
            apart.append(abbreviation)
    return tuple(apart)


def explainable(line: str, language: str, above: str = "") -> tuple[Abbreviation, ...]:
    """The abbreviations of a ``line`` of an order. If the rest of the line or the text ``above`` it denies, stops, asks
    or sets a condition, those that give an instruction ("NBM") are left out, unless they have several meanings.
    """
    found = abbreviations(line, language)
    undone = _is_undone(line, found, above)
    return tuple(one for one in found if len(one.meanings) > 1 or not (undone and _key(one.written) in _set("directs")))


def _is_undone(line: str, found: Sequence[Abbreviation], above: str = "") -> bool:
    """Whether a line apart from the abbreviations ``found``, or the text above, denies, stops, asks or conditions."""
    rest = list(line)
    for one in found:  # "NBM" is itself a denial
        rest[one.start : one.end] = " " * (one.end - one.start)
    text = f"{above} {''.join(rest)}"
    return is_open(text) or bool({"stop", "hold"} & _senses_of(text))


def phrases(text: str, language: str) -> tuple[tuple[str, str], ...]:
    """The plain phrases of a line of an order, each with its words in the reader's ``language``; none if that is the
    line's own, or if the line denies, asks, stops or sets a condition.
    """
    if detect(text) == language or _LIMITED.search(text) or _is_undone(text, abbreviations(text, language)):
        return ()
    pairs: Mapping[str, str] = table("abbreviations")["phrases"]
    if language == "zh":
        found = [(match[0], pairs[match[0].lower()]) for match in _phrases().finditer(text)]
    else:
        found = [(zh, en) for en, zh in pairs.items() if re.search(rf"(?<![早午晚禁两每]){zh}", text)]
    return tuple(dict(reversed(found)).items())[::-1]


@cache
def _phrases() -> re.Pattern[str]:
    longest = sorted(table("abbreviations")["phrases"], key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest))})\b", re.IGNORECASE)


def is_open(text: str) -> bool:
    """Whether ``text`` denies, asks or sets a condition."""
    return bool({"not", "unless", "below", "above"} & _senses_of(text) or cues("negation", "open").search(fold(text)))


def _senses_of(text: str) -> set[str]:
    return {name for kind, name in faithfulness.facts(text.replace("’", "'")) if kind == "sense"}


def unknown(text: str) -> tuple[str, ...]:
    """The unread abbreviations of a line: "1/52", "U&E", "inh" away from an amount."""
    known = abbreviations(text, "en")
    found = [*(PERIOD if text.isupper() else _SHORTHAND).finditer(text)]
    found += [one for one in _SMALL.finditer(text) if one[0] in _set("small")]
    apart = (one for one in found if not any(it.start < one.end() and one.start() < it.end for it in known))
    return tuple(one[0] for one in apart if not _unit_names().fullmatch(one[0]))


@cache
def _unit_names() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{names})s?" for _, names in units.in_orders()), re.IGNORECASE)


def meaning(written: str, language: str) -> str:
    """The only usual meaning of an abbreviation, or ""; "CAP" is no capsule."""
    meanings, key = _meanings().get(_key(written), ()), _key(written)
    if written.isupper() and key in _set("lower"):
        return ""
    return meanings[0][language == "zh"] if len(meanings) == 1 else ""


def _key(written: str) -> str:
    return written.replace(".", "").lower()


@cache
def _meanings() -> Mapping[str, tuple[Meaning, ...]]:
    data = table("abbreviations")
    meanings = {key: (tuple(pair),) for key, pair in (data["usual"] | data["chinese"]).items()}
    return meanings | {key: tuple(map(tuple, pairs)) for key, pairs in data["several"].items()}


@cache
def _set(how: str) -> frozenset[str]:
    """A list of the table's section ``written``."""
    names = table("abbreviations")["written"][how]
    return frozenset(listed(names) if isinstance(names, str) else names)


@cache
def _in_chinese() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(table("abbreviations")["chinese"], key=len, reverse=True))))


def _latin(text: str, language: str) -> Iterator[Abbreviation]:
    shouted = text.isupper() and text.isascii()
    for match in _LATIN.finditer(text):
        start = match.start()
        written = match[0].rstrip("/")
        for piece in [written] if _key(written) in _meanings() else written.split("/"):
            if meanings := _written_as(piece, text, start, shouted):
                plain = piece if "." in piece[:-1] else piece.rstrip(".")
                yield Abbreviation(plain, start, start + len(plain), tuple(pair[language == "zh"] for pair in meanings))
            start += len(piece) + 1


def _written_as(written: str, text: str, start: int, shouted: bool) -> tuple[Meaning, ...]:
    """The meanings of ``written`` at ``start`` of ``text`` if it is an abbreviation there."""
    key, pointed, capitals = _key(written), "." in written[:-1], written.isupper() and not shouted
    small = key in _set("small") and written.islower()
    capitals = capitals or (small and _is_beside_amount(written, text, start))
    if not pointed and ((key in _set("capitals") and not capitals) or (key in _set("lower") and written.isupper())):
        return ()
    before = _WORD_BEFORE.search(text, max(0, start - NEAR), start)
    if before and before[1].lower() in _set("not_after"):
        return ()
    if _ROMAN_BEFORE_CHINESE.match(text, start + len(written)):
        return ()
    meanings = _meanings().get(written) or _meanings().get(key, ())
    return meanings[:1] if _is_decided(key, text) else meanings


def _is_decided(key: str, line: str) -> bool:
    """Whether a line has a word that decides for the first meaning, and none that speaks against it."""
    rule = table("abbreviations")["chosen"].get(key)
    return bool(rule) and all(
        bool(re.search(rf"(?<![A-Za-z]){pattern}", line, re.IGNORECASE)) is wanted
        for pattern, wanted in ((rule["by"], True), (rule["not_by"], False))
    )


def _is_beside_amount(written: str, text: str, start: int) -> bool:
    """Whether an amount, unit or abbreviation precedes ``start``; a form ("cap") may also stand before its amount."""
    after = _AMOUNT_AFTER.match(text, start + len(written)) if written in _set("units") else None
    if after and after["unit"].lower() in _set("units"):
        return True
    before = _AMOUNT_BEFORE.search(text, max(0, start - NEAR), start)
    if not before:
        return False
    word = before["word"].lower()
    return word in _set("units") or word in _meanings() if word else bool(before["number"])


def _chinese(text: str, language: str) -> Iterator[Abbreviation]:
    for match in _in_chinese().finditer(text):
        (pair,) = _meanings()[match[0]]
        yield Abbreviation(match[0], *match.span(), (pair[language == "zh"],))


def _lasting(match: re.Match[str], language: str) -> Abbreviation:
    """ "x5/7": for 5 days; "in 6/52"; sevenths of a week, fifty-seconds and twelfths of a year."""
    count = match["count"] or match["weeks"] or match["days"]
    english, chinese = _LONG[match["of"] or ("52" if match["weeks"] else "7")]
    plural, said = "" if count == "1" else "s", (match["said"] or "for").lower()
    before, after = {"for": ("共", ""), "in": ("", "后")}[said]
    wording = f"{before}{count}{chinese}{after}" if language == "zh" else f"{said} {count} {english}{plural}"
    return Abbreviation(match[0], *match.span(), (wording,))


def _every(match: re.Match[str], language: str) -> Abbreviation:
    """ "q8h", "q.4-6h.", "q 6 hours"."""
    low, high, unit = match["low"], match["high"], _UNITS[match["unit"][0].lower()]
    if language == "zh":
        wording = f"每{low}至{high}{unit[1]}一次" if high else f"每{low}{unit[1]}一次"
    else:
        many = f"{low} to {high}" if high else low
        wording = f"every {unit[0]}" if many == "1" else f"every {many} {unit[0]}s"
    return Abbreviation(match[0], *match.span(), (wording,))
