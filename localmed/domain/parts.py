"""The parts that workflows add to an answer's statements: one frozen type for each, so that nothing is parsed back.

Numbers are numbers, what localmed itself says is a ``Message`` or an enumeration, what the user or a source said is
text. Each has ``statements``, so that whoever walks the cited sentences of an answer need not know the types.
``start:end`` is where a part's text stands in the user's text. How they are shown stands in ``presentation``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from localmed.domain.messages import Message
from localmed.domain.patient import Measured, RecordEntry
from localmed.domain.sources import Statement


class _NoStatements:
    """A part without cited sentences."""

    __slots__ = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class Definition:
    """What a concept graph says that a term means; ``source`` names the vocabulary and the concept in it."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class OlderPart:
    """Sentences in a part that only release 0.1.0 wrote (``codec.OLDER``)."""

    statements: tuple[Statement, ...]


# --- explain: a medical order -----------------------------------------------------------------------------------------


class Restated(StrEnum):
    """Who put a line of an order into plain words, if anybody did."""

    QUOTED = "quoted"  # nobody: the line stands as it is written
    MODEL = "model"
    REJECTED = "rejected"  # a model did, and not everything of the line was in it: its words are not shown


@dataclass(frozen=True, slots=True)
class Expansion:
    """An abbreviation as it is written, and what it usually means: more than one meaning where nobody can tell."""

    written: str
    meanings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LinePart(_NoStatements):
    """A line of the order: ``text`` as it is written, its abbreviations, and ``plain`` words where a model gave any.

    ``medicines`` are those of a line that names several: which value is whose is not judged, and nothing is explained.
    """

    text: str
    expansions: tuple[Expansion, ...] = ()
    plain: str = ""
    restated: Restated = Restated.QUOTED
    start: int = 0
    end: int = 0
    medicines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermPart:
    """A term as written, with cited sentences that define it, or a graph's definition; ``also`` are its other names.

    A term that is explained in two languages has two parts.
    """

    term: str
    statements: tuple[Statement, ...] = ()
    also: tuple[str, ...] = ()
    definition: Definition | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class UnexplainedPart(_NoStatements):
    """Medicines, terms and short forms of the order that nothing here explains."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A follow-up question, answered where it has statements; ``searched_as`` is it made to stand alone, if it was.

    ``left_out`` says that there was an answer, which is not shown to a patient, as it may be about something else.
    """

    question: str
    statements: tuple[Statement, ...] = ()
    searched_as: str = ""
    left_out: bool = False


class ReadingScale(StrEnum):
    """What a reading level counts."""

    GRADE = "grade"  # Flesch-Kincaid: school years in the United States
    CHARACTERS = "characters"  # a sentence, on average


@dataclass(frozen=True, slots=True)
class ReadingLevelPart(_NoStatements):
    """How hard the text that a patient would read is, over so many sentences."""

    scale: ReadingScale
    value: float
    sentences: int


# --- departments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DepartmentPart:
    """A department of the hospital: why go there (cited), its floor ("": the guide does not say), warning signs."""

    name: str
    statements: tuple[Statement, ...] = ()
    floor: str = ""
    signs: tuple[Message, ...] = ()


# --- ebm: evidence for one patient ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PicoPart(_NoStatements):
    """The elements of a clinical question, in the user's words; "" for one that it does not name."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class RecordPart(_NoStatements):
    """What was read from the patient's record, each entry with the words that it was read from."""

    entries: tuple[RecordEntry, ...]


@dataclass(frozen=True, slots=True)
class AllergyPart:
    """An allergy of the record, and the sentences shown that name the same medicine or one of the class it names."""

    allergy: RecordEntry
    named: tuple[str, ...]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class InteractionPart(_NoStatements):
    """A medicine of the record that interacts, as the concept graph says, with one that the sources name."""

    entry: RecordEntry
    named: str
    source: str


@dataclass(frozen=True, slots=True)
class ValuePart:
    """A value of the record, and the rows of tables shown whose range holds it, quoted."""

    value: Measured
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class NotJudgedPart(_NoStatements):
    """What of patient and sources nobody looked at or judged."""

    matters: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class SourceLevelPart(_NoStatements):
    """A cited document by its publication type (as ``clinical.publications``): ``level`` 1 (highest) to 5, else 0."""

    markers: tuple[str, ...]
    title: str
    design: str
    level: int
    edition: str = ""


