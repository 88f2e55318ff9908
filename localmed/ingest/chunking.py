"""Cuts a record's blocks into passages.

A passage never crosses a heading and never cuts a sentence, unless that is longer than the limit (then it is cut at
its last minor break). Sentences of consecutive paragraphs under a heading are packed up to the limit, table rows only
with rows.

Ids: ``digest(collection, content, locator)``, where ``content`` is the digest of everything extracted and ``locator``
the range of characters, so the same text in the same place keeps its id in every import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from localmed.config import ChunkSettings
from localmed.domain import Box, Document, Passage, Span, digest
from localmed.ingest import line_ends
from localmed.ingest.parsed import Block, Line, SourceRecord
from localmed.text.language import break_point, sentences


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or row: its text, the placed lines in it, and its offset in the extracted text."""

    text: str
    spans: tuple[Span, ...]
    offset: int
    row: bool
    paragraph: int
    doubtful: bool


def content_of(record: SourceRecord) -> str:
    """The digest of everything extracted: title, headings and text, in order."""
    return digest(record.title, *(f"{block.kind}{block.level}:{text_of(block.lines)[0]}" for block in record.blocks))


def passages(record: SourceRecord, document: Document, settings: ChunkSettings) -> Iterator[Passage]:
    """Cut ``record`` into the passages of ``document``; those with OCR lines state its confidence."""
    sure = {line.box: line.ocr for block in record.blocks for line in block.lines if line.box and line.ocr is not None}
    for passage in _passages(record, document, settings):
        yield replace(passage, ocr=_confidence(passage, sure)) if sure else passage


def _confidence(passage: Passage, sure: Mapping[Box, float]) -> float | None:
    """The mean OCR confidence of the passage's lines, weighted by characters; None if OCR read none of them."""
    read = [(span.end - span.start, sure[span.box]) for span in passage.spans if span.box in sure]
    total = max(1, sum(size for size, _ in read))
    return round(sum(size * confidence for size, confidence in read) / total, 3) if read else None


def _passages(record: SourceRecord, document: Document, settings: ChunkSettings) -> Iterator[Passage]:
    offset = 0
    headings: list[tuple[int, str]] = []
    pending: list[Piece] = []
    for number, block in enumerate(record.blocks):
        text, spans = text_of(block.lines)
        if block.kind == "heading":
            yield from _pack(pending, headings, document, settings)
            pending = []
            headings = [*(heading for heading in headings if heading[0] < block.level), (block.level, text)]
        else:
            pending.extend(_pieces(block, text, spans, offset, number, settings.characters))
        offset += len(text) + 1
    yield from _pack(pending, headings, document, settings)


def text_of(lines: Sequence[Line]) -> tuple[str, tuple[Span, ...]]:
    """The joined lines, and the span of each placed line in the result."""
    joined = line_ends.Joined()
    spans: list[Span] = []
    for line in lines:
        added = " ".join(line.text.split())
        if not added:
            continue
        start = joined.add(added)
        if spans and spans[-1].end > start:  # its hyphen was removed
            spans[-1] = replace(spans[-1], end=start)
        if line.box is not None:
            spans.append(Span(start, joined.length, line.box))
    return joined.text, tuple(spans)


def _pieces(block: Block, text: str, spans: tuple[Span, ...], offset: int, number: int, limit: int) -> Iterator[Piece]:
    row = block.kind == "row"
    bounds = [(0, len(text))] if row else sentences(text)
    first = 0  # the first span that does not end before the piece
    for start, end in bounds:
        for left, right in _cut(text, start, end, limit):
            while first < len(spans) and spans[first].end <= left:
                first += 1
            inside = tuple(
                Span(max(span.start, left) - left, min(span.end, right) - left, span.box)
                for span in takewhile(lambda span: span.start < right, islice(spans, first, None))  # noqa: B023  at once
            )
            yield Piece(text[left:right], inside, offset + left, row, number, block.doubtful)


def _cut(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Split ``start:end`` into parts of at most ``limit`` characters, without surrounding blanks."""
    while end - start > limit:
        stop = break_point(text, start, start + max(limit, 1))
        yield start, start + len(text[start:stop].rstrip())
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if end > start:
        yield start, end


def _pack(
    pieces: Sequence[Piece], headings: Sequence[tuple[int, str]], document: Document, settings: ChunkSettings
) -> Iterator[Passage]:
    """Pack pieces into passages; from half the limit on, a passage ends with its paragraph."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        full = size + len(piece.text) + 1 > settings.characters
        other = bool(group) and (group[-1].row, group[-1].doubtful) != (piece.row, piece.doubtful)
        ended = bool(group) and group[-1].paragraph != piece.paragraph and size >= settings.characters / 2
        if group and (full or other or (ended and not piece.row)):
            yield _passage(group, headings, document)
            group, size = [], 0
        group.append(piece)
        size += len(piece.text) + 1
    if group:
        yield _passage(group, headings, document)


def _passage(group: Sequence[Piece], headings: Sequence[tuple[int, str]], document: Document) -> Passage:
    text = ""
    spans: list[Span] = []
    for previous, piece in zip((None, *group), group, strict=False):
        if previous:
            apart = piece.row or piece.paragraph != previous.paragraph
            text += "\n" if apart else "" if line_ends.WIDE.match(previous.text[-1]) else " "
        spans.extend(Span(len(text) + span.start, len(text) + span.end, span.box) for span in piece.spans)
        text += piece.text
    locator = f"{group[0].offset}-{group[-1].offset + len(group[-1].text)}"
    return Passage(
        id=digest(document.collection, document.content, locator),
        document_id=document.id,
        collection=document.collection,
        language=document.language,
        edition=document.edition,
        title=document.title,
        headings=tuple(text for _, text in headings),
        text=text,
        locator=locator,
        page=spans[0].box.page if spans else 0,
        table=group[0].row,
        doubtful=group[0].doubtful,
        spans=tuple(spans),
    )
