"""The parts that workflows add to an answer: one frozen type each, so that nothing is parsed back.

Numbers are numbers, texts of localmed are ``Message`` or enumerations, texts of users and sources are strings. Every
part has ``statements``, so that code that walks an answer's citations need not know the types. ``start:end`` is a
part's place in the user's text. ``presentation`` renders them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from localmed.domain.messages import Message
from localmed.domain.patient import RecordName
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
    """A concept graph's definition of a term; ``source`` names the vocabulary and the concept."""

    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class OlderPart:
    """Sentences in a part that only earlier versions wrote (``codec.OLDER``)."""

    statements: tuple[Statement, ...]


# --- explain: a medical order -----------------------------------------------------------------------------------------


class Restated(StrEnum):
    """Who restated a line of an order in plain words."""

    QUOTED = "quoted"  # nobody: the line is shown as written
    MODEL = "model"
    REJECTED = "rejected"  # a model's wording omitted something of the line and is not shown


@dataclass(frozen=True, slots=True)
class Expansion:
    """An abbreviation and its usual meanings; several if it is ambiguous.

    ``chosen`` is the place among them of the one that a person chose.
    """

    written: str
    meanings: tuple[str, ...]
    chosen: int | None = None

    @property
    def is_ambiguous(self) -> bool:
        """Whether nobody has chosen among several meanings."""
        return len(self.meanings) > 1 and self.chosen is None


@dataclass(frozen=True, slots=True)
class LinePart(_NoStatements):
    """A line of the order, its abbreviations, and ``plain`` words if a model wrote any.

    ``medicines`` are those of a line with several: values are not assigned to them, and one abbreviation at most is
    explained. ``stopped``: the line stops or pauses something, so how often and which way are not explained.
    ``disagrees``: it says in two ways how often, and neither is explained. ``terms`` of it are explained.
    """

    text: str
    expansions: tuple[Expansion, ...] = ()
    plain: str = ""
    restated: Restated = Restated.QUOTED
    start: int = 0
    end: int = 0
    medicines: tuple[str, ...] = ()
    stopped: bool = False
    disagrees: bool = False
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermPart:
    """A term with cited sentences or a graph's definition; one part a language. ``also`` are its other names."""

    term: str
    statements: tuple[Statement, ...] = ()
    also: tuple[str, ...] = ()
    definition: Definition | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A follow-up question, answered if it has statements; ``searched_as`` is its self-contained form, if rewritten.

    ``left_out``: an answer was withheld from a patient because it may be about something else. ``nearest`` names
    sections with marks, for staff. ``signs``: the warning signs that the question names, told with the site's
    ``emergency_number``. ``talk``: it is only like what somebody in danger says; staff are told. ``sections`` are the
    markers of its sections. Whoever releases the leaflet may write a ``reply``, and put whole sections on it: they are
    ``printed`` (title and heading of each), and the last ``quoted`` statements are theirs.
    """

    question: str
    statements: tuple[Statement, ...] = ()
    searched_as: str = ""
    left_out: bool = False
    nearest: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    emergency_number: str = ""
    talk: bool = False
    sections: tuple[str, ...] = ()
    reply: str = ""
    printed: tuple[str, ...] = ()
    quoted: int = 0


class ReadingScale(StrEnum):
    """The unit of a reading level."""

    GRADE = "grade"  # Flesch-Kincaid: school years in the United States
    CHARACTERS = "characters"  # average characters a sentence


@dataclass(frozen=True, slots=True)
class ReadingLevelPart(_NoStatements):
    """The reading level of the patient's text, over so many sentences."""

    scale: ReadingScale
    value: float
    sentences: int


# --- departments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DepartmentPart:
    """A department: cited reasons to go there, its floor ("": unknown), warning signs; ``lower``: only ranked lower."""

    name: str
    statements: tuple[Statement, ...] = ()
    floor: str = ""
    signs: tuple[Message, ...] = ()
    lower: bool = False


