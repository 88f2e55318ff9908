"""PDF files: text in reading order, headings, table rows with their headers, and a box on the page for every line.

Rules: a file is one record. What cannot be opened raises ``InputError`` with what to do; a page without usable text is
named in the notes and never passes silently; a file with no usable page at all is refused. Headers, footers and page
numbers are left out and counted in a note. PyMuPDF is not thread-safe and may hang or swell on
hostile files: this runs in a child process with limits on time and memory.

Pages without text of their own that can be used are read by OCR where it is installed (``scan.py``), else named.

Not covered: forms' field values, annotations, attachments, and the document's own structure tags, which few hospital
PDFs carry correctly.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from localmed.domain import Message, message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest.line_ends import JOINER
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, Working
from localmed.ingest.readers import bounds_of
from localmed.ingest.readers.pdf.grid import Grid, pieces_of
from localmed.ingest.readers.pdf.layout import Placed, reading_order
from localmed.ingest.readers.pdf.opening import cut_off, opened
from localmed.ingest.readers.pdf.page import Figure, Page, read_page
from localmed.ingest.readers.pdf.paragraphs import (
    Body,
    Paragraph,
    body_of,
    column_rows,
    is_heading,
    join_over_breaks,
    levels,
    paragraphs,
)
from localmed.ingest.readers.pdf.scan import read_scans, remedy, summaries
from localmed.ingest.readers.pdf.tables import TOP_OF_PAGE, Carry, lost_notes, placed, table_blocks
from localmed.ingest.readers.pdf.text import Piece, cleaned

# --- what recurs on many pages at one place ---------------------------------------------------------------------------

# Headers, footers, page numbers, margin stamps: taken out before reading. What is lost here nobody finds again, so a
# line goes only where it hardly belongs to its page. It stands near an edge (or turned against the page), and at the
# same height on at least three pages with the same text. With words it must stand on most pages that have text (in
# smaller type than the running text on half of them), on most of the odd or of the even ones, or in a long run of
# pages, as the name of a chapter does: a warning at the top of three pages is theirs. A figure that counts the pages
# may differ where nothing else stands there but the words of page numbers ("page 3 of 12", "第 3 页"); beside other
# words only in smaller type, since "Day 1", "Day 2" are headings. Nothing goes that is set clearly larger than the
# running text, and no table cell. Not covered: documents of one or two pages, and headers of short chapters.

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


def without_furniture(pages: Sequence[Page]) -> tuple[list[Page], int]:
    """``pages`` without what recurs, and how many lines went."""
    places: Places = defaultdict(list)
    for page in pages:
        for piece in page.pieces:
            for key in _keys(piece, page):
                places[key].append((piece.middle, page.number))
    for place in places.values():
        place.sort()
    body = body_of(piece for page in pages for piece in page.pieces if piece.cell is None)
    odd = [page.number % 2 for page in pages if page.pieces]
    with_text = odd.count(0), odd.count(1)

    def recurs(piece: Piece, page: Page) -> bool:
        small = piece.size <= SMALLER * body.size
        for key in _keys(piece, page):
            kind = key[2]
            if piece.size > (LARGER_NUMBER if kind == "number" else LARGER) * body.size:
                continue
            near = _near_pages(places[key], piece.middle)
            many = (small or kind == "text") and _is_of_many(near, with_text, small)
            if len(near) >= RECURS and (kind == "number" or many):
                return True
        return False

    kept = [replace(page, pieces=tuple(piece for piece in page.pieces if not recurs(piece, page))) for page in pages]
    return kept, sum(len(page.pieces) - len(left.pieces) for page, left in zip(pages, kept, strict=True))


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
    if piece.cell:
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


def _near_pages(heights: Sequence[tuple[float, int]], height: float) -> set[int]:
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
    ends: dict[int, int] = {}  # of runs -> how long they are
    for number in sorted(numbers):
        ends[number] = ends.get(number - step, 0) + 1
    return max(ends.values(), default=0)


# --- hyphens ----------------------------------------------------------------------------------------------------------

# Which hyphens at the ends of printed lines belong to their word, told from the rest of the document.
#
# Rules, first match, for a line that ends in letters and a hyphen before one that begins in small letters: the hyphen
# stays if the word stands with it elsewhere ("non-normal"), goes if it stands elsewhere without it, stays if both
# halves are words of the document by themselves and long enough not to be one by chance ("clean-body"), and goes
# otherwise, as typesetters' hyphens do. Hyphens beside capitals and figures are settled where lines are joined
# (``line_ends.py``).
#
# Not covered: words that a document breaks once and writes nowhere else; no dictionary is asked.

SHORTEST_FIRST, SHORTEST_SECOND = 3, 4  # letters: halves of broken words are seldom words themselves when so long

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_OPEN = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)-$")
_START = re.compile(r"[^\W\d_]+")


def settled(blocks: Sequence[Block]) -> list[Block]:
    """``blocks`` with the hyphens that belong to their words marked."""
    words: set[str | tuple[str, str]] = set()  # in small letters: plain ones, and neighbours within words with hyphens
    for word in (word.lower() for block in blocks for word in _whole_words(block)):
        parts = word.split("-")
        words.update([word] if len(parts) == 1 else itertools.pairwise(parts))
    return [_marked(block, words) for block in blocks]


def _whole_words(block: Block) -> Iterator[str]:
    """The words of ``block`` but those that a line's end breaks."""
    broken = False
    for line in block.lines:
        words = _WORD.findall(line.text)
        stop = len(words) - 1 if _OPEN.search(line.text) else len(words)
        yield from words[int(broken) : stop]
        broken = bool(_OPEN.search(line.text))


