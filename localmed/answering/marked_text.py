"""Reads an answer written elsewhere: sentences, citations in the usual styles, and the list of references.

Citations: ``[1]``, ``[1, 2]``, ``[1-3]``, ``[^1]``, ``[citation:1]``, ``【1】``, superscripts and ``<sup>``, ``(Smith
2020)``, ``Smith et al. (2020)``, ``PMID: 123``, a DOI. A number after "CI" is an interval, a superscript after a unit
or a number is a power. ``[]``, ``[3-1]``, ``[1,,2]`` and ``[1`` count as malformed. Each citation has one marker:
``1``, ``smith 2020``, ``pmid:123``, ``doi:10.1/x``.

The list of references follows a heading of that name, or is the final lines ``[1] ...`` if one of their numbers is
cited above. Entries keep their number and identifiers. The library alone says what a marker refers to
(``retrieval.studies``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from localmed.retrieval.studies import Reference
from localmed.text.language import sentences

RANGE = 20  # citations of one range; "[1-300]" is no citation
REFERENCES = 200  # entries read of a list

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
# Every run is bounded: a text of a million blanks or capitals must be read in time.
_NUMBERS = r"[\d,，、;；\s–—-]{0,80}"
_NAME = r"[A-Z][\w'’-]{1,30}|[\u4e00-\u9fff]{2,4}"
_AUTHORS = rf"(?:{_NAME})(?:(?:\s?(?:,|&|and|和|与)\s?(?:{_NAME})){{0,6}}|\s+et al\.?|\s*等)"
_YEAR = r"(?:19|20)\d\d[a-z]?"
_BLANK = r"[^\S\n]{0,4}"  # a citation at the beginning of a line is not the line before's
_KEY = r"(?:citations?|cite|sources?|refs?|来源|引用|文献)?\s?[:：]?"
_TAIL = r"[^\s\])）,;，；]{1,200}[^\s\])）,;，；.。]"
_CITATION = re.compile(
    rf"{_BLANK}(?<!CI )(?<!CI: )(?<!CI, )[\[［【]\s?\^?\s?{_KEY}\s?(?P<numbers>{_NUMBERS})[\]］】]"
    rf"|{_BLANK}<sup>\s?\[?(?P<html>{_NUMBERS})\]?\s?</sup>"
    r"|(?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹][⁰¹²³⁴⁵⁶⁷⁸⁹,⁻–]{0,40})"
    rf"|{_BLANK}[(（]\s?(?P<named>{_AUTHORS},?\s?{_YEAR}(?:\s?[;；]\s?{_AUTHORS},?\s?{_YEAR}){{0,9}})\s?[)）]"
    rf"|(?P<author>{_AUTHORS})\s?[(（](?P<year>{_YEAR})[)）]"
    rf"|{_BLANK}[(（\[]?\s?PMID\s?[:：]?\s?(?P<pmid>\d{{1,8}})(?:\s?[)）\]])?"
    rf"|{_BLANK}[(（\[]?\s?(?:doi\s?[:：]\s?|https?://(?:dx\.)?doi\.org/)(?P<doi>10\.\d{{4,9}}/{_TAIL})(?:\s?[)）\]])?"
    rf"|{_BLANK}(?P<open>\[\d{{1,3}})(?=\s|[.。,，;；]|$)"
)
_POWER = re.compile(r"(?:\d|(?<![A-Za-z])(?:[cmkdµμn]?m|s|ft|in))$")  # before a superscript that is no citation
_TITLES = "references?|bibliography|sources|literature cited|works cited|参考文献|参考资料|引用文献|来源"
_SPACE = r"[^\S\n]{0,8}"
_HEADING = re.compile(
    rf"^{_SPACE}(?:#{{1,6}}{_SPACE})?\*{{0,3}}(?:{_TITLES})\*{{0,3}}{_SPACE}[:：]?{_SPACE}\*{{0,3}}{_SPACE}$",
    re.IGNORECASE | re.MULTILINE,
)
_LISTED = re.compile(
    r"[\[［【]\s?\^?(?P<number>\d{1,3})\s?[\]］】][.:：]?\s*[^\s\[［【.。,，;；:：]"
)  # without a heading
_ENTRY = re.compile(
    r"^\s*(?:[\[［【]?\s*\^?(?P<number>\d{1,3})\s*[\]］】]?\s*[.)、:：]?(?:\s+|(?<=[\]］】]))|[-*•]\s+)?(?P<text>\S.*)$"
)
_PMID = re.compile(r"PMID\s*[:：]?\s*(\d{1,8})", re.IGNORECASE)
_LISTED_LINE = re.compile(r"[-*•·–+]\s|[(（]?\w{1,2}[.)）、]")
_DOI = re.compile(rf"10\.\d{{4,9}}/{_TAIL}")


@dataclass(frozen=True, slots=True)
class Marked:
    """A sentence without its citations; ``start:end`` includes them."""

    text: str
    markers: tuple[str, ...]
    start: int
    end: int
    heading: bool = False  # a line that only names what comes after it


@dataclass(frozen=True, slots=True)
class MarkedText:
    """The answer's sentences, the number of malformed citations, and its references."""

    sentences: tuple[Marked, ...]
    malformed: int
    references: tuple[Reference, ...]

    def reference(self, marker: str) -> Reference:
        """The entry of ``marker``, else the marker as an identifier."""
        for reference in self.references:
            if reference.marker == marker or _by_author(marker, reference.text):
                return reference
        return Reference(marker, identifiers=(marker,) if marker.startswith(("pmid:", "doi:")) else ())


