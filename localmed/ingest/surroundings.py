"""The text around a passage, for the picture of a source that has no pages: its neighbours in the document.

As the reader of a printed page sees what stands before and after. Each heading path stands before the first passage
under it; whole passages are taken, nearest first, until ``AROUND`` characters on a side are full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.domain import Passage

AROUND = 1_500  # characters on each side: with a passage of 1,000 about one printed page

_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A text and where the passage stands in it."""

    text: str
    start: int
    end: int


def around(passage: Passage, document: Sequence[Passage]) -> Surroundings:
    """``passage`` among the passages of its ``document`` in their order; alone where it is none of them."""
    place = next((at for at, each in enumerate(document) if each.id == passage.id), None)
    if place is None:
        return Surroundings(passage.text, 0, len(passage.text))
    before = _fitting(document[:place][::-1])[::-1]
    after = _fitting(document[place + 1 :])
    text, start = "", 0
    headings: tuple[str, ...] = ()
    for each in (*before, passage, *after):
        text += _GAP if text else ""
        if each.headings != headings:
            headings = each.headings
            text += f"{' › '.join(headings)}\n" if headings else ""
        if each is passage:
            start = len(text)
        text += each.text
    return Surroundings(text, start, start + len(passage.text))


def _fitting(passages: Sequence[Passage]) -> list[Passage]:
    """The first of ``passages`` that fit together."""
    kept: list[Passage] = []
    room = AROUND
    for each in passages:
        room -= len(each.text)
        if room < 0:
            break
        kept.append(each)
    return kept
