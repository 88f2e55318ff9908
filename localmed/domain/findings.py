"""What a search found: passages, the sections that they stand in, and how the question was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from localmed.domain.sources import Hit, Passage, Status


class Closeness(StrEnum):
    """How near the first section is to the question, in words and meaning. It says nothing of an answer."""

    CLOSE = "close"
    SOME_WAY = "some way off"
    NOTHING_NEAR = "nothing near"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, whether dense search took part, the question's language, and who reranked the hits ("": nobody).

    ``closeness`` is that of the first hit, ``near`` the score it was taken from (None: there is none).
    """

    hits: tuple[Hit, ...]
    dense: bool
    language: str
    reranker: str = ""
    closeness: Closeness = Closeness.UNKNOWN
    near: float | None = None


ALL = "*"  # among the names of readings that are left out: every reading


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a question is ``written`` so, and what it ``means``: searched for besides, unless it is ``left_out``."""

    written: str
    means: str
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it was ``typed`` and how it was read, in its order, what is left out among it."""

    typed: str
    readings: tuple[Reading, ...] = ()

    @property
    def further(self) -> str:
        """The words that are searched for besides."""
        return " ".join(dict.fromkeys(one.means for one in self.readings if not one.left_out))

    @property
    def written_out(self) -> str:
        """The question with its readings behind it: the further query by meaning; "" without any."""
        return f"{self.typed} ({self.further})" if self.further else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence or a table's row, ``start:end`` of its passage; ``breaks`` where it begins a line of its own."""

    passage: Passage
    start: int
    end: int
    marked: bool = False
    breaks: bool = False

    @property
    def text(self) -> str:
        """Its words."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document, found by ``best``; ``cut`` says that the document's section is longer.

    ``study``: its document is of the literature; ``population`` are the sentences of its own that say whom it is about.
    ``lacks`` is what the question names and neither it nor its headings do.
    """

    best: Hit
    lines: tuple[Line, ...]
    cut: bool = False
    study: bool = False
    population: tuple[Line, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Its passages, in order, then those that say whom a study is about."""
        return tuple({line.passage.id: line.passage for line in (*self.lines, *self.population)}.values())

    @property
    def marks(self) -> tuple[Line, ...]:
        """What is marked."""
        return tuple(line for line in self.lines if line.marked)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings above it, without the document's title."""
        passage = self.best.passage
        return tuple(one for one in passage.headings if one != passage.title)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a question found: how it was ``read``, sections in its language, and ``others`` in another language.

    ``standing`` gives each document's status and the date by which its review was due, "" if it is not overdue.
    ``withdrawn`` are documents that would be among the first and were withdrawn lately: (title, day). ``absent`` is
    what the question names and no document does.
    """

    read: Question
    found: Found
    sections: tuple[Section, ...]
    others: tuple[Section, ...] = ()
    standing: Mapping[str, tuple[Status, str]] = field(default_factory=dict)
    withdrawn: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()
