"""A document without pages as text, in parts of about a printed page, each under its headings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from localmed.domain import Passage
from localmed.messages import joined
from localmed.presentation.finding import WITHIN, Piece
from localmed.presentation.neutral import one_line
from localmed.text.furniture import spans

PART = 3_000  # characters of a part: about a printed page

Mark = tuple[Passage, int, int]  # characters of a passage


@dataclass(frozen=True, slots=True)
class HeadedText:
    """The sentences and rows under ``headings``."""

    headings: str
    pieces: tuple[Piece, ...]


def parts(document: Sequence[Passage]) -> list[tuple[Passage, ...]]:
    """Split ``document`` into parts of at most ``PART`` characters, or of one longer passage."""
    found: list[list[Passage]] = []
    room = 0
    for passage in document:
        room -= len(passage.text)
        if room < 0 or not found:
            found.append([])
            room = PART - len(passage.text)
        found[-1].append(passage)
    return [tuple(part) for part in found]


def headed(part: Sequence[Passage], marks: Sequence[Mark], language: str) -> tuple[HeadedText, ...]:
    """``part`` as it is shown, with ``marks``."""
    found = []
    for headings, passages in groupby(part, key=lambda one: [name for name in one.headings if name != one.title]):
        pieces = tuple(piece for passage in passages for piece in _pieces(passage, marks))
        found.append(HeadedText(joined(map(one_line, headings), language, WITHIN), pieces))
    return tuple(found)


def _pieces(passage: Passage, marks: Sequence[Mark]) -> Iterator[Piece]:
    text, last = passage.text, 0
    own = [(start, end) for one, start, end in marks if one.id == passage.id]
    for start, end in spans(passage):
        marked = any(start < last_one and first < end for first, last_one in own)
        breaks = last == 0 or "\n" in text[last:start]
        yield Piece(one_line(text[start:end]), marked, breaks, passage.table)
        last = end
