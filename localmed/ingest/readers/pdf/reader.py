"""Reads PDF files: text in reading order, headings, table rows with their headers, and a box for every line.

Rules: a file is one record. Every page without usable text is named in the notes; a file without any usable page is
refused. Headers, footers and page numbers are left out and counted in a note. Pages without usable text are read by
OCR if it is installed (``scan.py``). PyMuPDF is not thread-safe and may hang or exhaust memory on hostile files, so
this runs in a child process with limits on time and memory.

Not covered: values of form fields, annotations, attachments, and structure tags, which few hospital PDFs carry
correctly.
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
from localmed.ingest.readers.pdf.opening import is_cut_off, open_document
from localmed.ingest.readers.pdf.page import REASONS, Figure, Page, read_page
from localmed.ingest.readers.pdf.paragraphs import (
    Body,
    Paragraph,
    column_rows,
    find_body,
    is_heading,
    join_over_breaks,
    levels,
    paragraphs,
)
from localmed.ingest.readers.pdf.scan import read_scans
from localmed.ingest.readers.pdf.tables import TOP_OF_PAGE, Carry, make_line, table_blocks, table_notes
from localmed.ingest.readers.pdf.text import Piece, clean_text

# --- headers, footers, page numbers and margin stamps -----------------------------------------------------------------

# They are removed before reading. Removed text is lost, so the rules are strict. A line must lie near an edge (or be
# turned) and recur at the same height with the same text on at least three pages. A line with words must also be on
# most pages with text (half of them for small type), on most odd or even pages, or in a long run of pages, like the
# name of a chapter: a warning at the top of three pages stays. A number may count the pages beside the words of page
# numbers ("page 3 of 12", "第 3 页"), beside other words only in small type, because "Day 1", "Day 2" are headings.
# Table cells and clearly larger type stay. Not covered: documents of one or two pages, headers of short chapters.

EDGE = 0.12  # of the page height at top and bottom
NUMBER_EDGE = 0.2  # for a page number alone, which wide margins push inwards
DRIFT = 4.0  # points that a recurring line moves from page to page
RECURS = 3  # pages
HALF, MOST = 0.5, 0.7  # of the pages: covers, blank pages and the first pages of chapters have no header
RUN = 10  # consecutive pages for small type; twice as many for other text
LARGER = 1.2  # times the body size: headings
LARGER_NUMBER = 1.5  # times it, for page numbers: gazettes and slides set them large
SMALLER = 0.95  # times it at most: footers are set so, warnings are not
MOST_FIGURES = 4  # numbers in a line to compare with the page's; imprints have more, but their text is constant

_NUMBER = re.compile(r"\d{1,7}")
_ROMAN = re.compile(r"^[\s\-–—]*([ivxlc]{1,8})[\s\-–—]*$", re.IGNORECASE)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_PAGE_WORDS = re.compile(r"(?:pages?|pg|p|sheet|of|[第页頁共总總\d]|[^\w%‰°<>≤≥±])*")  # "20 %", "> 20" are results

Kind = Literal["text", "number", "counted"]  # constant, a page number alone, a page number beside other words
Key = tuple[str, str, Kind]
Places = dict[Key, list[tuple[float, int]]]


def _remove_furniture(pages: Sequence[Page]) -> tuple[list[Page], int]:
    """Remove recurring lines; return the pages and the number of removed lines."""
    places: Places = defaultdict(list)
    for page in pages:
        for piece in page.pieces:
            for key in _keys(piece, page):
                places[key].append((piece.middle, page.number))
    for place in places.values():
        place.sort()
    body = find_body(piece for page in pages for piece in page.pieces if piece.cell is None)
    odd = [page.number % 2 for page in pages if page.pieces]
    with_text = odd.count(0), odd.count(1)

    def recurs(piece: Piece, page: Page) -> bool:
        small = piece.size <= SMALLER * body.size
        for key in _keys(piece, page):
            kind = key[2]
            if piece.size > (LARGER_NUMBER if kind == "number" else LARGER) * body.size:
                continue
            low = bisect_left(places[key], (piece.middle - DRIFT, 0))
            high = bisect_right(places[key], (piece.middle + DRIFT, 1 << 30))
            near = {number for _, number in places[key][low:high]}
            many = (small or kind == "text") and _is_on_many(near, with_text, small)
            if len(near) >= RECURS and (kind == "number" or many):
                return True
        return False

    kept = [replace(page, pieces=tuple(piece for piece in page.pieces if not recurs(piece, page))) for page in pages]
    return kept, sum(len(page.pieces) - len(left.pieces) for page, left in zip(pages, kept, strict=True))


def _keys(piece: Piece, page: Page) -> Iterator[Key]:
    """Keys that recurring lines share: edge, and text as it is or with a number relative to the page's."""
    if piece.cell:
        return
    zone, edge = "side", EDGE if any(character.isalpha() for character in piece.text) else NUMBER_EDGE
    if piece.upright and piece.middle < edge * page.height:
        zone = "top"
    elif piece.upright:
        zone = "bottom"
        if piece.middle <= (1 - edge) * page.height:
            return
    text = "".join(piece.text.casefold().split())
    if any(character.isalnum() for character in text):  # a number alone may be the total of pages on its own line
        yield zone, text, "text"
    for number in list(_NUMBER.finditer(text))[:MOST_FIGURES]:
        before, after = text[: number.start()], text[number.end() :]
        alone = _PAGE_WORDS.fullmatch(before) and _PAGE_WORDS.fullmatch(after)
        yield zone, f"{before}#{int(number[0]) - page.number}{after}", "number" if alone else "counted"
    if roman := _ROMAN.match(text):
        values = [_ROMAN_VALUES[letter] for letter in roman[1].lower()]
        count = sum(-value if value < max(values[index:]) else value for index, value in enumerate(values))
        yield zone, f"roman{count - page.number}", "number"


