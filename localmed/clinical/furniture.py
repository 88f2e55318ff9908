"""What stands around a document's text and states nothing: disclaimers, edition lines, page numbers, imprints.

A sentence is furniture if nothing of it is left without the notices of ``publications.toml``, dates and page numbers;
if it is the document's title with the name of who issues it; or if it names who issues it after another such sentence.
What warns is never furniture.
"""

from __future__ import annotations

import re

from localmed.clinical.tables import cues
from localmed.domain import Passage
from localmed.language import HAN, sentences

LONGEST = 80  # characters of an imprint

_PAGE = re.compile(r"\bpage \d+(?: of \d+)?\b|第\s*\d+\s*页(?:\s*[，,]?\s*共\s*\d+\s*页)?", re.IGNORECASE)
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_BLANK = re.compile(rf"(?:\b(?:{_MONTH})[a-z]*|[第年月日\W\d_])*", re.IGNORECASE)
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


def line_spans(passage: Passage) -> list[tuple[int, int]]:
    """Where the sentences of ``passage`` stand, or the rows of a table, without furniture."""
    if passage.table:
        return [row.span() for row in _ROW.finditer(passage.text)]
    around = furniture(passage)
    return [(start, end) for start, end in sentences(passage.text) if start not in around]


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