# --- ebm: evidence for one patient ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PicoPart(_NoStatements):
    """The elements of a clinical question, in the user's words; "" if missing."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class RecordPart(_NoStatements):
    """The patient's record without identifiers, and the names in it, in order.

    ``absent`` are the starts of those that no document of the library names.
    """

    text: str
    names: tuple[RecordName, ...] = ()
    absent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AllergyPart:
    """Words of a record on an allergy, and the shown sentences that name its medicine or class.

    Without sentences: ``named`` are medicines of an order, or of the record's other lines.
    """

    words: str
    named: tuple[str, ...]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class InteractionPart(_NoStatements):
    """A medicine of the record, as written, that interacts with one that is asked about, by the concept graph."""

    words: str
    named: str
    source: str


@dataclass(frozen=True, slots=True)
class TogetherPart:
    """A medicine of the record (``words``, in the clause ``said``), its rows in lists of medicines, and lines that name
    it together with ``named``: what the record or the question names too, as written there; ``further`` are medicines
    that only sections on the question name. Without lines it is named with nothing else. Not ``is_own``: a medicine
    that is asked about or proposed, with lines that name something of the record. ``is_warning``: the lines warn of
    it where they name the others.
    """

    words: str
    named: tuple[str, ...]
    statements: tuple[Statement, ...]
    further: tuple[str, ...] = ()
    said: str = ""
    is_own: bool = True
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class RangePart:
    """Values of the record, as written, and lines of the library that give a range of their measures.

    ``urgent``: by the table of red flags such a value may be an emergency.
    """

    words: tuple[str, ...]
    statements: tuple[Statement, ...]
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class NotJudgedPart(_NoStatements):
    """Aspects of patient and sources that were not assessed; ``first`` where they stand in the place of warnings."""

    matters: tuple[Message, ...]
    first: bool = False


@dataclass(frozen=True, slots=True)
class SourceLevelPart(_NoStatements):
    """A cited document's ``level`` by publication type (``clinical.publications``): 1 (highest) to 5, else 0."""

    markers: tuple[str, ...]
    title: str
    design: str
    level: int
    edition: str = ""


# --- verify: an answer compared with the library ----------------------------------------------------------------------


class Label(StrEnum):
    """What the studies say about a claim, and the verdict on the response."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_ENOUGH = "not_enough"
    NOT_JUDGED = "not_judged"
    CORRECT = "correct"
    MISTAKEN = "mistaken"


class Quality(StrEnum):
    """The quality of the evidence given with a response; all but ``SOUND`` and ``UNKNOWN`` are poor."""

    SOUND = "sound"
    MISLEADING = "misleading"
    IRRELEVANT = "irrelevant"
    OUTDATED = "outdated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Titled:
    """A study as shown to a reader; ``from_answer``: the verified answer cited it."""

    title: str
    edition: str = ""
    from_answer: bool = False


@dataclass(frozen=True, slots=True)
class CitedReference:
    """A marker of the verified answer and its study; None if no single document matches.

    ``years`` are those in the answer, if they differ from the edition's.
    """

    marker: str
    study: Titled | None = None
    years: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CitationsPart(_NoStatements):
    """The documents that the verified answer cites."""

    references: tuple[CitedReference, ...]


@dataclass(frozen=True, slots=True)
class SupportPart:
    """The sentences of the verified answer, each with the verdict on its citations."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ResponsePart(_NoStatements):
    """The label of the verified answer, and the number of claims by label.

    Without ``carried`` its own sources do not support it, so that it is not correct although its claims are.
    """

    label: Label
    claims: tuple[tuple[Label, int], ...]
    carried: bool = True


@dataclass(frozen=True, slots=True)
class AlertPart(_NoStatements):
    """Studies with an alert: the code of the reason (``standing``) and the study."""

    alerts: tuple[tuple[str, Titled], ...]


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """A claim and the studies' votes on it; ``whole``: question and answer together are the claim.

    ``votes`` are for, against and neither; ``q`` and ``tau2`` measure the disagreement of the ``voters``. The
    statements quote the main evidence, or the nearest evidence for a claim that is not judged.
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
    """The quality of the evidence given with the verified answer."""

    quality: Quality


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study with its votes and its reliability: ``base`` + ``bonus`` for its date, minus penalties for ``failed``.

    ``votes`` are +1, 0 or -1, one a claim in order; ``failed`` are codes of ``reliability.ASPECTS``.
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


# --- plan: the queries to each source ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourcePlanPart(_NoStatements):
    """The queries to a source (``source_plan.SOURCES``), and the number of passages found."""

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
    OlderPart | LinePart | TermPart | QuestionPart | ReadingLevelPart | DepartmentPart |
    PicoPart | RecordPart | AllergyPart | InteractionPart | TogetherPart | RangePart | NotJudgedPart |
    SourceLevelPart | CitationsPart | SupportPart | ResponsePart | AlertPart | ClaimPart | EvidenceQualityPart |
    StudiesPart | SourcePlanPart | ConceptPart
)  # fmt: skip