# --- verify: an answer held against the library -----------------------------------------------------------------------


class Label(StrEnum):
    """What the studies say of a claim, and what follows for the response."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_ENOUGH = "not_enough"
    NOT_JUDGED = "not_judged"
    CORRECT = "correct"
    MISTAKEN = "mistaken"


class Quality(StrEnum):
    """What the evidence given with a response is worth to it; all but ``SOUND`` and ``UNKNOWN`` are poor."""

    SOUND = "sound"
    MISLEADING = "misleading"
    IRRELEVANT = "irrelevant"
    OUTDATED = "outdated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Titled:
    """A study as a reader is told of it; ``from_answer`` if the answer that is verified brought it."""

    title: str
    edition: str = ""
    from_answer: bool = False


@dataclass(frozen=True, slots=True)
class CitedReference:
    """A marker of the verified answer and the study that it names; None where no single document goes by that name.

    ``years`` are those that the answer names, where they are others than the edition's.
    """

    marker: str
    study: Titled | None = None
    years: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitationsPart(_NoStatements):
    """What each citation of the verified answer names."""

    references: tuple[CitedReference, ...]


@dataclass(frozen=True, slots=True)
class SupportPart:
    """The sentences of the verified answer, each with the verdict on what it cites."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ResponsePart(_NoStatements):
    """The label of the verified answer, and how many claims have which.

    Without ``carried`` its own sources do not carry it, so that it is not correct although its claims are supported.
    """

    label: Label
    claims: tuple[tuple[Label, int], ...]
    carried: bool = True


@dataclass(frozen=True, slots=True)
class AlertPart(_NoStatements):
    """Studies that a reader must know about first: code of why (``standing``) and the study."""

    alerts: tuple[tuple[str, Titled], ...]


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """A claim and how the studies voted on it; ``whole`` if question and answer together are the claim.

    ``votes`` are those for, against and neither; ``q`` and ``tau2`` tell how far the ``voters`` disagree. The
    statements quote the main evidence; of a claim that is not judged, what the studies say that is nearest to it.
    """

    claim: str
    label: Label
    votes: tuple[int, int, int]
    total: float
    q: float = 0.0
    tau2: float = 0.0
    voters: int = 0
    unjudged: int = 0
    main: tuple[Titled, ...] = ()
    dropped: tuple[Titled, ...] = ()
    statements: tuple[Statement, ...] = ()
    whole: bool = False
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class EvidenceQualityPart(_NoStatements):
    """What the evidence given with the verified answer is worth to it."""

    quality: Quality


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study with its reliability (``base`` + ``bonus`` for its date, less for each of ``failed``) and its votes.

    ``votes`` are +1, 0 or -1, one a claim in their order; ``failed`` are codes of ``reliability.ASPECTS``.
    """

    study: Titled
    reliability: float
    base: int
    bonus: float
    failed: tuple[str, ...]
    votes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StudiesPart(_NoStatements):
    """The studies that voted, most reliable first."""

    studies: tuple[StudyRow, ...]


# --- plan: which source is asked what ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourcePlanPart(_NoStatements):
    """What a source (``source_plan.SOURCES``) was asked, and how many passages came."""

    source: str
    queries: tuple[str, ...]
    passages: int


@dataclass(frozen=True, slots=True)
class ConceptPart(_NoStatements):
    """A concept of the graph: its definition, and its relations as (predicate, object)."""

    name: str
    definition: Definition | None = None
    relations: tuple[tuple[str, str], ...] = ()


Part: TypeAlias = (
    OlderPart | LinePart | TermPart | UnexplainedPart | QuestionPart | ReadingLevelPart | DepartmentPart |
    PicoPart | RecordPart | AllergyPart | InteractionPart | ValuePart | NotJudgedPart |
    SourceLevelPart | CitationsPart | SupportPart | ResponsePart | AlertPart | ClaimPart | EvidenceQualityPart |
    StudiesPart | SourcePlanPart | ConceptPart
)  # fmt: skip