def _is_on_many(near: set[int], pages: tuple[int, int], small: bool) -> bool:
    """Whether a line on the pages ``near`` belongs to the document or a large part of it."""
    sides = [sum(number % 2 == side for number in near) for side in (0, 1)]
    if len(near) >= (HALF if small else MOST) * sum(pages):
        return True
    if any(count >= max(RECURS, MOST * every) for count, every in zip(sides, pages, strict=True)):
        return True
    runs: dict[tuple[int, int], int] = {}  # (step, last page) -> length
    for step, number in itertools.product((1, 2), sorted(near)):  # 2: the name of a chapter on its left-hand pages
        runs[step, number] = runs.get((step, number - step), 0) + 1
    return max(runs.values(), default=0) >= (RUN if small else 2 * RUN)


# --- hyphens ----------------------------------------------------------------------------------------------------------

# The rest of the document decides about a hyphen at the end of a line before a small letter. First match: it stays if
# the word has it elsewhere ("non-normal"), goes if the word lacks it elsewhere, stays if both halves are words of the
# document of some length ("clean-body"), and goes otherwise. ``line_ends.py`` handles hyphens beside capitals and
# figures. Not covered: words that occur only once, broken; no dictionary is used.

SHORTEST_FIRST, SHORTEST_SECOND = 3, 4  # letters: halves of broken words are seldom words themselves when so long

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_OPEN = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)-$")
_START = re.compile(r"[^\W\d_]+")


