"""The roles of evidence-based practice (LINS, Methods: workflow in evidence-based medicine practice).

A clinical question becomes a PICO question; what the guideline map opened is looked through; a recommendation is
written from the evidence, and what in it bears on this patient. A record goes to a model between marks, as evidence
does: it is about the patient and gives no orders, and no statement may cite it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localmed import language
from localmed.agents import evidence as shown
from localmed.agents.asking import AnswerInput, QuestionInput, cited_writing, to_correct
from localmed.agents.prompts import asked_by, instructions, words
from localmed.agents.roles import Choosing, Role, Writing
from localmed.domain import Statement, message
from localmed.domain.patient import PatientRecord
from localmed.errors import Rejected
from localmed.ports import Choice

ELEMENTS = ("population", "intervention", "comparison", "outcome")
ELEMENT_CHARACTERS = 160  # of one element of a PICO question
FROM_QUESTION = 0.5  # least share of an element's words that the question (or record) holds: the rest is grammar
SHOWN = 4_000  # characters of a record's prose before a model: its lists stand before them


@dataclass(frozen=True, slots=True)
class Pico:
    """A question by the PICO principle; "" for an element that is not named. ``labelled``: the user wrote it so."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""
    labelled: bool = False


@dataclass(frozen=True, slots=True)
class PicoInput(QuestionInput):
    """A clinical question, and the patient's record if there is one. The result is a ``Pico``."""

    record: PatientRecord | None = None


@dataclass(frozen=True, slots=True)
class Guideline:
    """A guideline that the map opened: its title, what its passages found stand under, whether one of them helps."""

    document: str
    title: str
    outline: str
    helpful: bool


@dataclass(frozen=True, slots=True)
class GuidelinesInput(QuestionInput):
    """Which of ``guidelines`` apply to the question? The result is a tuple of document ids."""

    guidelines: tuple[Guideline, ...]


@dataclass(frozen=True, slots=True)
class RecommendationInput(AnswerInput):
    """As of ``CITED_ANSWER``, with the PICO question and the record. The result is a ``Draft``.

    ``question`` is what was searched, by which rules score; ``clinical`` is the question as the clinician put it.
    """

    pico: Pico = Pico()
    record: PatientRecord | None = None
    clinical: str = ""

    @property
    def context(self) -> tuple[str, ...]:
        """The question and the record."""
        return (self.question, in_words(self.record, self.language)) if self.record else (self.question,)


@dataclass(frozen=True, slots=True)
class ApplicabilityInput(AnswerInput):
    """What the evidence says of patients like this one, beside the ``recommendation``. The result is a ``Draft``."""

    record: PatientRecord = field(default_factory=PatientRecord)
    recommendation: tuple[Statement, ...] = ()
    clinical: str = ""

    @property
    def context(self) -> tuple[str, ...]:
        """The question and the record."""
        return (self.question, in_words(self.record, self.language))


def in_words(record: PatientRecord, language: str) -> str:
    """The record as a model is shown it: coded entries and prose, as quoted material."""
    called = words("record", language)
    facts = [
        ("age", f"{record.age:g}" if record.age is not None else ""),
        ("sex", record.sex),
        ("problems", "; ".join(record.problems)),
        ("medications", "; ".join(record.medications)),
        ("allergies", "; ".join(record.allergies) or (called["none"] if "allergies" in record.none_of else "")),
        ("results", "; ".join(f"{result.name} {result.written}" for result in record.results)),
    ]
    prose = record.text[:SHOWN]
    lines = [f"{called[name]}: {value}" for name, value in facts if value and not _in_prose(value, prose)]
    return shown.quoted("record", "\n".join((*lines, prose)), language)


def _in_prose(value: str, prose: str) -> bool:
    """Whether the record's own words give every entry of a list: then it does not stand there twice."""
    return all(entry.casefold() in prose.casefold() for entry in value.split("; "))


def _pico_prompt(task: PicoInput) -> str:
    return "\n".join((task.question, in_words(task.record, task.language))) if task.record else task.question


