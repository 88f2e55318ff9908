"""The roles of evidence-based practice (LINS, Methods: workflow in evidence-based medicine practice).

A clinical question becomes a PICO question by its labels or by a chat model. A record goes to a model between marks:
it gives no orders, and no statement may cite it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Role, Writing
from localmed.domain import message
from localmed.domain.errors import Rejected
from localmed.domain.patient import PatientRecord
from localmed.text import language
from localmed.text.tables import in_characters, listed, table

ELEMENTS = ("population", "intervention", "comparison", "outcome")
ELEMENT_CHARACTERS = 160  # of one element that a model states; one that fills them was cut off
FROM_QUESTION = 0.5  # least share of an element's words in the question or record: the rest is grammar
READ = 4_000  # characters of a question
_MEANT = {name: element for element, names in table("pico")["labels"].items() for name in listed(names)}
_LABELS = re.compile(
    rf"(?:^|(?<=[\s;；,，。.]))(?P<label>{in_characters(', '.join(_MEANT))})\s*[:：]\s*", re.IGNORECASE
)
SHOWN = 8_000  # characters of a record for a model


@dataclass(frozen=True, slots=True)
class Pico:
    """A PICO question; "" for a missing element. ``labelled``: by the user's own labels."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""
    labelled: bool = False


@dataclass(frozen=True, slots=True)
class PicoInput(QuestionInput):
    """A clinical question with any patient record; the result is a ``Pico``."""

    record: PatientRecord | None = None


def in_words(record: PatientRecord, language: str) -> str:
    """The record for a model, quoted."""
    return shown.quoted("record", record.text[:SHOWN], language)


def by_labels(question: str) -> Pico | None:
    """The PICO question by labels ("P: ... I: ..."); ``None`` if fewer than two elements are labelled."""
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
    """The elements; raise ``Rejected`` for one that is neither in the question nor, for the population, in the record.

    An invented comparison is dropped: small models fill in "no treatment".
    """
    elements = {name: _whole(" ".join(str(value[name]).split())) for name in ELEMENTS}
    known = f"{task.question}\n{in_words(task.record, task.language) if task.record else ''}"
    if _share(elements["comparison"], task.question) < FROM_QUESTION:
        elements["comparison"] = ""
    for name, source in (("population", known), ("intervention", task.question)):
        if elements[name] and _share(elements[name], source) < FROM_QUESTION:
            raise Rejected("agents.pico_element", element=message(f"agents.element.{name}"))
    if not elements["population"] and not elements["intervention"]:
        raise Rejected("agents.pico_empty")
    for text in filter(None, elements.values()):
        shown.in_language(text, task.language)
    return Pico(elements["population"], elements["intervention"], elements["comparison"], elements["outcome"])


def _whole(element: str) -> str:
    """``element``, or "" if it was cut: half a sentence may say the opposite."""
    return element if len(element) < ELEMENT_CHARACTERS else ""


def _share(text: str, source: str) -> float:
    """The share of words of ``text`` in ``source``; Chinese by pairs of characters."""
    words, held = set(language.words(text, for_query=True)), set(language.words(source))
    return len(words & held) / len(words) if words else 1.0


_ELEMENT = {"type": "string", "maxLength": ELEMENT_CHARACTERS}
# LINS, PICO agent.
PICO = Role(
    "pico",
    "2",
    Writing(lambda _: shown.object_of(dict.fromkeys(ELEMENTS, _ELEMENT)), _pico_prompt, _pico, max_tokens=300),
)
ROLES = (PICO,)
