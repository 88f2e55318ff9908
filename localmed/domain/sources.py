"""Stored and found sources (collections, documents, passages, hits, evidence), and the statements that cite them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from localmed.domain.messages import Message

ID_LENGTH = 32  # hex characters of a sha256 kept as an id: 128 bits, no collision below 2**60 passages


def digest(*parts: str) -> str:
    """The id of ``parts``: the first 32 hex characters of the sha256 of the parts, each followed by NUL."""
    joined = b"".join(part.encode("utf-8", "surrogatepass") + b"\x00" for part in parts)
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]


def is_date(text: str) -> bool:
    """Whether ``text`` is a valid year, month or day in ISO form."""
    whole = text + "0000-01-01"[len(text) :]
    try:
        return len(text) in (4, 7, 10) and date.fromisoformat(whole).isoformat() == whole
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Governance:
    """Who is responsible for a document and when it applies; names of staff, which stay out of all logs."""

    owner: str = ""
    approver: str = ""
    effective_from: str = ""  # "": always effective
    review_by: str = ""  # "": never due

    def overdue(self, day: str) -> bool:
        """Whether its review is late on ``day``; a month or year ends with its last day."""
        return bool(self.review_by) and self.review_by < day[: len(self.review_by)]


class Status(StrEnum):
    """Whether a document may answer. Only ``CURRENT`` documents do, unless the question asks for others.

    ``PENDING`` (not yet effective) depends on the day of the question, is never stored and never answers.
    """

    CURRENT = "current"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    PENDING = "pending"


STATED = (Status.CURRENT, Status.SUPERSEDED, Status.WITHDRAWN)  # may be set by a file, a manifest or a librarian


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, in PDF points."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start:end`` of a passage are in ``box``; one span a printed line."""

    start: int
    end: int
    box: Box


class Kind(StrEnum):
    """The kind of source of a collection. Tiers (LINS, HRD and HERD) and source plans (Omni-RAG) name kinds.

    The papers' online sources are local here: ``LITERATURE`` is an imported PubMed baseline, ``BOOK`` and ``WIKI`` are
    imported references instead of a web search.
    """

    GUIDELINE = "guideline"
    LITERATURE = "literature"
    BOOK = "book"
    WIKI = "wiki"
    LEAFLET = "leaflet"
    LOCAL = "local"  # the hospital's own pages: departments, floors, telephone numbers
    GRAPH = "graph"  # terms and relations only; no passages
    OTHER = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents with one licence, one kind and one priority (lower comes first)."""

    name: str
    title: str
    priority: int = 100
    language: str = ""
    source: str = ""
    licence: str = ""
    kind: Kind = Kind.OTHER


@dataclass(frozen=True, slots=True)
class Document:
    """The metadata of one document.

    ``key`` names it within its collection (file path, and the record if the file has several); ``id`` is
    ``digest(collection, key)``, so that a changed file keeps its id. ``content`` is the sha256 of the extracted text,
    ``file_sha256`` that of the original under ``files/``. ``relations`` are links to other documents as ``(kind,
    identifier)``, such as ``("retraction_in", "pmid:123")``.
    """

    id: str
    collection: str
    key: str
    title: str
    language: str
    source: str
    file_sha256: str
    content: str
    media_type: str
    edition: str = ""
    status: Status = Status.CURRENT
    replaced_by: str = ""
    url: str = ""
    identifiers: tuple[str, ...] = ()
    publication_types: tuple[str, ...] = ()
    mesh: tuple[str, ...] = ()
    relations: tuple[tuple[str, str], ...] = ()
    pages: int = 0
    passages: int = 0
    notes: tuple[Message, ...] = ()
    tags: tuple[str, ...] = ()
    governance: Governance = field(default_factory=Governance)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one document, the unit of search and citation.

    ``locator`` is ``start-end`` in the document's extracted text; ``id`` is ``digest(collection, content, locator)``,
    stable across re-imports of the same content. ``headings`` is the path from the title down. ``page`` is the first
    page, 0 if there are none. ``ocr`` is the OCR engine's mean confidence by characters, from 0 to 1; None for the
    file's own text. ``doubtful``: its table was not read with certainty, so its picture should be read. ``found`` are
    the headings as read, if a librarian has corrected some; those that the librarian called text are the first ``lead``
    characters of the text.
    """

    id: str
    document_id: str
    collection: str
    language: str
    edition: str
    title: str
    headings: tuple[str, ...]
    text: str
    locator: str
    page: int = 0
    table: bool = False
    spans: tuple[Span, ...] = ()
    ocr: float | None = None
    doubtful: bool = False
    found: tuple[str, ...] = ()
    lead: int = 0

    @property
    def in_context(self) -> str:
        """The text for encoders and rerankers: title, headings, text. The title resolves "it" in the text."""
        return self._named(self.text)

    def line_in_context(self, start: int, end: int) -> str:
        """The text for encoders of the sentence or row ``start:end``."""
        return self._named(self.text[start:end])

    def _named(self, text: str) -> str:
        names = dict.fromkeys(name.rstrip(".。") for name in (self.title, *self.headings) if name)
        return ". ".join((*names, text))

    @property
    def pages(self) -> tuple[int, ...]:
        """Its pages in order; empty if the source has none."""
        return self.pages_of() or tuple({self.page} - {0})

    def pages_of(self, start: int = 0, end: int | None = None) -> tuple[int, ...]:
        """The pages of the characters ``start:end``, in order."""
        return tuple(sorted({box.page for box in self.boxes(start, end)}))

    def boxes(self, start: int = 0, end: int | None = None) -> tuple[Box, ...]:
        """The boxes of the characters ``start:end`` (default: all), in reading order."""
        stop = len(self.text) if end is None else end
        return tuple(span.box for span in self.spans if span.start < stop and span.end > start)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found, with its fused score and its rank in each index (0-based; -1: not found).

    ``rerank_score``, if any, decides the order. ``nearest`` is the cosine similarity of the question and its nearest
    sentence.
    """

    passage: Passage
    score: float = 0.0
    similarity: float | None = None
    dense_rank: int = -1
    lexical_rank: int = -1
    lexical_score: float | None = None
    rerank_score: float | None = None
    nearest: float | None = None


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Limits of a search; an empty field does not limit. Dates are inclusive ISO prefixes."""

    collections: tuple[str, ...] = ()
    language: str = ""
    edition_from: str = ""
    edition_to: str = ""
    statuses: tuple[Status, ...] = (Status.CURRENT,)
    documents: tuple[str, ...] = ()  # ids