@dataclass(frozen=True, slots=True)
class _Found:
    """A removed citation: its place in the text without citations, and its markers (``None``: malformed).

    ``removed``: characters removed so far, its own included.
    """

    at: int
    removed: int
    markers: tuple[str, ...] | None


def read(text: str) -> MarkedText:
    """Read any ``text``."""
    headings = list(_HEADING.finditer(text))
    end, start = headings[-1].span() if headings else (_list_start(text),) * 2
    body, references = text[:end], tuple(_references(text[start:]))
    plain, citations = _taken_out(body)
    spans = sentences(plain)
    cited: dict[int, list[str]] = defaultdict(list)  # what each sentence cites
    for citation in citations:
        cited[_owner(spans, plain, citation.at)] += citation.markers or ()
    marked = tuple(
        Marked(
            plain[start:end],
            tuple(dict.fromkeys(cited[place])),
            start + _removed(citations, start),
            end + _removed(citations, end),
            not cited[place] and _is_heading(plain, start, end),
        )
        for place, (start, end) in enumerate(spans)
    )
    return MarkedText(marked, sum(citation.markers is None for citation in citations), references)


def _is_heading(text: str, start: int, end: int) -> bool:
    """Whether ``start:end`` of ``text`` is a line of its own that is marked as a heading, or stands as one.

    That is one in bold, or between blank lines, without a number, the mark of a list, or an end of a sentence.
    """
    begin, stop = text.rfind("\n", 0, start) + 1, (text.find("\n", end) + 1 or len(text) + 1) - 1
    line = text[begin:stop].strip()
    if line.strip("#*_ ") != text[start:end].strip("#*_ ") or line.rstrip("*_ ").endswith((".", "。", "!", "！")):
        return False
    if line.startswith("#") or (line.startswith(("**", "__")) and line.endswith(("**", "__"))):
        return True
    before, after = text[:begin].removesuffix("\n"), text[stop:].removeprefix("\n")
    alone = (not before or before.endswith("\n")) and after.startswith("\n") and bool(after.strip())
    return alone and not _LISTED_LINE.match(line) and not any(character.isdigit() for character in line)


def _list_start(text: str) -> int:
    """The start of final lines ``[1] ...`` that are a list of references, else the length of ``text``."""
    start, numbers, end = len(text), set[str](), len(text)
    for line in reversed(text.splitlines(keepends=True)):
        end -= len(line)
        entry = _LISTED.match(line.strip())
        if not entry and line.strip():
            break
        if entry and entry["number"] in numbers:  # a reference is listed once, a citation before a sentence may recur
            return len(text)
        if entry:
            numbers.add(entry["number"])
            start = end
    cited = {marker for citation in _taken_out(text[:start])[1] for marker in citation.markers or ()}
    return start if numbers & cited else len(text)


