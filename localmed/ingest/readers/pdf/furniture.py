"""What recurs on many pages at one place: headers, footers, page numbers, margin stamps. Taken out before reading.

Rules: what is lost here nobody finds again, so a line goes only where it hardly belongs to its page. It stands near an
edge (or turned against the page), and at the same height on at least three pages with the same text. With words it must
stand on most pages that have text (in smaller type than the running text on half of them), on most of the odd or of the
even ones, or in a long run of pages, as the name of a chapter does: a warning at the top of three pages is theirs. A
figure that counts the pages may differ where nothing else stands there but the words of page numbers ("page 3 of 12",
"第 3 页"); beside other words only in smaller type, since "Day 1", "Day 2" are headings. Nothing goes that is set
clearly larger than the running text, and no table cell.

Not covered: documents of one or two pages, and headers of short chapters, which stay in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localmed.ingest.readers.pdf.page import Page
from localmed.ingest.readers.pdf.paragraphs import body_of
from localmed.ingest.readers.pdf.text import Piece

EDGE = 0.12  # of the page height at top and bottom
NUMBER_EDGE = 0.2  # for a page number alone: wide margins put it further in
DRIFT = 4.0  # points that a recurring line moves from page to page
RECURS = 3  # pages
HALF, MOST = 0.5, 0.7  # of the pages: covers, blank pages and the first pages of chapters have no header
RUN = 10  # pages in a row, of text in small type; twice as many of other text
LARGER = 1.2  # times the running text: headings
LARGER_NUMBER = 1.5  # times it, for page numbers: gazettes and slides set them large
SMALLER = 0.95  # times it, at most: footers are set so, warnings are not
MOST_FIGURES = 4  # numbers in a line that are tried as the page's; imprints have more, but then their text is constant

_NUMBER = re.compile(r"\d{1,7}")
_ROMAN = re.compile(r"^[\s\-–—]*([ivxlc]{1,8})[\s\-–—]*$", re.IGNORECASE)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_PAGE_WORDS = re.compile(r"(?:pages?|pg|p|sheet|of|[第页頁共总總\d]|[^\w%‰°<>≤≥±])*")  # "20 %", "> 20" are results

Kind = Literal["text", "number", "counted"]  # constant, a page number alone, a figure that counts beside other words
Key = tuple[str, str, Kind]
Places = dict[Key, list[tuple[float, int]]]


@dataclass(frozen=True, slots=True)
class _Document:
    """Where each line stands, how many pages have text (even ones, odd ones), and the size of the running text."""

    places: Places
    pages: tuple[int, int]
    size: float


def without_furniture(pages: Sequence[Page]) -> tuple[list[Page], int]:
    """``pages`` without what recurs, and how many lines went."""
    places: Places = defaultdict(list)
    for page in pages:
        for piece in page.pieces:
            for key in _keys(piece, page):
                places[key].append((piece.middle, page.number))
    for place in places.values():
        place.sort()
    body = body_of(piece for page in pages for piece in page.pieces if piece.cell < 0)
    odd = [page.number % 2 for page in pages if page.pieces]
    document = _Document(places, (odd.count(0), odd.count(1)), body.size)
    kept = [
        replace(page, pieces=tuple(piece for piece in page.pieces if not _recurs(piece, page, document)))
        for page in pages
    ]
    return kept, sum(len(page.pieces) for page in pages) - sum(len(page.pieces) for page in kept)


def _keys(piece: Piece, page: Page) -> Iterator[Key]:
    """What makes two lines the same: their edge, and their text as it is or with one figure taken from the page's."""
    zone = _zone(piece, page)
    if not zone:
        return
    text = "".join(piece.text.casefold().split())
    if any(character.isalnum() for character in text):  # a number alone may be the count of pages, on a line of its own
        yield zone, text, "text"
    for number in list(_NUMBER.finditer(text))[:MOST_FIGURES]:
        before, after = text[: number.start()], text[number.end() :]
        alone = _PAGE_WORDS.fullmatch(before) and _PAGE_WORDS.fullmatch(after)
        yield zone, f"{before}#{int(number[0]) - page.number}{after}", "number" if alone else "counted"
    roman = _ROMAN.match(text)
    if roman:
        yield zone, f"roman{_roman(roman[1]) - page.number}", "number"


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


def _recurs(piece: Piece, page: Page, document: _Document) -> bool:
    small = piece.size <= SMALLER * document.size
    for key in _keys(piece, page):
        kind = key[2]
        if piece.size > (LARGER_NUMBER if kind == "number" else LARGER) * document.size:
            continue
        near = _pages_near(document.places[key], piece.middle)
        if len(near) < RECURS:
            continue
        if kind == "number" or ((small or kind == "text") and _is_of_many(near, document.pages, small)):
            return True
    return False


def _pages_near(heights: Sequence[tuple[float, int]], height: float) -> set[int]:
    low = bisect_left(heights, (height - DRIFT, 0))
    high = bisect_right(heights, (height + DRIFT, 1 << 30))
    return {number for _, number in heights[low:high]}


def _is_of_many(near: set[int], pages: tuple[int, int], small: bool) -> bool:
    """Whether a line on the pages ``near`` belongs to the document, or a large part of it, rather than to the pages."""
    sides = [sum(number % 2 == side for number in near) for side in (0, 1)]
    return (
        len(near) >= (HALF if small else MOST) * sum(pages)
        or any(count >= max(RECURS, MOST * every) for count, every in zip(sides, pages, strict=True))
        # step 2: the name of a chapter on its left-hand pages
        or max(_longest_run(near, step) for step in (1, 2)) >= (RUN if small else 2 * RUN)
    )


def _longest_run(numbers: set[int], step: int) -> int:
    longest = 0
    for start in (number for number in numbers if number - step not in numbers):
        length = 1
        while start + length * step in numbers:
            length += 1
        longest = max(longest, length)
    return longest