def _marked(block: Block, words: Container[str | tuple[str, str]]) -> Block:
    lines = list(block.lines)
    for index, (line, after) in enumerate(itertools.pairwise(block.lines)):
        first, second = _OPEN.search(line.text), _START.match(after.text)
        if first and second and second[0][0].islower() and _stays(first[1].lower(), second[0].lower(), words):
            lines[index] = replace(line, text=line.text + JOINER)
    return replace(block, lines=tuple(lines))


def _stays(first: str, second: str, words: Container[str | tuple[str, str]]) -> bool:
    last = first.rpartition("-")[2]
    if (last, second) in words or last + second in words:
        return (last, second) in words
    return last in words and second in words and len(last) >= SHORTEST_FIRST and len(second) >= SHORTEST_SECOND


# --- reader -----------------------------------------------------------------------------------------------------------

TITLE_CHARACTERS = 250  # longer "titles" are first paragraphs
TITLE_SIZE = 1.2  # of the body size, for a title taken from the first pages
TITLE_PAGES = 2
TOLD = 25  # pages, ~5 s: how often it is said which one is being read
_PROGRAM_TITLE = re.compile(r"^(?:microsoft |untitled|slide |document\d*$|\S+\.\w{2,5}$|\S*_\S*$)", re.IGNORECASE)


@dataclass(slots=True)
class _Flow:
    """The document as it is put together: paragraphs and rows in order, where columns and pages begin, open tables."""

    parts: list[Paragraph | Block] = field(default_factory=list)
    opens: set[int] = field(default_factory=set)
    carry: Carry = field(default_factory=Carry)


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault | Working]:
    """Yield the one record of the PDF at ``path``; raise ``InputError`` if nothing of it can be used."""
    bounds = bounds_of(mapping)
    document = opened(path)
    count = document.page_count
    if count > bounds.pages:
        raise LimitExceeded("pdf.pages", name=path.name, count=count, most=bounds.pages)
    pages: list[Page] = []
    for index in range(count):
        if index and not index % TOLD:
            yield Working(index + 1, count)
        pages.append(read_page(document, index, bounds.page_characters))
    cut = cut_off(document, path)
    metadata = cleaned(str((document.metadata or {}).get("title") or ""))
    document.close()
    kept = mapping.options.get("scans")
    yield from read_scans(path, pages, bounds, kept=Path(kept) if kept else None)
    kept, removed = without_furniture(pages)
    if not any(page.characters and not page.garbled for page in kept):
        if cut:
            raise InputError("pdf.damaged", name=path.name)
        what = message("pdf.nothing", name=path.name, count=count)
        if any(page.flaw or page.garbled for page in kept):
            what = message("pdf.nothing_readable", name=path.name, count=count, notes=_notes(kept, 0))
        raise InputError(what, remedy(kept, bounds))
    body = body_of(piece for page in kept for piece in page.pieces if piece.cell is None)
    flow = _flow(kept, body)
    blocks = tuple(settled(_blocks(flow, body)))
    title = _title(metadata, [page for page in kept if not page.garbled], body) or path.stem
    notes = (*_notes(kept, removed), *lost_notes(flow.carry), *((message("pdf.end_lost"),) if cut else ()))
    yield SourceRecord("", title, blocks, pages=count, notes=notes, lost=sum(page.lost for page in kept))


def _flow(pages: Sequence[Page], body: Body) -> _Flow:
    flow = _Flow()
    for page in pages:
        _add_page(flow, page, body)
        for part in page.parts:
            lying = _Flow(carry=Carry(lost=flow.carry.lost, doubtful=flow.carry.doubtful))
            _add_page(lying, part, body)
            flow.opens.add(len(flow.parts))
            flow.parts += [item if isinstance(item, Block) else _block(item, flow.carry) for item in lying.parts]
    return flow