def _mark_hyphens(blocks: Sequence[Block]) -> list[Block]:
    """Mark the hyphens that belong to their words by ``JOINER``."""
    words: set[str | tuple[str, str]] = set()  # small letters: plain words, and neighbours within words with hyphens
    for block in blocks:
        broken = False  # whether the line before ends within a word
        for line in block.lines:
            whole, opens = _WORD.findall(line.text), bool(_OPEN.search(line.text))
            for parts in (word.lower().split("-") for word in whole[int(broken) : len(whole) - opens]):
                words.update(parts if len(parts) == 1 else itertools.pairwise(parts))
            broken = opens
    marked = []
    for block in blocks:
        lines = list(block.lines)
        for index, (line, after) in enumerate(itertools.pairwise(block.lines)):
            first, second = _OPEN.search(line.text), _START.match(after.text)
            if first and second and second[0][0].islower() and _stays(first[1].lower(), second[0].lower(), words):
                lines[index] = replace(line, text=line.text + JOINER)
        marked.append(replace(block, lines=tuple(lines)))
    return marked


def _stays(first: str, second: str, words: Container[str | tuple[str, str]]) -> bool:
    last = first.rpartition("-")[2]
    if (last, second) in words or last + second in words:
        return (last, second) in words
    return last in words and second in words and len(last) >= SHORTEST_FIRST and len(second) >= SHORTEST_SECOND


# --- reader -----------------------------------------------------------------------------------------------------------

TITLE_CHARACTERS = 250  # longer "titles" are first paragraphs
TITLE_SIZE = 1.2  # of the body size, for a title taken from the first pages
TITLE_PAGES = 2
REPORT = 25  # pages between two reports of progress, ~5 s
_PROGRAM_TITLE = re.compile(r"^(?:microsoft |untitled|slide |document\d*$|\S+\.\w{2,5}$|\S*_\S*$)", re.IGNORECASE)


@dataclass(slots=True)
class _Flow:
    """The document under construction: paragraphs and rows, where columns and pages begin, the open table."""

    parts: list[Paragraph | Block] = field(default_factory=list)
    opens: set[int] = field(default_factory=set)
    carry: Carry = field(default_factory=Carry)


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault | Working]:
    """Yield the record of the PDF at ``path``; raise ``InputError`` if no page is usable."""
    bounds = bounds_of(mapping)
    document = open_document(path)
    count = document.page_count
    if count > bounds.pages:
        raise LimitExceeded("pdf.pages", name=path.name, count=count, most=bounds.pages)
    pages: list[Page] = []
    for index in range(count):
        if index and not index % REPORT:
            yield Working(index + 1, count)
        pages.append(read_page(document, index, bounds.page_characters))
    cut = is_cut_off(document, path)
    metadata = clean_text(str((document.metadata or {}).get("title") or ""))
    document.close()
    kept = mapping.options.get("scans")
    yield from read_scans(path, pages, bounds, kept=Path(kept) if kept else None)
    kept, removed = _remove_furniture(pages)
    if not any(page.characters and not page.garbled for page in kept):
        if cut:
            raise InputError("pdf.damaged", name=path.name)
        what = message("pdf.nothing", name=path.name, count=count)
        if any(page.flaw or page.garbled for page in kept):
            what = message("pdf.nothing_readable", name=path.name, count=count, notes=_notes(kept, 0))
        fix = "ocr.install" if bounds.ocr else "ocr.switch_on"
        if not any(page.needs for page in kept) or any(page.flaw and page.needs for page in kept):
            fix = "ocr.get_copy"
        raise InputError(what, message(fix))
    body = find_body(piece for page in kept for piece in page.pieces if piece.cell is None)
    flow = _Flow()
    for page in kept:
        _add_page(flow, page, body)
        for part in page.parts:
            lying = _Flow(carry=Carry(lost=flow.carry.lost, doubtful=flow.carry.doubtful))
            _add_page(lying, part, body)
            flow.opens.add(len(flow.parts))
            flow.parts += [item if isinstance(item, Block) else _block(item, flow.carry) for item in lying.parts]
    blocks = tuple(_mark_hyphens(_blocks(flow, body)))
    title = _title(metadata, [page for page in kept if not page.garbled], body) or path.stem
    notes = (*_notes(kept, removed), *table_notes(flow.carry), *((message("pdf.end_lost"),) if cut else ()))
    yield SourceRecord("", title, blocks, pages=count, notes=notes, lost=sum(page.lost for page in kept))