# --- statements: citations, origin and verdict of an answer's sentences -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    """The characters ``start:end`` of the evidence ``marker``, with their text as ``quote``.

    Quote, page and boxes are stored, so that an answer can be shown after its generation is gone.
    """

    marker: str
    passage_id: str
    document_id: str
    start: int
    end: int
    quote: str
    page: int = 0
    boxes: tuple[Box, ...] = ()


class Origin(StrEnum):
    """Who wrote a statement, shown with each. ``SUBMITTED``: a person gave it to check."""

    EXTRACTIVE = "extractive"
    GENERATED = "generated"
    UNVERIFIED = "unverified"
    SUBMITTED = "submitted"


class Support(StrEnum):
    """Whether a statement's citations support it."""

    VERBATIM = "verbatim"
    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"


class AnswerSection(StrEnum):
    """The heading of a sentence within an answer; "" if the answer has none."""

    NONE = ""
    BOTTOM_LINE = "bottom_line"
    DOSES = "doses_and_conditions"
    CAUTIONS = "cautions"
    DISAGREE = "sources_disagree"
    CONTINUES = "section_continues"  # the rest of the quoted sections: no answer, no warning


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking one statement, with judge and reason."""

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
    section: AnswerSection = AnswerSection.NONE


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that an answer may cite, with its marker and the document's details for the reader.

    ``overdue`` is the review date if it had passed when cited. ``planted`` text addresses a language model; ``remark``
    is a librarian's note on the passage. Readers see both.
    """

    marker: str
    passage: Passage
    document_title: str
    edition: str
    status: Status
    source: str
    url: str
    file_sha256: str
    media_type: str
    publication_types: tuple[str, ...] = ()
    replaced_by: str = ""
    kind: Kind = Kind.OTHER
    overdue: str = ""
    planted: bool = False
    remark: str = ""

    @property
    def for_models(self) -> bool:
        """Whether a model may read it: no planted text, and no text that a librarian's remark corrects."""
        return not self.planted and not self.remark

    def citation(self, start: int, end: int) -> Citation:
        """A citation of the characters ``start:end``, with their page and boxes."""
        passage, boxes = self.passage, self.passage.boxes(start, end)
        page = boxes[0].page if boxes else passage.page
        return Citation(self.marker, passage.id, passage.document_id, start, end, passage.text[start:end], page, boxes)

    def quotation(self, start: int, end: int) -> Statement:
        """A statement that consists of the characters ``start:end``."""
        citation = self.citation(start, end)
        return Statement(citation.quote, (citation,), Origin.EXTRACTIVE)
