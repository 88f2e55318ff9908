"""Small values that tests of several parts are written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from localmed.domain import (
    Box,
    Citation,
    Evidence,
    Hit,
    Message,
    Origin,
    Passage,
    Provenance,
    Span,
    Statement,
    Status,
    digest,
)
from localmed.domain.findings import Finding, Found, Line, Question, Section
from localmed.presentation.neutral import words
from localmed.text.language import sentences

PROVENANCE = Provenance("0001", "starter", (("encoder", "words 1"),), (("relevance", "rules-1"),), "0")


def passage(text: str, title: str = "Title", document: str = "", language: str = "en", edition: str = "") -> Passage:
    """A passage of a document of its own, one box a line."""
    spans, start = [], 0
    for number, line in enumerate(text.split("\n")):
        spans.append(Span(start, start + len(line), Box(1 + number // 40, 72, 90 + number, 400, 100 + number)))
        start += len(line) + 1
    return Passage(
        id=digest("c", text, title),
        document_id=document or digest("document", title),
        collection="c",
        language=language,
        edition=edition,
        title=title,
        headings=(title,),
        text=text,
        locator=f"0-{len(text)}",
        page=1,
        spans=tuple(spans),
    )


def hit(text: str, title: str = "Title", similarity: float | None = None, language: str = "en") -> Hit:
    return Hit(passage(text, title, language=language), 1.0, similarity)


def finding(*passages: Passage, question: str = "?", language: str = "en") -> Finding:
    """A section for each of ``passages``; the first sentence of each is marked."""
    hits = tuple(Hit(one, 1.0, 0.9) for one in passages)
    sections = (Section(one, tuple(_lines(one.passage))) for one in hits)
    return Finding(Question(question), Found(hits, True, language), tuple(sections))


def _lines(passage: Passage) -> Iterator[Line]:
    last = 0
    for start, end in sentences(passage.text):
        yield Line(passage, start, end, start == 0, last == 0 or "\n" in passage.text[last:start])
        last = end


def cited(hits: tuple[Hit, ...], first: int = 1) -> tuple[Evidence, ...]:
    """What ``Cite`` gives for ``hits``."""
    pieces = (evidence(str(number), hit.passage.text, hit.passage.title) for number, hit in enumerate(hits, first))
    return tuple(replace(piece, passage=hit.passage) for piece, hit in zip(pieces, hits, strict=True))


def evidence(marker: str, text: str, title: str = "Title", status: Status = Status.CURRENT) -> Evidence:
    return Evidence(marker, passage(text, title), title, "2024", status, "source.txt", "", "0" * 64, "text/plain")


def quotation(source: Evidence, start: int, end: int) -> Statement:
    """A statement that quotes ``start:end`` of ``source``."""
    text = source.passage.text[start:end]
    passage = source.passage
    boxes = passage.boxes(start, end)
    citation = Citation(
        source.marker, passage.id, passage.document_id, start, end, text, boxes[0].page if boxes else 0, boxes
    )
    return Statement(text, (citation,), Origin.EXTRACTIVE)


def in_words(message: Message | None, language: str = "en") -> str:
    """What a reader of ``language`` is shown of a note or a reason."""
    return words(message, language)
