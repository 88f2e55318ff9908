"""What a question came to: an answer of statements, each with citations that point into evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from localmed.domain.codec import Codec, reachable
from localmed.domain.findings import Closeness, Reading
from localmed.domain.messages import Message
from localmed.domain.parts import Part
from localmed.domain.sources import Citation, Evidence, Statement, digest


class Badge(StrEnum):
    """Answered with Evidence, badge table. ``NONE`` until a judge has looked."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BadgeJudge:
    """Who judged a badge (a code of ``badge.judge``, or a name), and how often it was measured to err.

    ``wrong`` is the share of errors by criterion (``answers``, ``related``, ``grounded``) on the data ``measured_on``;
    empty where it was never measured.
    """

    name: str
    measured_on: str = ""
    wrong: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked before anyone read the answer. The badge means "supported by its sources", never "safe".

    ``checks`` are the checks of the answer as a whole (coherence, the guide's final check), each with how it ended.
    ``badge_before`` is that with the withheld sentences in it; ``badges`` are those of each kind of source alone.
    """

    statements_checked: int = 0
    statements_withheld: int = 0
    markers_rejected: int = 0
    judges: tuple[Message, ...] = ()  # who checked the statements
    badge: Badge = Badge.NONE
    reason: Message | None = None
    badge_judges: tuple[BadgeJudge, ...] = ()
    badge_before: Badge = Badge.NONE
    badges: tuple[tuple[str, Badge], ...] = ()
    checks: tuple[Message, ...] = ()


class AnswerStatus(StrEnum):
    """How the question ended.

    ``SECTIONS``: the sections that speak of it are shown and nothing is claimed. ``ABSTAINED``: there is nothing to
    show. ``SAFETY``: the site's safety message was given in place of an answer.
    """

    ANSWERED = "answered"
    SECTIONS = "sections"
    ABSTAINED = "abstained"
    UNVERIFIED = "unverified"
    SAFETY = "safety"


class ConflictKind(StrEnum):
    """In what two sources disagree: numbers of one sentence in two documents of one title, or two editions."""

    DOSE = "dose"
    EDITION = "edition"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Source ``against`` says otherwise than ``marker``, by the quotations ``ours`` and ``theirs``.

    Of two editions ``editions`` has the dates, ours first.
    """

    kind: ConflictKind
    marker: str
    against: str
    ours: Citation
    theirs: Citation
    editions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A sentence or a table's row: the characters ``start:end`` of the evidence called ``marker``.

    ``marked``: one of those nearest to the question. ``breaks``: it begins a line of its own.
    """

    marker: str
    start: int
    end: int
    marked: bool = False
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of a document as it is shown: its lines in reading order, over one or more pieces of evidence.

    ``best`` is the marker of the passage by which it was found; ``cut``: the document's section is longer. Of a
    ``study``, ``population`` are its own sentences on whom it is about; none: they were not read. ``lacks``: see
    ``Section``.
    """

    best: str
    lines: tuple[ShownLine, ...]
    cut: bool = False
    score: float = 0.0
    study: bool = False
    population: tuple[ShownLine, ...] = ()
    lacks: tuple[str, ...] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Of its evidence, in reading order."""
        return tuple(dict.fromkeys(line.marker for line in self.lines))

    @property
    def marks(self) -> tuple[ShownLine, ...]:
        """The lines that are marked."""
        return tuple(line for line in self.lines if line.marked)

    @property
    def link(self) -> tuple[str, int, int]:
        """What opens it: (marker, start, end) of its first mark and those that follow at once; else its first line."""
        first = (*self.marks, *self.lines)[0]
        end = first.end
        for line in self.lines[self.lines.index(first) + 1 :]:
            if not line.marked or line.marker != first.marker:
                break
            end = line.end
        return first.marker, first.start, end


@dataclass(frozen=True, slots=True)
class Receipts:
    """The sections that speak of a question, best first, and those in ``others`` languages than the question's.

    ``readings`` say how the question was read, and what of it was left out. Without ``dense`` only words were searched.
    ``closeness`` is that of the first section. ``flags`` name the warning signs of an emergency in the question.
    ``absent`` is what the question names and no document of the library does.
    """

    readings: tuple[Reading, ...] = ()
    sections: tuple[ShownSection, ...] = ()
    others: tuple[ShownSection, ...] = ()
    dense: bool = True
    closeness: Closeness = Closeness.UNKNOWN
    flags: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of the readings that were left out."""
        return tuple(one.written for one in self.readings if one.left_out)


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
class Answer:
    """What a question came to. ``searched`` names the collections looked through, in that order.

    ``receipts`` are the sections that speak of it. ``evidence`` is what they, the statements and ``conflicts`` point
    at. ``workflow`` says which flow answered, and ``parts`` are what it adds to the statements. ``released_by`` is who
    releases it to a patient ("": not released), ``released_on`` the day.
    """

    status: AnswerStatus
    question: str
    language: str
    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]
    searched: tuple[str, ...]
    provenance: Provenance
    verification: Verification = field(default_factory=Verification)
    notes: tuple[Message, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    workflow: str = "ask"
    parts: tuple[Part, ...] = ()
    released_by: str = ""
    released_on: str = ""
    receipts: Receipts | None = None

    @property
    def by_marker(self) -> dict[str, Evidence]:
        """Its evidence by what it is called."""
        return {piece.marker: piece for piece in self.evidence}

    @property
    def shown(self) -> tuple[Statement, ...]:
        """The statements that are not withheld."""
        return tuple(statement for statement in self.statements if not statement.withheld)

    @property
    def sections(self) -> tuple[ShownSection, ...]:
        """The sections shown, those in another language last."""
        return (*self.receipts.sections, *self.receipts.others) if self.receipts else ()

    def marks_of(self, marker: str, start: int, end: int) -> tuple[tuple[str, int, int], ...]:
        """All marks of the section that ``start:end`` of ``marker`` opens (it may have none), of a citation itself."""
        opened = next((one for one in self.sections if one.link == (marker, start, end)), None)
        if opened is None:
            return ((marker, start, end),)
        return tuple((one.marker, one.start, one.end) for one in opened.marks)

    @property
    def found_nothing(self) -> bool:
        """Whether there is nothing to show, or only sections that are not near."""
        far = self.receipts is not None and self.receipts.closeness is Closeness.NOTHING_NEAR
        return self.status is AnswerStatus.ABSTAINED or (self.status is AnswerStatus.SECTIONS and far)

    @property
    def links(self) -> tuple[tuple[str, int, int], ...]:
        """What it points at, as (marker, start, end): its citations, its sections, what was withheld."""
        cited, withheld = (
            [
                (it.marker, it.start, it.end)
                for one in self.all_statements
                if one.withheld is gone
                for it in one.citations
            ]
            for gone in (False, True)
        )
        return tuple(dict.fromkeys((*cited, *(section.link for section in self.sections), *withheld)))

    @property
    def all_statements(self) -> tuple[Statement, ...]:
        """Its statements, then those of its parts."""
        return (*self.statements, *(statement for part in self.parts for statement in part.statements))


def from_one(answer: Answer) -> Answer:
    """``answer`` with the sources alone that its sentences cite, numbered from one; its sections are left out."""
    cited = {citation.marker for statement in answer.all_statements for citation in statement.citations}
    kept = [piece for piece in answer.evidence if piece.marker in cited]
    names = {piece.marker: str(number) for number, piece in enumerate(kept, 1)}

    def moved(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(one, citations=tuple(replace(it, marker=names.get(it.marker, it.marker)) for it in one.citations))
            for one in statements
        )

    def moved_part(part: Any) -> Any:
        return replace(part, statements=moved(part.statements)) if part.statements else part

    return replace(
        answer,
        statements=moved(answer.statements),
        parts=tuple(moved_part(part) for part in answer.parts),
        evidence=tuple(replace(piece, marker=names[piece.marker]) for piece in kept),
        receipts=None,
    )


# --- as JSON ----------------------------------------------------------------------------------------------------------

FORMAT = "localmed answer 4"  # 4: receipts
BEFORE = "localmed answer 3"
LARGEST = 64 * 2**20  # bytes of an answer as JSON; one over three tiers has about 0.2 MiB


@cache
def answers() -> Codec:
    """The codec of answers."""
    return Codec(reachable(Answer))


def answer_json(answer: Answer, language: str = "") -> dict[str, Any]:
    """``answer`` as JSON with its format and a digest; words in ``language`` stand beside each message."""
    values = {"format": FORMAT, **answers().encode(answer, Answer, language)}
    return {**values, "digest": _digest(values)}


class AlteredAnswer(ValueError):
    """A kept answer that is not as it was written."""


def _digest(values: Mapping[str, Any]) -> str:
    return digest(json.dumps(values, sort_keys=True))


def answer_of(value: Any, *, authentic: bool = False) -> Answer:
    """The answer that ``answer_json`` wrote; raise ``AlteredAnswer`` where its digest is wrong or missing.

    Of an ``authentic`` one (it was sealed, or made a moment ago) the digest is not asked for: what was sealed by an
    earlier version has none. Raise ``ValueError`` for anything else, another version's included.
    """
    if not isinstance(value, dict) or value.get("format") not in (FORMAT, BEFORE):
        raise ValueError(f"it is not of the format {FORMAT!r}")
    values = {name: item for name, item in value.items() if name != "digest"}
    if not authentic and value.get("digest") != _digest(values):
        raise AlteredAnswer
    try:
        answer: Answer = answers().decode({name: item for name, item in values.items() if name != "format"}, Answer)
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError("no answer") from error
    return answer
