"""Finds furniture: text that states nothing, such as disclaimers, edition lines, page numbers and imprints.

A sentence is furniture if it has nothing but notices of ``publications.toml``, dates and page numbers; if it is the
document's title with its issuer; or if it names the issuer after another such sentence. A warning is never furniture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from localmed.domain import Passage
from localmed.text.amounts import amounts
from localmed.text.language import HAN, fold, sentences
from localmed.text.tables import cues

LONGEST = 80  # characters of an imprint
LEAST_LETTERS, LEAST_CHINESE = 2, 2  # of what states something
LEAST_SHARE = 0.25  # of the characters that are letters: the figures of a graphic, a list of numbers
SHOUTED, LONG = 3, 5  # words in capitals that are a heading ("2025 GOALS"), and letters of its longest

_PAGE = re.compile(r"\bpage \d+(?: of \d+)?\b|第\s*\d+\s*页(?:\s*[，,]?\s*共\s*\d+\s*页)?", re.IGNORECASE)
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_BLANK = re.compile(rf"(?:\b(?:{_MONTH})[a-z]*|[第年月日\W\d_])*", re.IGNORECASE)
_EDGES = re.compile(r"^[^\w≥≤<>]+|[^\w%)）\]]+$")
_LATIN = re.compile(r"[^\W\d_\u2e80-\uffff]")
_CHINESE = re.compile(f"[{HAN}]")
_INK = re.compile(r"\s+")
_LABEL = re.compile(
    r"(?:table|figure|fig|box|chapter|section|appendix|annex|part|page|step|ref(?:erence)?s?|contents)\.?\s*[\dA-Z.-]{0,6}|[ivxl]{1,5}"
    r"|(?:表|图|第|附录|附件)\s*[\d一二三四五六七八九十A-Z.-]{1,6}\s*[章节页条]?|参考文献|目录",
    re.IGNORECASE,
)
_ROW = re.compile(r"[^\n]*\S[^\n]*")
_NAME = re.compile(rf"(?:(?:[A-Z]\w*|of|and|the|for|in|[{HAN}]+)[\s,，.。&]*)+")


def furniture(passage: Passage) -> frozenset[int]:
    """Where the sentences of ``passage`` start that are furniture; none of a table's."""
    starts: set[int] = set()
    before = False
    for start, end in () if passage.table else sentences(passage.text):
        text = passage.text[start:end]
        before = _notice(text) or _running_head(text, passage.title) or (before and imprint(text))
        if before:
            starts.add(start)
    return frozenset(starts)


def spans(passage: Passage) -> list[tuple[int, int]]:
    """Where the sentences of ``passage`` stand, or the rows of a table."""
    return [row.span() for row in _ROW.finditer(passage.text)] if passage.table else sentences(passage.text)


def line_spans(passage: Passage) -> list[tuple[int, int]]:
    """The same without furniture."""
    around = furniture(passage)
    return [(start, end) for start, end in spans(passage) if start not in around]


def states_nothing(text: str, headings: Iterable[str] = ()) -> bool:
    """Whether ``text`` states nothing by itself: numbers and signs alone, a bullet, a label, a date, a lone heading."""
    bare = _EDGES.sub("", text)
    letters, han = len(_LATIN.findall(bare)), len(_CHINESE.findall(bare))
    if letters < LEAST_LETTERS and han < LEAST_CHINESE:
        return True
    if _LABEL.fullmatch(bare) or fold(bare) in {fold(_EDGES.sub("", one)) for one in headings}:
        return True
    dated, dates = cues("publications", "edition").subn("", text)
    return (
        bool(dates and _BLANK.fullmatch(dated))
        or _shouted(bare)
        or (not han and letters < LEAST_SHARE * len(_INK.sub("", bare)))
    )


def _shouted(bare: str) -> bool:
    """Whether ``bare`` is a few words in capitals that neither warn nor give an amount."""
    words = bare.split()
    longest = max(map(len, words), default=0)
    few = bare.isupper() and len(words) <= SHOUTED and longest >= LONG
    says = any(cues("negation", section).search(bare) for section in ("warns", "record"))
    return few and not amounts(bare) and not says


def _notice(text: str) -> bool:
    left, notices = cues("publications", "notices").subn("", text)
    left, pages = _PAGE.subn("", left)
    return bool(notices or pages) and bool(_BLANK.fullmatch(left))


def _running_head(text: str, title: str) -> bool:
    left = text.replace(title, "", 1) if title else text
    return left != text and (not left.strip(" .。") or imprint(left.strip()))


def imprint(text: str) -> bool:
    """Whether ``text`` is no more than the name of who issues the document."""
    institution = cues("publications", "imprint").search(text)
    unnamed = cues("publications", "units").sub("", text)
    says = any(cues("negation", section).search(unnamed) for section in ("warns", "urgent"))
    acts = cues("publications", "no_imprint").search(text)
    return bool(institution and _NAME.fullmatch(text) and len(text) <= LONGEST and not says and not acts)