def _taken_out(body: str) -> tuple[str, list[_Found]]:
    """``body`` without citations, and the citations."""
    plain, last, removed = "", 0, 0
    citations: list[_Found] = []
    for match in _CITATION.finditer(body):
        markers = _markers(match, body)
        if markers == ():
            continue
        plain += body[last : match.start()]
        # The authors of "Smith et al. (2020) found" are a part of the sentence.
        kept = match["author"] or ""
        plain, last = plain + kept, match.end()
        removed += match.end() - match.start() - len(kept)
        citations.append(_Found(len(plain), removed, markers))
    return plain + body[last:], citations


def _markers(match: re.Match[str], body: str) -> tuple[str, ...] | None:
    """The markers of a citation; empty for no citation, ``None`` for a malformed one."""
    if match["open"]:
        return None
    if match["raised"]:
        return (
            ()
            if _POWER.search(body[max(0, match.start() - 8) : match.start()])
            else _listed(match["raised"].translate(_RAISED))
        )
    if match["named"]:
        return tuple(_authored(name) for name in re.split(r"[;；]", match["named"]))
    if match["author"]:
        return (_authored(f"{match['author']} {match['year']}"),)
    if match["pmid"]:
        return (f"pmid:{match['pmid']}",)
    if match["doi"]:
        return (f"doi:{match['doi'].lower()}",)
    return _listed(match["numbers"] if match["numbers"] is not None else match["html"])


def _listed(numbers: str) -> tuple[str, ...] | None:
    """The markers of ``1, 3-5``; ``None`` for anything else than numbers and ranges."""
    markers: list[str] = []
    for part in re.split(r"[,，、;；]", numbers):
        item = re.fullmatch(r"\s*(\d{1,3})(?:\s*[-–—]\s*(\d{1,3}))?\s*", part)
        if not item:
            return None
        first, last = int(item[1]), int(item[2] or item[1])
        if not 0 < first <= last < first + RANGE or (item[2] and first == last):
            return None
        markers += map(str, range(first, last + 1))
    return tuple(dict.fromkeys(markers))


def _authored(text: str) -> str:
    """``Smith et al., 2020`` as ``smith 2020``: the first author and the year."""
    names = re.findall(_NAME, text)
    years = re.findall(_YEAR, text)
    return f"{names[0].removesuffix('等').lower()} {years[-1]}"


def _by_author(marker: str, entry: str) -> bool:
    """Whether ``marker`` is an author and year that ``entry`` names."""
    name, _, year = marker.rpartition(" ")
    return bool(name) and year.rstrip("abcdefgh") in entry and name in entry.lower()


def _owner(spans: list[tuple[int, int]], plain: str, at: int) -> int:
    """The sentence of a citation: the one that it is in or follows on its line."""
    place = bisect_left(spans, (at,)) - 1
    if place < 0:
        return 0
    end = spans[place][1]
    return place + 1 if at > end and "\n" in plain[end:at] and place + 1 < len(spans) else place


def _removed(citations: Sequence[_Found], at: int) -> int:
    """How many characters of citations stood before ``at`` of the text without citations."""
    place = bisect_left(citations, at, key=attrgetter("at"))
    return citations[place - 1].removed if place else 0


def _references(text: str) -> Iterator[Reference]:
    entries = [line for line in text.splitlines() if line.strip()][:REFERENCES]
    for place, line in enumerate(entries, 1):
        entry = _ENTRY.match(line)
        if entry:
            identifiers = (*(f"pmid:{number}" for number in _PMID.findall(line)),
                           *(f"doi:{name.lower()}" for name in _DOI.findall(line)))  # fmt: skip
            yield Reference(entry["number"] or str(place), entry["text"].strip(), identifiers)
