"""What recurs on many pages at one place: headers, footers, page numbers, margin stamps. Taken out before reading.

Rules: a line near an edge (or turned against the page) goes if it stands at the same height on at least three pages
with the same text, or with the same text but for one figure that counts the pages. Figures that do not count pages
are not ignored: "Appendix 2" and "Appendix 3" at the top of two pages are headings, and a number at the foot of a
table is a result. Table cells are never taken.

Not covered: documents of one or two pages, whose headers stay in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from localmed.ingest.readers.pdf_page import Page
from localmed.ingest.readers.pdf_text import Piece

EDGE = 0.12  # of the page height at top and bottom
NUMBER_EDGE = 0.2  # for a page number alone: wide margins put it further in
DRIFT = 4.0  # points that a recurring line moves from page to page
RECURS = 3  # pages
MOST_FIGURES = 4  # numbers in a line that are tried as the page's; imprints have more, but then their text is constant

_NUMBER = re.compile(r"\d{1,7}")
_ROMAN = re.compile(r"^[\s\-–—]*([ivxlc]{1,8})[\s\-–—]*$", re.IGNORECASE)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

Key = tuple[str, str]
Places = dict[Key, list[tuple[float, int]]]


def without_furniture(pages: Sequence[Page]) -> tuple[list[Page], int]:
    """``pages`` without what recurs, and how many lines went."""
    places: Places = defaultdict(list)
    for page in pages:
        for piece in page.pieces:
            for key in _keys(piece, page):
                places[key].append((piece.middle, page.number))
    for found in places.values():
        found.sort()
    kept = [
        replace(page, pieces=tuple(piece for piece in page.pieces if not _recurs(piece, page, places)))
        for page in pages
    ]
    return kept, sum(len(page.pieces) for page in pages) - sum(len(page.pieces) for page in kept)


def _keys(piece: Piece, page: Page) -> Iterator[Key]:
    """What makes two lines the same: their edge, and their text as it is or with one figure taken from the page's."""
    zone = _zone(piece, page)
    if not zone:
        return
    text = piece.text.casefold()
    if any(character.isalpha() for character in text):
        yield zone, text
    for number in list(_NUMBER.finditer(text))[:MOST_FIGURES]:
        yield zone, f"{text[: number.start()]}#{int(number[0]) - page.number}{text[number.end() :]}"
    roman = _ROMAN.match(text)
    if roman:
        yield zone, f"roman{_roman(roman[1]) - page.number}"


def _zone(piece: Piece, page: Page) -> str:
    if piece.cell >= 0:
        return ""
    if not piece.upright:
        return "side"
    edge = EDGE if any(character.isalpha() for character in piece.text) else NUMBER_EDGE
    if piece.middle < edge * page.height:
        return "top"
    return "bottom" if piece.middle > (1 - edge) * page.height else ""


def _roman(text: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in text.lower()]
    return sum(-value if value < max(values[index:]) else value for index, value in enumerate(values))


def _recurs(piece: Piece, page: Page, places: Places) -> bool:
    return any(_pages_near(places[key], piece.middle) >= RECURS for key in _keys(piece, page))


def _pages_near(found: Sequence[tuple[float, int]], height: float) -> int:
    low = bisect_left(found, (height - DRIFT, 0))
    high = bisect_right(found, (height + DRIFT, 1 << 30))
    return len({number for _, number in found[low:high]})