def _add_page(flow: _Flow, page: Page, body: Body) -> None:
    loose = [piece for piece in page.pieces if piece.cell is None]
    items: list[Placed] = [*(piece for piece in loose if piece.upright), *page.grids, *page.figures, *page.separators]
    top = True
    for region in reading_order(items, body.size):
        flow.opens.add(len(flow.parts))
        read = [item for item in region if isinstance(item, Piece | Grid | Figure)]
        for kind, run in itertools.groupby(read, type):
            if kind is Piece:
                flow.parts.extend(paragraphs(column_rows([item for item in run if isinstance(item, Piece)])))
                continue
            for grid in (item for item in run if isinstance(item, Grid)):
                first = top and grid.y0 < TOP_OF_PAGE * page.height
                flow.parts.extend(table_blocks(grid, pieces_of(grid, page.pieces), page.number, first, flow.carry))
                top = False
    for piece in loose:
        if not piece.upright:
            flow.parts.extend(paragraphs(column_rows([piece])))


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
    lines, torn = tuple(map(make_line, part.rows)), any(row.between for row in part.rows)
    if torn:
        carry.doubtful |= {line.box.page for line in lines if line.box}
    return Block("heading" if level else "paragraph", lines, level, torn)


def _title(metadata: str, pages: Sequence[Page], body: Body) -> str:
    """The title in the metadata if a person wrote it, else the largest heading of the first pages."""
    if 4 <= len(metadata) <= TITLE_CHARACTERS and not _PROGRAM_TITLE.match(metadata) and "�" not in metadata:
        return metadata
    first = [piece for page in pages[:TITLE_PAGES] for piece in page.pieces if piece.cell is None and piece.upright]
    largest = max((piece.size for piece in first), default=0.0)
    if largest < TITLE_SIZE * body.size:
        return ""
    lead = next(page for page in pages if any(piece.size == largest for piece in page.pieces))
    rows = column_rows([piece for piece in lead.pieces if piece.size >= 0.97 * largest and piece.upright])
    below = (index for index in range(1, len(rows)) if rows[index].y0 - rows[index - 1].y1 > largest)
    text = Paragraph(rows[: next(below, None)], 0.0, 0.0).text  # without the next heading of the same size
    return text if 2 <= len(text) <= TITLE_CHARACTERS and any(map(str.isalpha, text)) else ""


def _notes(pages: Sequence[Page], removed: int) -> tuple[Message, ...]:
    """Notes for the librarian, pages with the same flaw in one note."""
    flawed: dict[Message, list[int]] = {}
    for page in pages:
        lack = message("pdf.blank") if page.blank and not page.characters else None
        if page.needs and page.ocr is None:
            lack = message("ocr.may_need" if page.characters else "ocr.needs", needs=page.needs)
        for flaw in (page.flaw or lack, *page.remarks):
            if flaw:
                flawed.setdefault(flaw, []).append(page.number)
    notes = [message("pdf.on_pages", pages=_pages(numbers), note=flaw) for flaw, numbers in flawed.items()]
    for reason in REASONS:
        read = {page.number: page.ocr for page in pages if page.ocr is not None and page.needs == reason}
        if not read:
            continue
        note = message("ocr.read_one", reason=reason, mean=sum(read.values()))
        if len(read) > 1:
            mean = sum(read.values()) / len(read)
            note = message("ocr.read", reason=reason, mean=mean, least=min(read.values()))
        notes.append(message("pdf.on_pages", pages=_pages(list(read)), note=note))
    if removed:
        notes.append(message("pdf.furniture", count=removed))
    return tuple(notes)


def _pages(numbers: Sequence[int]) -> Message:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = tuple(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return message("pdf.page_numbers", pages=shown)
