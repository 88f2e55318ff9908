"""The result of a question: an answer of statements, each with citations of the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any

from localmed.domain.codec import Codec, reachable
from localmed.domain.findings import Closeness, Reading, nearest
from localmed.domain.messages import Message
from localmed.domain.parts import Part
from localmed.domain.sources import Citation, Evidence, Statement, digest


class Badge(StrEnum):
    """The badge of Answered with Evidence; ``NONE`` until a judge has looked."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BadgeJudge:
    """The judge of a badge (a code of ``badge.judge``, or a name) and its measured errors.

    ``wrong`` is the share of errors by criterion (``answers``, ``related``, ``grounded``) on ``measured_on``; empty if
    never measured.
    """

    name: str
    measured_on: str = ""
    wrong: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of checking an answer. The badge means "supported by its sources", never "safe".

    ``checks`` concern the answer as a whole (coherence, the guide's final check). ``badge_before`` includes the
    withheld sentences; ``badges`` are by kind of source.
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
    """The outcome of a question.

    ``SECTIONS``: sections are shown and nothing is claimed. ``ABSTAINED``: there is nothing to show. ``SAFETY``: the
    site's safety message replaces an answer.
    """

    ANSWERED = "answered"
    SECTIONS = "sections"
    ABSTAINED = "abstained"
    UNVERIFIED = "unverified"
    SAFETY = "safety"


class ConflictKind(StrEnum):
    """How two sources disagree: numbers in one sentence of two documents of the same title, or two editions."""

    DOSE = "dose"
    EDITION = "edition"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Source ``against`` contradicts ``marker`` by the quotations; ``editions`` are two editions' dates, ours first."""

    kind: ConflictKind
    marker: str
    against: str
    ours: Citation
    theirs: Citation
    editions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A sentence or table row: the characters ``start:end`` of the evidence ``marker``.

    ``marked``: among the nearest to the question. ``breaks``: it begins a new line.
    """

    marker: str
    start: int
    end: int
    marked: bool = False
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of a document as shown: its lines in reading order, from one or more pieces of evidence.

    ``best`` is the marker of the passage that was found; ``cut``: the document's section is longer. ``population`` are
    a study's own sentences about its population; empty if they were not found. ``lacks``: see ``Section``.
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
        """The markers of its evidence, in reading order."""
        return tuple(dict.fromkeys(line.marker for line in self.lines))

    @property
    def marks(self) -> tuple[ShownLine, ...]:
        """The marked lines."""
        return tuple(line for line in self.lines if line.marked)

    @property
    def link(self) -> tuple[str, int, int]:
        """Its link as (marker, start, end): the first mark and those directly after it, else the first line."""
        run = nearest(self.lines, (line.marker for line in self.lines))
        return run[0].marker, run[0].start, run[-1].end


@dataclass(frozen=True, slots=True)
class Receipts:
    """The sections for a question, best first; ``others`` are in another language than the question.

    ``readings`` say how the question was interpreted. Without ``dense`` only words were searched. ``closeness`` is that
    of the first section. ``flags`` name signs of an emergency in the question. ``absent`` are question terms that no
    document contains. ``others_first``: only ``others`` are on what the question names.
    """

    readings: tuple[Reading, ...] = ()
    sections: tuple[ShownSection, ...] = ()
    others: tuple[ShownSection, ...] = ()
    dense: bool = True
    closeness: Closeness = Closeness.UNKNOWN
    flags: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    others_first: bool = False

    @property
    def left_out(self) -> tuple[str, ...]:
        """The texts of the readings that the user has excluded."""
        return tuple(one.written for one in self.readings if one.left_out)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The models, prompts (role -> version) and library generation that produced an answer.

    ``day`` is the day of the question, which decides which documents were effective or overdue. ``emergency_number``:
    the site's, which warnings of an emergency name.
    """

    generation: str
    profile: str
    models: tuple[tuple[str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()
    version: str = ""
    day: str = ""
    emergency_number: str = ""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of a flow: its name, counts and ids (no patient text), and its duration."""

    name: str
    detail: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a question. ``searched`` names the collections searched, in order.

    ``receipts`` are the sections. ``evidence`` is what sections, statements and ``conflicts`` refer to. ``parts`` are
    what the ``workflow`` adds to the statements. ``released_by`` released it to a patient on ``released_on`` ("": not
    released).
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
        """The evidence by marker."""
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
        """The marks of the section with the link ``start:end`` of ``marker``; without one, the citation itself."""
        opened = next((one for one in self.sections if one.link == (marker, start, end)), None)
        if opened is None:
            return ((marker, start, end),)
        return tuple((one.marker, one.start, one.end) for one in opened.marks)

    @property
    def found_nothing(self) -> bool:
        """Whether there is nothing to show, or no section is near."""
        far = self.receipts is not None and self.receipts.closeness is Closeness.NOTHING_NEAR
        return self.status is AnswerStatus.ABSTAINED or (self.status is AnswerStatus.SECTIONS and far)

    @property
    def links(self) -> tuple[tuple[str, int, int], ...]:
        """Every link as (marker, start, end): citations, sections, then withheld citations."""
        cited: list[tuple[str, int, int]] = []
        withheld: list[tuple[str, int, int]] = []
        for one in self.all_statements:
            (withheld if one.withheld else cited).extend((it.marker, it.start, it.end) for it in one.citations)
        return tuple(dict.fromkeys((*cited, *(section.link for section in self.sections), *withheld)))

    @property
    def all_statements(self) -> tuple[Statement, ...]:
        """Its statements, then those of its parts."""
        return (*self.statements, *(statement for part in self.parts for statement in part.statements))


def from_one(answer: Answer) -> Answer:
    """``answer`` without sections, with only the cited sources, renumbered from one."""
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
LARGEST = 64 * 2**20  # bytes of an answer as JSON; an answer over three tiers has about 0.2 MiB


@cache
def answers() -> Codec:
    """The codec of answers."""
    return Codec(reachable(Answer))


def answer_json(answer: Answer, language: str = "") -> dict[str, Any]:
    """``answer`` as JSON with format and digest; messages include their text in ``language``."""
    values = {"format": FORMAT, **answers().encode(answer, Answer, language)}
    return {**values, "digest": _digest(values)}


class AlteredAnswer(ValueError):
    """A stored answer that has been altered."""


def _digest(values: Mapping[str, Any]) -> str:
    return digest(json.dumps(values, sort_keys=True))


def answer_of(value: Any, *, authentic: bool = False) -> Answer:
    """Read what ``answer_json`` wrote; raise ``AlteredAnswer`` if its digest is wrong or missing.

    The digest of an ``authentic`` answer (sealed, or made a moment ago) is not checked: earlier versions sealed answers
    without one. Raise ``ValueError`` for anything else, including formats of other versions.
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
