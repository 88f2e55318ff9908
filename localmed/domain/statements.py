"""A sentence of an answer: what it rests on, who wrote it, and what its check came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from localmed.domain.messages import Message
from localmed.domain.sources import Box, Evidence


@dataclass(frozen=True, slots=True)
class Citation:
    """A statement rests on the characters ``start:end`` of the evidence called ``marker``; ``quote`` is that text.

    Kept with the quote, page and boxes, so that an answer can be shown again after its generation is gone.
    """

    marker: str
    passage_id: str
    document_id: str
    start: int
    end: int
    quote: str
    page: int = 0
    boxes: tuple[Box, ...] = ()

    @classmethod
    def of(cls, evidence: Evidence, start: int, end: int) -> Citation:
        """The citation of the characters ``start:end`` of ``evidence``."""
        passage = evidence.passage
        boxes = passage.boxes(start, end)
        page = boxes[0].page if boxes else passage.page
        return cls(evidence.marker, passage.id, passage.document_id, start, end, passage.text[start:end], page, boxes)


class Origin(StrEnum):
    """Who wrote a statement, labelled differently wherever it is shown. ``SUBMITTED``: a person gave it to check."""

    EXTRACTIVE = "extractive"
    GENERATED = "generated"
    UNVERIFIED = "unverified"
    SUBMITTED = "submitted"


class Support(StrEnum):
    """Whether a statement's citations carry it."""

    VERBATIM = "verbatim"
    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one statement: what was found, who judged, and why."""

    support: Support
    judge: Message
    reason: Message | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer. ``withheld`` sentences failed their check and are shown as a gap."""

    text: str
    citations: tuple[Citation, ...]
    origin: Origin
    verdict: Verdict | None = None
    withheld: bool = False

    @classmethod
    def quoting(cls, evidence: Evidence, start: int, end: int) -> Statement:
        """A statement that is nothing but the characters ``start:end`` of ``evidence``, cited."""
        citation = Citation.of(evidence, start, end)
        return cls(citation.quote, (citation,), Origin.EXTRACTIVE)
