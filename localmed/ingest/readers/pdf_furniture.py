"""What recurs on many pages at one place: headers, footers, page numbers, margin stamps. Taken out before reading.

Rules: a line near an edge (or turned against the page) goes if its text, figures ignored, stands at the same height on
at least three pages. A line of figures alone goes only if it counts the pages, so that a table's number at the foot of
a page is never lost. Table cells are never taken.

Not covered: documents of one or two pages, whose headers stay in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from localmed.ingest.readers.pdf_page import Page
from localmed.ingest.readers.pdf_text import Piece

EDGE = 0.12  # of the page height at top and bottom
DRIFT = 4.0  # points that a recurring line moves from page to page
RECURS = 3  # pages

_NUMBER = re.compile(
    r"^(?:page|p\.|第)?[\s\-–—|·•]*(\d{1,6})[\s\-–—|·•]*(?:(?:/|of|页|共)\s*\d{0,5}\s*页?)?$", re.IGNORECASE
)
_ROMAN = re.compile(r"^[\s\-–—]*[ivxlc]{1,7}[\s\-–—]*$", re.IGNORECASE)

Places = dict[tuple[str, str], list[tuple[float, int]]]


def without_furniture(pages: Sequence[Page]) -> tuple[list[Page], int]:
    """``pages`` without what recurs, and how many lines went."""
    places: Places = defaultdict(list)
    for page in pages:
        for piece in page.pieces:
            key = _key(piece, page)
            if key is not None:
                places[key].append((piece.middle, page.number))
    for found in places.values():
        found.sort()
    kept = [
        replace(page, pieces=tuple(piece for piece in page.pieces if not _recurs(piece, page, places)))
        for page in pages
    ]
    return kept, sum(len(page.pieces) for page in pages) - sum(len(page.pieces) for page in kept)


def _key(piece: Piece, page: Page) -> tuple[str, str] | None:
    """What makes two lines the same: where they may stand, and their text without figures."""
    if piece.cell >= 0:
        return None
    if not piece.upright:
        zone = "side"
    elif piece.middle < EDGE * page.height:
        zone = "top"
    elif piece.middle > (1 - EDGE) * page.height:
        zone = "bottom"
    else:
        return None
    number = _NUMBER.match(piece.text)
    if number:
        return zone, f"#{int(number[1]) - page.number}"
    if _ROMAN.match(piece.text):
        return zone, "roman"
    text = re.sub(r"\d+", "#", piece.text).casefold()
    return (zone, text) if any(character.isalpha() for character in text) else None


def _recurs(piece: Piece, page: Page, places: Places) -> bool:
    key = _key(piece, page)
    if key is None:
        return False
    found = places[key]
    low = bisect_left(found, (piece.middle - DRIFT, 0))
    high = bisect_right(found, (piece.middle + DRIFT, 1 << 30))
    return len({number for _, number in found[low:high]}) >= RECURS
