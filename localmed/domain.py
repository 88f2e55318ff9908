"""The values that every part of localmed passes around: frozen, standard library only.

A reader of the code starts here. A *document* belongs to one *collection* and is cut into *passages*; a search
returns *hits*; the hits an answer uses become *evidence*, each with a marker minted here and nowhere else; an *answer*
is a list of *statements*, each with *citations* that point into evidence. "Nothing found" and "abstained" are values
of ``Answer.status``, never ``None`` and never an uncited string.

Dates are ISO strings (``2024-05-01``, or ``2024-05`` and ``2024`` where no more is known), so that they sort and
compare as text. Text offsets count Unicode characters, ends exclusive. Boxes are PDF points (1/72 inch), origin top
left, on 1-based pages.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from localmed.governance import Governance

ID_LENGTH = 32  # hex characters of a sha256 kept as an id: 128 bits, no collision below 2**60 passages


def digest(*parts: str) -> str:
    """Return the id of ``parts``: the first 32 hex characters of the sha256 of the parts, each closed by a NUL."""
    joined = b"".join(part.encode("utf-8", "surrogatepass") + b"\x00" for part in parts)
    return hashlib.sha256(joined).hexdigest()[:ID_LENGTH]


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
    notes: tuple[str, ...] = ()
    governance: Governance = field(default_factory=Governance)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one document that is searched and cited as a whole.

    ``locator`` is ``start-end`` in the document's extracted text; ``id`` is ``digest(collection, content, locator)``,
    stable across re-imports of the same content. ``headings`` is the path from the title down. ``page`` is the first
    page, 0 where the source has none. ``ocr`` is the OCR engine's mean confidence by characters, from 0 to 1; None
    where the text is the file's own.
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

    @property
    def in_context(self) -> str:
        """What encoders and rerankers read: title, headings, text. The title names what "it" is in the text."""
        names = dict.fromkeys(name.rstrip(".。") for name in (self.title, *self.headings) if name)
        return ". ".join((*names, self.text))

    def boxes(self, start: int = 0, end: int | None = None) -> tuple[Box, ...]:
        """The boxes of the characters ``start:end`` (all of them by default), in reading order."""
        stop = len(self.text) if end is None else end
        return tuple(span.box for span in self.spans if span.start < stop and span.end > start)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found, with its fused score and where each index ranked it (0-based; -1: not found).

    ``rerank_score`` is the reranker's, by which the hits are ordered where there is one.
    """

    passage: Passage
    score: float
    similarity: float | None = None
    dense_rank: int = -1
    lexical_rank: int = -1
    lexical_score: float | None = None
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What a search is limited to; an empty field does not limit. Dates are inclusive ISO prefixes."""

    collections: tuple[str, ...] = ()
    language: str = ""
    edition_from: str = ""
    edition_to: str = ""
    statuses: tuple[Status, ...] = (Status.CURRENT,)
    documents: tuple[str, ...] = ()  # ids


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that an answer may cite, with the marker minted for it and what the reader is shown of its document.

    ``overdue`` is the date by which the document was to be reviewed, where that had passed when it was cited.
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
    """Who wrote a statement; the three are labelled differently wherever they are shown."""

    EXTRACTIVE = "extractive"
    GENERATED = "generated"
    UNVERIFIED = "unverified"


class Support(StrEnum):
    """Whether a statement's citations carry it."""

    VERBATIM = "verbatim"
    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one statement: what was found, who judged, and why in one sentence."""

    support: Support
    judge: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of an answer. ``withheld`` sentences failed their check and are shown as a gap."""

    text: str
    citations: tuple[Citation, ...]
    origin: Origin
    verdict: Verdict | None = None
    withheld: bool = False


class Badge(StrEnum):
    """Answered with Evidence, badge table. ``NONE`` until a judge has looked."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked before anyone read the answer. The badge means "supported by its sources", never "safe".

    ``checks`` are the checks of the answer as a whole (coherence, the guide's final check), each with how it ended.
    ``badge_before`` is that with the withheld sentences in it; ``badges`` are those of each kind of source alone.
    """

    statements_checked: int = 0
    statements_withheld: int = 0
    markers_rejected: int = 0
    judge: str = ""
    badge: Badge = Badge.NONE
    reason: str = ""
    badge_judge: str = ""  # who judged, each with the measured error rate or that there is none
    badge_before: Badge = Badge.NONE
    badges: tuple[tuple[str, Badge], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()


class AnswerStatus(StrEnum):
    """How the question ended. ``SAFETY``: the site's safety message was given in place of an answer."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    UNVERIFIED = "unverified"
    SAFETY = "safety"


class ConflictKind(StrEnum):
    """In what a source of a later tier may disagree with the one that an answer rests on."""

    DOSE = "dose"
    EDITION = "edition"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Source ``against`` may disagree with the cited source ``marker``; ``reason`` is one sentence, numbers included.

    ``ours`` and ``theirs`` are the quotations that were compared (of an edition: one of each source). Always a
    possibility: what is compared are amounts and dates, not what the sources mean.
    """

    kind: ConflictKind
    marker: str
    against: str
    reason: str
    ours: Citation
    theirs: Citation


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which models, prompts and library generation produced an answer; ``prompts`` maps role to prompt version.

    ``day`` is the day of the question, by which documents were effective or overdue.
    """

    generation: str
    profile: str
    models: tuple[tuple[str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()
    version: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step of a flow: what was asked for, what came back (counts and ids, no patient text), how long it took."""

    name: str
    detail: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a workflow's answer under its own title: a term explained, a department, a patient's applicability.

    ``kind`` names what it is ("term", "department", "applicability", ...), ``title`` is shown above it. ``statements``
    are cited like an answer's; ``facts`` are named values that are no claims about medicine (a floor, a PICO element in
    the user's own words, a source's date). ``start:end`` is where the title stands in the user's text, if it does.
    """

    kind: str
    title: str
    statements: tuple[Statement, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question came to. ``searched`` names the collections looked through, in that order.

    ``evidence`` is what is cited, then what ``conflicts`` point at besides. ``workflow`` says which flow answered, and
    ``parts`` are what it adds to the statements. ``released_by`` is who releases it to a patient ("": not released).
    """

    status: AnswerStatus
    question: str
    language: str
    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]
    searched: tuple[str, ...]
    provenance: Provenance
    verification: Verification = field(default_factory=Verification)
    notes: tuple[str, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    workflow: str = "ask"
    parts: tuple[Part, ...] = ()
    released_by: str = ""
