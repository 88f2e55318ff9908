"""An answer as a reader sees it: rendered words and structure, nothing left to decide for whoever shows it.

Texts are neutralised (``neutral``); markup is for the renderers: the terminal, the leaflet, a page. A list is empty and
a text is "" where there is nothing to show.
"""

from __future__ import annotations

from dataclasses import dataclass

from localmed.domain import Badge, Box
from localmed.presentation.finding import FindingView


@dataclass(frozen=True, slots=True)
class CitationView:
    """Where a sentence stands: what opens it, and its page (0: none) and boxes there."""

    marker: str
    passage_id: str
    start: int
    end: int
    quote: str
    page: int = 0
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementView:
    """A sentence with its markers. A withheld one has no text but ``withheld``, which says why.

    ``warning`` stands behind a sentence that is shown although its sources do not carry it; ``checked`` says of a
    model's sentence who checked it, or that nobody did; ``verdict`` is what its check came to, for parts that are about
    that; ``origin`` says who wrote it. ``heading`` is that of the section which begins with it; ``detail`` says of
    sources that disagree what they are.
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
    unsure: bool = False  # ``checked`` says that nobody could check it

    @property
    def markers(self) -> tuple[str, ...]:
        """Of its sources, each once."""
        return tuple(dict.fromkeys(citation.marker for citation in self.citations))


@dataclass(frozen=True, slots=True)
class Row:
    """A named value, or a line without a name; ``detail`` is said under it."""

    label: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of an answer: title, rows, sentences. Parts of one ``section`` stand together under that heading."""

    title: str
    rows: tuple[Row, ...] = ()
    statements: tuple[StatementView, ...] = ()
    section: str = ""
    warning: bool = False  # to be seen before anything else
    after: bool = False  # about one source: told below the sections, a row each of one table


@dataclass(frozen=True, slots=True)
class VotesView:
    """Claims across (each with its label), studies down: title, reliability, a sign for each claim."""

    claims: tuple[tuple[str, str], ...]
    studies: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """Who judged, and what is known of how often it errs."""

    name: str
    errors: str


@dataclass(frozen=True, slots=True)
class BadgeView:
    """The badge: a word and a symbol (never a colour alone), why, who judged, and what it does not say.

    ``before`` tells of the badge with the withheld sentences in it where that differs, ``alone`` of those by kind of
    source.
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
    """Two sources that differ, each with its title and edition, and what they say; no verdict."""

    text: str
    ours: CitationView
    theirs: CitationView
    our_title: str
    their_title: str


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source: ``title`` and ``details`` (edition, page, headings), ``warnings`` (superseded, old, overdue).

    ``passage_id``, ``start`` and ``end`` open it; ``file`` is the name of the file it came from.
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

    ``headline`` says how the question ended and who wrote what follows; ``searched`` what was looked through where
    nothing was found; ``banner`` whether it may be handed out; ``checks`` are those of the answer as a whole.
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
