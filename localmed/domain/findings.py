"""The result of a search: passages, their sections, and how the question was interpreted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from typing import Protocol, TypeVar

from localmed.domain.sources import Hit, Passage, Status


class Closeness(StrEnum):
    """How near the first section is to the question, in words and meaning; not whether it answers."""

    CLOSE = "close"
    SOME_WAY = "some way off"
    NOTHING_NEAR = "nothing near"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The hits, whether dense search took part, the question's language, and the reranker's name ("": none).

    ``closeness`` is that of the first hit, ``near`` the score that it follows from (None: there is none).
    """

    hits: tuple[Hit, ...]
    dense: bool
    language: str
    reranker: str = ""
    closeness: Closeness = Closeness.UNKNOWN
    near: float | None = None


ALL = "*"  # in ``left_out``: every reading


@dataclass(frozen=True, slots=True)
class Reading:
    """A part of the question as ``written``, and what it ``means``: searched as well, unless ``left_out``.

    ``called``: the names of a value beyond a bound, which are part of what it means ("high potassium"); ``high``: it is
    above one, or below (older answers do not say).
    """

    written: str
    means: str
    left_out: bool = False
    called: tuple[str, ...] = ()
    high: bool | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question as ``typed``, with its readings in order, those left out included."""

    typed: str
    readings: tuple[Reading, ...] = ()

    @property
    def further(self) -> str:
        """The additional search words."""
        return " ".join(dict.fromkeys(one.means for one in self.readings if not one.left_out))

    @property
    def beyond(self) -> tuple[Reading, ...]:
        """The values beyond a bound, without those left out."""
        return tuple(one for one in self.readings if one.called and not one.left_out)

    @property
    def with_units(self) -> str:
        """The question, then its values beyond a bound with their units: "BM 2.1; blood glucose 2.1 mmol/L"."""
        return "; ".join((self.typed, *(one.means for one in self.beyond)))

    @property
    def as_read(self) -> str:
        """The question with its misspelt and short words as they are read, each where it stands."""
        text = self.typed
        for one in self.readings:
            if one.written and not one.called and not one.left_out:
                whole = rf"(?<![A-Za-z]){re.escape(one.written)}(?![A-Za-z])"
                text = re.sub(whole, one.means.replace("\\", r"\\"), text)
        return text

    @property
    def written_out(self) -> str:
        """The question followed by its readings, for a further dense query; "" without any."""
        return f"{self.typed} ({self.further})" if self.further else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence or table row: characters ``start:end`` of its passage; ``breaks`` if it begins a new line."""

    passage: Passage
    start: int
    end: int
    marked: bool = False
    breaks: bool = False

    @property
    def text(self) -> str:
        """Its text."""
        return self.passage.text[self.start : self.end]


class _Marked(Protocol):
    @property
    def marked(self) -> bool: ...


M = TypeVar("M", bound=_Marked)


def nearest(lines: Sequence[M], of: Iterable[object]) -> Sequence[M]:
    """The first marked one of ``lines`` and those directly after it ``of`` the same passage; else the first line."""
    first = next((place for place, line in enumerate(lines) if line.marked), 0)
    passages = list(of)[first:]
    run = takewhile(lambda it: it[0].marked and it[1] == passages[0], zip(lines[first:], passages, strict=True))
    return [line for line, _ in run] or lines[:1]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document, found by ``best``; ``cut``: the document's section is longer.

    ``study``: the document is a study; ``population`` are its sentences about whom it studied. ``lacks`` are question
    terms that neither the section nor its headings contain.
    """

    best: Hit
    lines: tuple[Line, ...]
    cut: bool = False
    study: bool = False
    population: tuple[Line, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Its passages in order, then those of the population."""
        return tuple({line.passage.id: line.passage for line in (*self.lines, *self.population)}.values())

    @property
    def marks(self) -> tuple[Line, ...]:
        """The marked lines."""
        return tuple(line for line in self.lines if line.marked)

    def without_marks(self) -> Section:
        """The section with nothing marked."""
        return replace(self, lines=tuple(replace(line, marked=False) for line in self.lines))

    @property
    def nearest(self) -> Line:
        """Its first mark and those directly after it, as one line; else its first line."""
        run = nearest(self.lines, (line.passage.id for line in self.lines))
        return replace(run[0], end=run[-1].end)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings above it, without the document's title."""
        passage = self.best.passage
        return tuple(one for one in passage.headings if one != passage.title)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a question's search: sections in its language, and ``others`` in another language.

    ``standing`` maps each document to its status and overdue review date ("": not overdue). ``withdrawn`` are recently
    withdrawn documents that would rank high: (title, day, reason). ``absent``: question terms that no document has.
    ``others_first``: only ``others`` are on what the question names.
    """

    read: Question
    found: Found
    sections: tuple[Section, ...]
    others: tuple[Section, ...] = ()
    standing: Mapping[str, tuple[Status, str]] = field(default_factory=dict)
    withdrawn: tuple[tuple[str, str, str], ...] = ()
    absent: tuple[str, ...] = ()
    others_first: bool = False
