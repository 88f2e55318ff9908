"""What is stored and found (collections, documents, passages, hits, evidence), and the statements that cite it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from localmed.domain.messages import Message

ID_LENGTH = 32  # hex characters of a sha256 kept as an id: 128 bits, no collision below 2**60 passages


def digest(*parts: str) -> str:
    """Return the id of ``parts``: the first 32 hex characters of the sha256 of the parts, each closed by a NUL."""
    joined = b"".join(part.encode("utf-8", "surrogatepass") + b"\x00" for part in parts)
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]


def is_date(text: str) -> bool:
    """Whether ``text`` is a year, a month or a day that exists, as this module writes dates."""
    whole = text + "0000-01-01"[len(text) :]
    try:
        return len(text) in (4, 7, 10) and date.fromisoformat(whole).isoformat() == whole
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Governance:
    """Who answers for a document and when it holds; names of staff, which stay out of logs and the audit log."""

    owner: str = ""
    approver: str = ""
    effective_from: str = ""  # "": since ever
    review_by: str = ""  # "": never due

    def overdue(self, day: str) -> bool:
        """Whether its review is late on ``day``; a month or a year ends with its last day."""
        return bool(self.review_by) and self.review_by < day[: len(self.review_by)]


class Status(StrEnum):
    """Whether a document may answer. Only ``CURRENT`` documents answer unless the question asks for others.

    ``PENDING`` (not yet effective) follows from a date on the day of the question, is never stored and never answers.
    """

    CURRENT = "current"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    PENDING = "pending"


STATED = (Status.CURRENT, Status.SUPERSEDED, Status.WITHDRAWN)  # what a file, a manifest or a librarian may state


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
    """Characters ``start:end`` of a passage stand in ``box`` (one span a printed line)."""

    start: int
    end: int
    box: Box


class Kind(StrEnum):
    """What sort of source a collection is. Tiers (LINS, HRD and HERD) and source plans (Omni-RAG) name kinds.

    The papers' online sources are local ones here: ``LITERATURE`` is an imported PubMed baseline in PubMed's place,
    ``BOOK`` and ``WIKI`` are imported references in that of a web search.
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
    """What is known of one document, apart from its text.

    ``key`` names it within its collection (file path, and the record inside the file where there are several);
    ``id`` is ``digest(collection, key)``, so a changed file keeps its id. ``content`` is the sha256 of what was
    extracted, ``file_sha256`` that of the original under ``files/``. ``relations`` are links to other documents as
    ``(kind, identifier)``, such as ``("retraction_in", "pmid:123")``.
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
    """A piece of one document that is searched and cited as a whole.

    ``locator`` is ``start-end`` in the document's extracted text; ``id`` is ``digest(collection, content, locator)``,
    stable across re-imports of the same content. ``headings`` is the path from the title down. ``page`` is the first
    page, 0 where the source has none. ``ocr`` is the OCR engine's mean confidence by characters, from 0 to 1; None
    where the text is the file's own. ``doubtful``: its table was not read with certainty; its picture is to be read.
    ``found`` are the headings that were read, where a librarian has corrected some; the first ``lead`` characters of
    the text are those that are none.
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
        """What encoders and rerankers read: title, headings, text. The title names what "it" is in the text."""
        return self._named(self.text)

    def line_in_context(self, start: int, end: int) -> str:
        """What encoders read of a sentence or row, ``start:end``: title, headings, its words."""
        return self._named(self.text[start:end])

    def _named(self, text: str) -> str:
        names = dict.fromkeys(name.rstrip(".。") for name in (self.title, *self.headings) if name)
        return ". ".join((*names, text))

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages on which it stands, in order; empty where the source has none."""
        return self.pages_of() or tuple({self.page} - {0})

    def pages_of(self, start: int = 0, end: int | None = None) -> tuple[int, ...]:
        """The pages on which the characters ``start:end`` stand, in order."""
        return tuple(sorted({box.page for box in self.boxes(start, end)}))

    def boxes(self, start: int = 0, end: int | None = None) -> tuple[Box, ...]:
        """The boxes of the characters ``start:end`` (all of them by default), in reading order."""
        stop = len(self.text) if end is None else end
        return tuple(span.box for span in self.spans if span.start < stop and span.end > start)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found, with its fused score and where each index ranked it (0-based; -1: not found).

    ``rerank_score`` is the reranker's, by which the hits are ordered where there is one. ``nearest`` is the cosine
    similarity of the question and the sentence nearest to it.
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
    """What a search is limited to; an empty field does not limit. Dates are inclusive ISO prefixes."""

    collections: tuple[str, ...] = ()
    language: str = ""
    edition_from: str = ""
    edition_to: str = ""
    statuses: tuple[Status, ...] = (Status.CURRENT,)
    documents: tuple[str, ...] = ()  # ids


# --- statements: what a sentence of an answer rests on, who wrote it, and what its check came to ----------------------


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


class AnswerSection(StrEnum):
    """Under which heading a sentence of an answer stands; "" where the answer has none."""

    NONE = ""
    BOTTOM_LINE = "bottom_line"
    DOSES = "doses_and_conditions"
    CAUTIONS = "cautions"
    DISAGREE = "sources_disagree"
    CONTINUES = "section_continues"  # what else stands in the sections that are quoted: no answer, no warning


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
    section: AnswerSection = AnswerSection.NONE


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that an answer may cite, with the marker minted for it and what the reader is shown of its document.

    ``overdue`` is the date by which the document was to be reviewed, where that had passed when it was cited. What is
    ``planted`` speaks to a language model; ``remark`` is a librarian's note on the passage. People are shown both.
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
        """Whether a model may read it: not what speaks to one, nor what a librarian has put right beside its text."""
        return not self.planted and not self.remark

    def citation(self, start: int, end: int) -> Citation:
        """A citation of the characters ``start:end`` of the passage, with the page and boxes on which they stand."""
        passage, boxes = self.passage, self.passage.boxes(start, end)
        page = boxes[0].page if boxes else passage.page
        return Citation(self.marker, passage.id, passage.document_id, start, end, passage.text[start:end], page, boxes)

    def quotation(self, start: int, end: int) -> Statement:
        """A statement that is nothing but the cited characters ``start:end``."""
        citation = self.citation(start, end)
        return Statement(citation.quote, (citation,), Origin.EXTRACTIVE)
