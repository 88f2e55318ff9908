"""An answer as a reader sees it: rendered words and structure. Renderers (terminal, leaflet, page) decide nothing.

Texts are neutralised (``neutral``) and contain no markup. A field is empty or "" where there is nothing to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from localmed.domain import Badge, Box
from localmed.presentation.finding import FindingView


@dataclass(frozen=True, slots=True)
class CitationView:
    """A quotation, the span that it opens, and its page (0: none) and boxes there."""

    marker: str
    passage_id: str
    start: int
    end: int
    quote: str
    page: int = 0
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementView:
    """A sentence with its markers. A withheld one has no text; ``withheld`` gives the reason.

    ``warning`` says that the sources do not support the sentence. ``checked`` says who checked a model's sentence, or
    that nobody did; ``verdict`` is the result, for parts about checks. ``origin`` says who wrote it. ``heading`` starts
    a section; ``detail`` names sources that disagree.
    """

    text: str
    citations: tuple[CitationView, ...] = ()
    withheld: str = ""
    warning: str = ""
    verdict: str = ""
    origin: str = ""
    checked: str = ""
    heading: str = ""
    detail: str = ""
    continues: bool = False  # of the same section, and no part of the answer
    runs: tuple[tuple[str, bool], ...] = ()  # of ``text``; the true ones stand in bold
    unsure: bool = False  # ``checked`` says that nobody could check it

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers of its sources, each once."""
        return tuple(dict.fromkeys(citation.marker for citation in self.citations))


@dataclass(frozen=True, slots=True)
class Row:
    """A named value, or a line without a name, with a ``detail`` under it."""

    label: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a record: a name if it is ``searched`` for by that word, or an ``allergy``."""

    text: str
    searched: str = ""
    allergy: bool = False


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of an answer: title, rows, sentences. Parts with one ``section`` stand together under that heading."""

    title: str
    rows: tuple[Row, ...] = ()
    statements: tuple[StatementView, ...] = ()
    section: str = ""
    warning: bool = False  # to be seen before anything else
    lower: bool = False  # a department that is only ranked lower
    folded: bool = False  # background, closed at first
    after: bool = False  # about one source: told below the sections, a row each of one table
    paired: bool = False  # a row of a table: what is named, and the sentences on it
    pieces: tuple[Piece, ...] = ()  # of a patient's record


@dataclass(frozen=True, slots=True)
class VotesView:
    """A table of votes: claims with their labels across; title, reliability and signs of each study down."""

    claims: tuple[tuple[str, str], ...]
    studies: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """A judge and what is known of its errors."""

    name: str
    errors: str


@dataclass(frozen=True, slots=True)
class BadgeView:
    """The badge: a word and a symbol (never a colour alone), the reason, who judged, and its limits.

    ``before`` is the badge with the withheld sentences, where that differs; ``alone`` the badges by kind of source.
    """

    badge: Badge
    title: str
    reason: str
    judges: tuple[JudgeView, ...]
    judged: str
    before: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True)
class ConflictView:
    """Two sources that differ, each with title, edition and quotation; no verdict."""

    text: str
    ours: CitationView
    theirs: CitationView
    our_title: str
    their_title: str


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source: ``title``, ``details`` (edition, page, headings), ``warnings`` (superseded, old, overdue).

    ``passage_id``, ``start`` and ``end`` open it; ``file`` is the name of its file.
    """

    marker: str
    title: str
    details: tuple[str, ...]
    warnings: tuple[str, ...]
    passage_id: str
    file: str
    start: int = 0
    end: int = 0  # 0: nothing of it is cited


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer in one reader's language.

    ``headline`` says how the question ended and who wrote the sentences; ``searched`` names the collections that were
    searched in vain; ``banner`` says whether it may be given to a patient; ``checks`` concern the answer as a whole.
    """

    language: str
    workflow: str
    headline: str
    searched: str
    statements: tuple[StatementView, ...]
    badge: BadgeView | None
    parts: tuple[PartView, ...]
    conflicts: tuple[ConflictView, ...]
    notes: tuple[str, ...]
    checks: tuple[str, ...]
    sources: tuple[SourceView, ...]
    sources_title: str
    opening: str  # how a source is opened; "" for readers who cannot
    purpose: str
    banner: str = ""
    finding: FindingView | None = None  # the sections that speak of the question
    notices: tuple[str, ...] = ()  # those of the notes that nobody may miss
