"""Roles of the departments workflow (Dual-RAG): choose a department for a complaint, and check the choice.

A model chooses only among departments found in the guide, and each reason cites that department's own section. The
final check (Dual-RAG, module "Check") drops a department whose section does not support the reason, and a reason that
makes a diagnosis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Choosing, Fitted, Role, Writing
from localmed.domain import Evidence, Origin, Statement
from localmed.domain.errors import Rejected
from localmed.retrieval.guide import is_emergency, is_for_all_emergencies
from localmed.text.language import sentences, words

SHOWN = 3  # departments in an answer
SHORTEST = 8  # characters of a sentence that can be a reason; shorter ones are floors
REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Department:
    """A department of the guide with the sections found for it."""

    name: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Advised:
    """A department that fits, and the reasons: statements that cite its sections."""

    department: str
    why: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class GuidanceInput(QuestionInput):
    """``question`` is the complaint, ``departments`` those found, best first. The result is a tuple of ``Advised``."""

    departments: tuple[Department, ...]


@dataclass(frozen=True, slots=True)
class CheckInput(QuestionInput):
    """Departments that were ``advised``, and the guide's. The result is a ``bool`` for each advised one."""

    advised: tuple[Advised, ...]
    departments: tuple[Department, ...]

    @property
    def pairs(self) -> tuple[tuple[Advised, Department | None], ...]:
        """Each with its department, ``None`` if the guide has none of that name."""
        known = {department.name: department for department in self.departments}
        return tuple((one, known.get(one.department)) for one in self.advised)


_DISEASE = (
    r"\w+(itis|osis|aemia|emia|oma|pathy)|infection|cancer|tumou?r|disease|disorder|syndrome|failure|heart attack"
)
_DIAGNOSIS = re.compile(  # somebody has, or may have, a disease
    rf"\b(have|has|having|be|is|are|suffer\w*)\b.{{0,30}}\b({_DISEASE}|stroke|diabetes|asthma|depression|migraine)\b"
    r"|\bdiagnos\w+|\b(suggests?|indicates?|points to|signs? of|symptoms? of)\b"
    r"|诊断|(可能|大概|应该)(是|患|得)了?|(您|你|患者|他|她)(患有|得了)|提示.{0,12}(病|炎|癌|症)|考虑为|疑似",
    re.IGNORECASE,
)


def nearest(task: GuidanceInput) -> tuple[Advised, ...]:
    """The first departments in the order of the search; the one for emergencies, which red flags name, if asked for."""
    asked = is_emergency(task.question)
    own = [one for one in task.departments if asked or not is_for_all_emergencies(one.name)]
    return tuple(Advised(one.name, (reason(one, task.question),)) for one in own[:SHOWN])


def reason(department: Department, complaint: str) -> Statement:
    """The sentence of its sections that shares most words with ``complaint``; the longest of equals."""
    asked = set(words(complaint))

    def shared(span: tuple[Evidence, int, int]) -> tuple[int, int]:
        evidence, start, end = span
        return len(asked & set(words(evidence.passage.text[start:end]))), end - start

    spans = [(it, *span) for it in department.evidence for span in sentences(it.passage.text)]
    long = [(it, start, end) for it, start, end in spans if end - start >= SHORTEST]
    first = department.evidence[0]
    evidence, start, end = max(long, key=shared, default=(first, 0, len(first.passage.text)))
    return evidence.quotation(start, end)


def check_by_rule(task: CheckInput) -> tuple[bool, ...]:
    """Whether each has a name and citations of the guide and makes no diagnosis."""
    return tuple(department is not None and _is_of_guide(one, department) for one, department in task.pairs)


def _is_of_guide(advised: Advised, department: Department) -> bool:
    own = {piece.marker for piece in department.evidence}
    cited = {citation.marker for statement in advised.why for citation in statement.citations}
    written = (statement.text for statement in advised.why if statement.origin is Origin.GENERATED)
    return bool(cited) and cited <= own and not any(_DIAGNOSIS.search(text) for text in written)


# --- how a chat model is asked ----------------------------------------------------------------------------------------


def _section(department: Department, language: str) -> str:
    return f"{department.name}\n{shown.evidence_text(department.evidence, language)}"


def _schema(task: GuidanceInput) -> Any:
    names = [department.name for department in task.departments]
    markers = [evidence.marker for department in task.departments for evidence in department.evidence]
    sources = {"type": "array", "items": {"enum": markers}, "minItems": 1, "maxItems": 3}
    reason = {"type": "string", "minLength": 1, "maxLength": REASON_CHARACTERS}
    item = shown.object_of({"department": {"enum": names}, "reason": reason, "sources": sources})
    return shown.object_of({"departments": {"type": "array", "items": item, "maxItems": SHOWN}})


def _advised(task: GuidanceInput, value: Any) -> tuple[Advised, ...]:
    known = {department.name: department for department in task.departments}
    advised: dict[str, Advised] = {}
    for item in value["departments"]:
        if item["department"] not in known:
            raise Rejected("agents.unknown_department")
        department = known[item["department"]]
        why = shown.cited(item["reason"], item["sources"], department.evidence, task.language)
        advised.setdefault(department.name, Advised(department.name, (why,)))
    return tuple(advised.values())[:SHOWN]


def _shortened(task: GuidanceInput, fitted: Fitted) -> GuidanceInput:
    return replace(task, departments=tuple(task.departments[place] for place in fitted.kept))


def _reasons(task: CheckInput) -> tuple[str, ...]:
    return tuple(
        f"{_section(department, task.language) if department else one.department}\n"
        f"{shown.quoted('reason', ' '.join(why.text for why in one.why), task.language)}"
        for one, department in task.pairs
    )


# Dual-RAG, generation over the department guide.
DEPARTMENT = Role(
    "department",
    "2",
    Writing(
        _schema,
        lambda task: shown.quoted("complaint", task.question, task.language),
        _advised,
        lambda task: tuple(_section(department, task.language) for department in task.departments),
        _shortened,
        max_tokens=600,
    ),
)
# Dual-RAG, check module.
FINAL_CHECK = Role(
    "final_check",
    "1",
    Choosing(
        {"en": ("fits", "unfit"), "zh": ("相符", "不符")},
        lambda task: f"{shown.quoted('complaint', task.question, task.language)}\n",
        _reasons,
        lambda _, choices: tuple(choice.best == 0 for choice in choices),
    ),
)
# Whether a complaint without a known red flag is worded like an emergency.
EMERGENCY = Role("emergency_likeness", "1")
ROLES = (DEPARTMENT, FINAL_CHECK, EMERGENCY)
