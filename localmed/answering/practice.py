"""The roles of evidence-based practice (LINS, Methods: workflow in evidence-based medicine practice).

A clinical question becomes a PICO question: by its own labels, else a chat model states it. A record goes to a model
between marks, as evidence does: it is about the patient and gives no orders, and no statement may cite it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Role, Writing, words
from localmed.domain import message
from localmed.domain.errors import Rejected
from localmed.domain.patient import PatientRecord
from localmed.text import language
from localmed.text.tables import in_characters, listed, table

ELEMENTS = ("population", "intervention", "comparison", "outcome")
ELEMENT_CHARACTERS = 160  # of one element that a model states; one that fills them was cut off
FROM_QUESTION = 0.5  # least share of an element's words that the question (or record) holds: the rest is grammar
READ = 4_000  # characters of a question, as of any that is searched
_MEANT = {name: element for element, names in table("pico")["labels"].items() for name in listed(names)}
_LABELS = re.compile(
    rf"(?:^|(?<=[\s;；,，。.]))(?P<label>{in_characters(', '.join(_MEANT))})\s*[:：]\s*", re.IGNORECASE
)
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
    said = prose.casefold()  # a list whose every entry the record's own words give does not stand there twice
    told = [(name, value) for name, value in facts if not all(it.casefold() in said for it in value.split("; "))]
    lines = [f"{called[name]}: {value}" for name, value in told if value]
    return shown.quoted("record", "\n".join((*lines, prose)), language)


def by_labels(question: str) -> Pico | None:
    """The PICO question that labels its elements ("P: ... I: ..."); ``None`` where fewer than two are labelled."""
    if len(question) > READ:
        return None
    marks = list(_LABELS.finditer(question))
    elements: dict[str, str] = {}
    ends = [mark.start() for mark in marks[1:]] + [len(question)] * bool(marks)
    for mark, end in zip(marks, ends, strict=True):
        elements.setdefault(
            _MEANT[mark["label"].lower()], " ".join(question[mark.end() : end].split()).strip(" ;；,，.。")
        )
    if len([element for element in elements.values() if element]) < 2 or "intervention" not in elements:
        return None
    return Pico(**elements, labelled=True)


def _pico_prompt(task: PicoInput) -> str:
    return "\n".join((task.question, in_words(task.record, task.language))) if task.record else task.question


def _pico(task: PicoInput, value: Mapping[str, Any]) -> Pico:
    """The elements; what is neither in the question nor, for the population, in the record was made up.

    A comparison that was made up is left out: small models fill in "no treatment" where the question names none.
    """
    elements = {name: _whole(" ".join(str(value[name]).split())) for name in ELEMENTS}
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


def _whole(element: str) -> str:
    """``element``, "" where it was cut off: half a sentence may say the contrary of the whole."""
    return element if len(element) < ELEMENT_CHARACTERS else ""


def _held(text: str, source: str) -> float:
    """The share of the words of ``text`` that ``source`` holds; Chinese by pairs of characters."""
    words, held = set(language.words(text, for_query=True)), set(language.words(source))
    return len(words & held) / len(words) if words else 1.0


_ELEMENT = {"type": "string", "maxLength": ELEMENT_CHARACTERS}
# The clinical question by the PICO principle (LINS, PICO agent).
PICO = Role(
    "pico",
    "2",
    Writing(lambda _: shown.object_of(dict.fromkeys(ELEMENTS, _ELEMENT)), _pico_prompt, _pico, max_tokens=300),
)
ROLES = (PICO,)
