"""Abbreviations of medical orders with their usual meanings (``abbreviations.toml``).

An abbreviation with several usual meanings gets all of them, unless the line itself decides ("chosen": "OD" behind a
dose in a line without an eye). "5/7", "2/52" and "3/12" are days, weeks and months. The first and the last may be
dates: "x5/7", "in 3/12", "TDS 5/7" and "5/7 then stop" decide, else both meanings are given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.text import faithfulness, units
from localmed.text.language import HAN, aligned, detect, fold
from localmed.text.tables import cues, in_characters, in_words, listed, table

LONGEST = 12  # characters of an abbreviation as written, points included
LEFT = 12  # pieces of a line that are named as not explained
NEAR = 14  # characters before one that may rule it out: "stage IV"

_LATIN = re.compile(
    rf"(?<![A-Za-z0-9&+-])[Uu][&+][Ee]s?(?![A-Za-z0-9&+-])|(?<![A-Za-z0-9-])(?=[A-Za-z])[A-Za-z0-9./]{{1,{LONGEST}}}(?![A-Za-z0-9-])"
)
_EVERY = re.compile(
    r"(?<![A-Za-z0-9])q\s?\.?\s?(?P<low>\d{1,3})(?:\s?[-–]\s?(?P<high>\d{1,3}))?\s?\.?\s?"
    r"(?P<unit>hours?|hrs?|h|days?|d|weeks?|wks?|w|min)\.?(?![A-Za-z])",
    re.IGNORECASE,
)
_LASTING = re.compile(  # "x5/7", "for 5/7", "5/7", "6/52", "x5d"
    r"(?<![A-Za-z0-9./–-])(?:(?P<said>[x×]|(?:for|in) )\s?)?"
    r"(?:(?P<count>[1-9]\d?)/(?P<of>7|52|12)(?![\d/]|\.\d)|(?<=[x×])(?P<many>[1-9]\d?)\s?(?P<unit>d|wk?)(?![A-Za-z0-9/]))",
    re.IGNORECASE,
)
_OFTEN_BEFORE = re.compile(r"(?<![A-Za-z])(?:[bo]d|tds|qds|bid|tid|qid|mane|nocte)[,.]? $", re.IGNORECASE)
_THEN_STOP = re.compile(r",? then stop\b", re.IGNORECASE)
_AT_MOST = {"7": 31, "52": 52, "12": 36}  # of the count: "BP 90/52" is none
_LONG = {"7": ("day", "天"), "52": ("week", "周"), "12": ("month", "个月")}
_SAID = {  # how long in English, and before and after it in Chinese
    "": ("", "", ""),
    **dict.fromkeys(("x", "×", "for"), ("for ", "共", "")),
    "in": ("in ", "", "后"),
}
_UNITS = {"h": ("hour", "小时"), "d": ("day", "天"), "w": ("week", "周"), "m": ("minute", "分钟")}
PERIOD = re.compile(r"(?<![\d/])(\d{1,2})/(7|52|12)(?![\d/])")  # how British orders write days, weeks and months
_PHRASE_END = re.compile(r"\s*(?:[.,;:)（，。；]|$)", re.MULTILINE)
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,12})\s{0,2}$")
_AMOUNT_BEFORE = re.compile(r"(?P<number>\d?)(?P<word>[A-Za-zµ]{0,12})\.?\s{1,2}$")
_AMOUNT_AFTER = re.compile(r"\s?\d[\d.,]{0,6}\s?(?P<unit>[A-Za-zµ]{1,12})")
_AMOUNT_IN_UNITS = re.compile(r"(?<=\d)\s?(?P<unit>[Uu])(?![A-Za-z0-9/&+-])")
_LIMITED = re.compile(r"\b(?:omit|skip|miss|max(?:imum)?|no more than|up to)\b|不超过|最多|禁|漏", re.IGNORECASE)
_HAN = re.compile(f"[{HAN}]")
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
    every += [_in_units(match, language) for match in _AMOUNT_IN_UNITS.finditer(text)]
    every += [_listed(match, language) for match in _of_words().finditer(text)]
    matches = [*every, *_lasting(text, language), *_latin(text, language), *_chinese(text, language)]
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


def unexplained(line: str, explained: Collection[str], language: str) -> tuple[str, ...]:
    """What a ``line`` of an order says beside the words ``explained``, amounts and plain directions, for a reader of
    ``language``: each run of such words, with the numbers in it. "Max 4 g/24 h", "then stop", an unknown short form.
    """
    folded = fold(aligned(line))
    marks = ["n" if it.isdigit() else "w" if it.isalnum() or it in _SIGNS else "." for it in folded]

    def mark(spans: Iterable[tuple[int, int]], as_what: str) -> None:
        for start, end in spans:
            marks[start:end] = as_what * (end - start)

    mark((match.span() for match in _amounts().finditer(folded)), "n")
    if detect(line) == language:
        mark((span for kind, span in faithfulness.places(folded) if kind in ("time", "way")), "x")
        mark((match.span() for match in _plain().finditer(folded)), ".")
    for written, _ in phrases(line, language):
        mark((match.span() for match in _as_words(written).finditer(folded)), "x")
    mark(((it.start, it.end) for it in abbreviations(line, language) if it.written not in explained), "w")
    for name in explained:
        mark((match.span() for match in _as_words(name).finditer(folded)), "x")
    marked = "".join(marks)
    pieces = (match.span() for clause in _CLAUSE.finditer(line) for match in _PIECE.finditer(marked, *clause.span()))
    return tuple(dict.fromkeys(line[start:end].strip(" .:-–+/") for start, end in pieces))[:LEFT]


_CLAUSE = re.compile(r"(?:(?<=\d)[.,](?=\d)|[^,，;；。、()（）:：\n.]|\.(?=\S))+")
_PIECE = re.compile(r"n*w(?:[wn.]*w)?(?:[n.]*n(?=\.*$))?")  # with numbers behind it only at the end of a clause
_SIGNS = "#↑↓→<>‹›"


def _as_words(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9]){re.escape(fold(name))}(?![a-z])")


@cache
def _amounts() -> re.Pattern[str]:
    """A number with the unit after it."""
    names = "|".join(names for _, names in units.in_orders())
    return re.compile(rf"\d[\d.,/×x–-]*\s?(?:(?:{names})s?(?![a-z]))?")


@cache
def _plain() -> re.Pattern[str]:
    """Forms of medicines and words that say nothing by themselves."""
    entry = table("orders")["plain"]
    return re.compile(rf"(?<![a-z])(?:{in_words(entry['en'])})(?![a-z])|{in_characters(entry['zh'])}")


def meaning(written: str, language: str) -> str:
    """The only usual meaning of an abbreviation, or ""; "CAP" is no capsule."""
    meanings, key = _meanings().get(_key(written), ()), _key(written)
    if written.isupper() and key in _set("lower"):
        return ""
    return meanings[0][language == "zh"] if len(meanings) == 1 else ""


def _key(written: str) -> str:
    return written.replace(".", "").replace("+", "&").lower()


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
def _of_words() -> re.Pattern[str]:
    """Short forms of several words: "alt die", "alt. days"."""
    keys = (re.escape(key).replace(r"\ ", r"\.?\s{1,2}") for key in _meanings() if " " in key)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(keys)})(?![A-Za-z0-9])", re.IGNORECASE | re.ASCII)  # not "dıe"


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
    last = key in _set("last_words") and bool(_PHRASE_END.match(text, start + len(written)))
    small = (key in _set("small") or last) and written.islower()
    capitals = capitals or (small and _is_beside_amount(written, text, start))
    loud = key in _set("lower") and written.isupper()
    loud = loud and not (written in _meanings() and _is_beside_amount(written, text, start))
    if not pointed and ((key in _set("capitals") and not capitals) or loud):
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
    yield from (_listed(match, language) for match in _in_chinese().finditer(text))


def _listed(match: re.Match[str], language: str) -> Abbreviation:
    (pair,) = _meanings()[" ".join(_key(match[0]).split())]
    return Abbreviation(match[0], *match.span(), (pair[language == "zh"],))


def _in_units(match: re.Match[str], language: str) -> Abbreviation:
    """ "10 U", "12u"."""
    return Abbreviation(match["unit"], *match.span("unit"), (table("abbreviations")["units"]["u"][language == "zh"],))


def _lasting(text: str, language: str) -> Iterator[Abbreviation]:
    """ "x5/7": for 5 days; "in 6/52": in 6 weeks; "5/7" may be 5 days or a date. Parts of a week, of a year."""
    for match in _LASTING.finditer(text):
        count, of, said = match["count"] or match["many"], match["of"], (match["said"] or "").strip().lower()
        english, chinese = _LONG[of] if of else _UNITS[match["unit"][0].lower()]
        if of and int(count) > _AT_MOST[of]:
            continue
        often = _OFTEN_BEFORE.search(text, max(match.start() - NEAR, 0), match.start())
        course = bool(often or _THEN_STOP.match(text, match.end()))
        decided = of in (None, "52") or said in ("x", "×", "in") or course
        if not decided and _HAN.search(text):
            continue  # a Chinese order writes the month first, and no days so
        before, zh_before, zh_after = _SAID[("for" if course else said) if decided else ""]
        plural = "" if count == "1" else "s"
        lasts = f"{zh_before}{count}{chinese}{zh_after}" if language == "zh" else f"{before}{count} {english}{plural}"
        day = f"{match['count']}/{of}"
        dated = f"日期{day}" if language == "zh" else f"the date {day}"
        yield Abbreviation(match[0], *match.span(), (lasts,) if decided else (lasts, dated))


def _every(match: re.Match[str], language: str) -> Abbreviation:
    """ "q8h", "q.4-6h.", "q 6 hours"."""
    low, high, unit = match["low"], match["high"], _UNITS[match["unit"][0].lower()]
    if language == "zh":
        wording = f"每{low}至{high}{unit[1]}一次" if high else f"每{low}{unit[1]}一次"
    else:
        many = f"{low} to {high}" if high else low
        wording = f"every {unit[0]}" if many == "1" else f"every {many} {unit[0]}s"
    return Abbreviation(match[0], *match.span(), (wording,))