def _add_page(flow: _Flow, page: Page, body: Body) -> None:
    loose = [piece for piece in page.pieces if piece.cell is None]
    items: list[Placed] = [*(piece for piece in loose if piece.upright), *page.grids, *page.figures, *page.separators]
    top = True
    for region in reading_order(items, body.size):
        flow.opens.add(len(flow.parts))
        for run in _runs(region):
            if isinstance(run, Grid):
                first = top and run.y0 < TOP_OF_PAGE * page.height
                flow.parts.extend(table_blocks(run, pieces_of(run, page.pieces), page.number, first, flow.carry))
                top = False
            else:
                flow.parts.extend(paragraphs(column_rows(run)))
    for piece in loose:
        if not piece.upright:
            flow.parts.extend(paragraphs(column_rows([piece])))


def _runs(region: Sequence[Placed]) -> Iterator[list[Piece] | Grid]:
    """``region`` as runs of text between its tables and figures."""
    shown = [item for item in region if isinstance(item, Piece | Grid | Figure)]
    for _, run in itertools.groupby(shown, lambda item: isinstance(item, Piece)):
        items = list(run)
        if text := [item for item in items if isinstance(item, Piece)]:
            yield text
        yield from (item for item in items if isinstance(item, Grid))


def _blocks(flow: _Flow, body: Body) -> list[Block]:
    heads = [part for part in flow.parts if isinstance(part, Paragraph) and is_heading(part, body)]
    level = {id(head): rank for head, rank in zip(heads, levels(heads, body), strict=True)}
    join_over_breaks(
        [None if isinstance(part, Block) or id(part) in level else part for part in flow.parts], flow.opens
    )
    return [
        part if isinstance(part, Block) else _block(part, flow.carry, level.get(id(part), 0))
        for part in flow.parts
        if isinstance(part, Block) or part.rows
    ]


def _block(part: Paragraph, carry: Carry, level: int = 0) -> Block:
    """``part`` as a block; a heading where it has a level."""
    lines, torn = tuple(map(placed, part.rows)), any(row.between for row in part.rows)
    if torn:
        carry.doubtful |= {line.box.page for line in lines if line.box}
    return Block("heading" if level else "paragraph", lines, level, torn)


def _title(metadata: str, pages: Sequence[Page], body: Body) -> str:
    """The metadata's title if a person wrote it, else the largest heading of the first pages."""
    if 4 <= len(metadata) <= TITLE_CHARACTERS and not _PROGRAM_TITLE.match(metadata) and "�" not in metadata:
        return metadata
    first = [piece for page in pages[:TITLE_PAGES] for piece in page.pieces if piece.cell is None and piece.upright]
    largest = max((piece.size for piece in first), default=0.0)
    if largest < TITLE_SIZE * body.size:
        return ""
    lead = next(page for page in pages if any(piece.size == largest for piece in page.pieces))
    rows = column_rows([piece for piece in lead.pieces if piece.size >= 0.97 * largest and piece.upright])
    below = (index for index in range(1, len(rows)) if rows[index].y0 - rows[index - 1].y1 > largest)
    text = Paragraph(rows[: next(below, None)], 0.0, 0.0).text  # the next heading of its size is not part of it
    return text if 2 <= len(text) <= TITLE_CHARACTERS and any(map(str.isalpha, text)) else ""


def _notes(pages: Sequence[Page], removed: int) -> tuple[Message, ...]:
    """What a librarian must know, pages with the same flaw in one note."""
    flawed: dict[Message, list[int]] = {}
    for page in pages:
        for flaw in (page.flaw or _lack(page), *page.remarks):
            if flaw:
                flawed.setdefault(flaw, []).append(page.number)
    notes = [message("pdf.on_pages", pages=_pages(numbers), note=flaw) for flaw, numbers in flawed.items()]
    for why, numbers, mean, least in summaries(pages):
        read = message("ocr.read", reason=why, mean=mean, least=least)
        if len(numbers) == 1:
            read = message("ocr.read_one", reason=why, mean=mean)
        notes.append(message("pdf.on_pages", pages=_pages(numbers), note=read))
    if removed:
        notes.append(message("pdf.furniture", count=removed))
    return tuple(notes)


def _lack(page: Page) -> Message | None:
    if page.needs and page.ocr is None:
        return message("ocr.may_need" if page.characters else "ocr.needs", needs=page.needs)
    return None if page.characters or not page.blank else message("pdf.blank")


def _pages(numbers: Sequence[int]) -> Message:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = tuple(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return message("pdf.page_numbers", pages=shown)