def _pico(task: PicoInput, value: Mapping[str, Any]) -> Pico:
    """The elements; what is neither in the question nor, for the population, in the record was made up.

    A comparison that was made up is left out: small models fill in "no treatment" where the question names none.
    """
    elements = {name: " ".join(str(value[name]).split()) for name in ELEMENTS}
    known = f"{task.question}\n{in_words(task.record, task.language) if task.record else ''}"
    if _held(elements["comparison"], task.question) < FROM_QUESTION:
        elements["comparison"] = ""
    for name, source in (("population", known), ("intervention", task.question)):
        if elements[name] and _held(elements[name], source) < FROM_QUESTION:
            raise Rejected("agents.pico_element", element=message(f"agents.element.{name}"))
    if not elements["population"] and not elements["intervention"]:
        raise Rejected("agents.pico_empty")
    for text in filter(None, elements.values()):
        shown.in_language(text, task.language)
    return Pico(elements["population"], elements["intervention"], elements["comparison"], elements["outcome"])


def _held(text: str, source: str) -> float:
    """The share of the words of ``text`` that ``source`` holds; Chinese by pairs of characters."""
    words, held = set(language.words(text, for_query=True)), set(language.words(source))
    return len(words & held) / len(words) if words else 1.0


def _guidelines(task: GuidelinesInput) -> tuple[str, ...]:
    outlines = (f"{guideline.title}\n{guideline.outline}" for guideline in task.guidelines)
    return tuple(shown.quoted("guideline", outline, task.language) for outline in outlines)


def _which(task: GuidelinesInput, choices: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(
        guideline.document for guideline, choice in zip(task.guidelines, choices, strict=True) if choice.best == 0
    )


def _recommendation_prompt(task: RecommendationInput) -> str:
    names = _ELEMENT_NAMES[task.language]
    elements = [f"{names[name]}: {text}" for name in ELEMENTS if (text := getattr(task.pico, name))]
    record = [in_words(task.record, task.language)] if task.record else []
    asker = asked_by(task.language, task.audience, task.day)
    return "\n".join((asker, task.clinical or task.question, *elements, *record, *to_correct(task)))


def _applicability_prompt(task: ApplicabilityInput) -> str:
    written = "\n".join(statement.text for statement in task.recommendation)
    recommendation = shown.quoted("recommendation", written, task.language)
    return "\n".join(
        (task.clinical or task.question, in_words(task.record, task.language), recommendation, *to_correct(task))
    )


_ELEMENT_NAMES = {
    "en": dict(zip(ELEMENTS, ("Population", "Intervention", "Comparison", "Outcome"), strict=True)),
    "zh": dict(zip(ELEMENTS, ("人群", "干预", "对照", "结局"), strict=True)),
}
_ELEMENT = {"type": "string", "maxLength": ELEMENT_CHARACTERS}
PICO = Role(
    "pico",
    "The clinical question by the PICO principle",
    "2",
    "LINS, PICO agent",
    Writing(
        instructions("pico"),
        lambda _: shown.object_of(dict.fromkeys(ELEMENTS, _ELEMENT)),
        _pico_prompt,
        _pico,
        max_tokens=300,
    ),
)
GUIDELINE_RELEVANCE = Role(
    "guideline_relevance",
    "Which of the guidelines found apply to the question",
    "1",
    "LINS, guideline relevance agent",
    Choosing(
        instructions("guideline_relevance"),
        {"en": ("applies", "unrelated"), "zh": ("适用", "无关")},
        lambda task: f"{task.question}\n",
        _guidelines,
        _which,
    ),
)
RECOMMENDATION = Role(
    "recommendation",
    "An evidence-based recommendation, each sentence with its citation",
    "2",
    "LINS, evidence-based recommendation",
    cited_writing(
        instructions("recommendation"),
        _recommendation_prompt,
        max_tokens=900,
        formed=True,
    ),
)
APPLICABILITY = Role(
    "applicability",
    "What the evidence says of patients like this one",
    "2",
    "LINS, evidence-based recommendation: integration with the patient's data",
    cited_writing(
        instructions("applicability"),
        _applicability_prompt,
        max_tokens=600,
    ),
)
ROLES = (PICO, GUIDELINE_RELEVANCE, RECOMMENDATION, APPLICABILITY)
