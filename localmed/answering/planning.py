"""The roles of source planning (Omni-RAG): which source is asked what, how good the result is, and whom to ask again.

The planner is held to a schema of the sources that there are; a model tuned for it can take the role's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Role, Writing
from localmed.answering.source_plan import GRAPH, SOURCES, SourcePlan, read, schema, with_question, written

TERMS = 3  # looked up in the graph for a question as it is (Omni-RAG, Prompt E.5: fewer than four)
PLAN_TOKENS = 1000  # of a plan whose every list is full
BEST = 5  # the highest score of what was found
PSEUDO_CHARACTERS = 1200  # of a pseudo-document: about 200 words

DESCRIBED = {
    "en": {
        "book": "textbooks and teaching material",
        "guideline": "clinical guidelines",
        "research": "research articles",
        "wiki": "general encyclopaedia articles",
        "leaflet": "leaflets for patients on medicines and illnesses",
        "local": "the hospital's own pages: departments, telephone numbers, local rules",
        GRAPH: "definitions of medical terms and their relations",
    },
    "zh": {
        "book": "教科书和教学资料",
        "guideline": "临床指南",
        "research": "研究文献",
        "wiki": "一般百科条目",
        "leaflet": "面向患者的药品与疾病说明",
        "local": "本院资料：科室、电话、院内规定",
        GRAPH: "医学术语的定义及其关系",
    },
}


@dataclass(frozen=True, slots=True)
class PlanInput(QuestionInput):
    """A question, the sources there are, and what was said of earlier plans (plan, suggestion), oldest first.

    The result is a ``SourcePlan``.
    """

    sources: tuple[str, ...]
    feedback: tuple[tuple[SourcePlan, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PseudoInput(QuestionInput):
    """A passage is wanted as ``source`` might hold it (Query2Doc). The result is a ``str``."""

    source: str


@dataclass(frozen=True, slots=True)
class FoundInput(QuestionInput):
    """What a plan found: ``texts``, best first. The result is a ``Feedback``."""

    plan: SourcePlan
    texts: tuple[str, ...]
    probability: float = 0.0  # of the best passage to hold an answer, as the relevance role judged


@dataclass(frozen=True, slots=True)
class Feedback:
    """How good what was found is, 0 to ``BEST``, and what to ask instead."""

    score: int
    suggestion: str = ""


def _sources(task: PlanInput) -> str:
    described = DESCRIBED[task.language]
    there = [source for source in (*SOURCES, GRAPH) if source in task.sources]
    lines = [f"{source}: {described[source]}" for source in there]
    earlier = [f"{written(plan)}\n{suggestion}" for plan, suggestion in task.feedback]
    return "\n\n".join((task.question, "\n".join(lines), *earlier))


def _terms(_: QuestionInput, value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(term.split()) for term in value["terms"]))[:TERMS]


def _feedback(task: FoundInput, value: Any) -> Feedback:
    suggestion = str(value["suggestion"]).strip()
    return Feedback(int(value["score"]), shown.in_language(suggestion, task.language) if suggestion else "")


def _texts(task: FoundInput) -> tuple[str, ...]:
    return tuple(shown.quoted("found", text, task.language) for text in task.texts)


PLAN = Role(
    "plan",
    "Which queries go to which source",
    "3",
    "Omni-RAG, source planning",
    Writing(
        lambda task: schema(task.sources),
        _sources,
        lambda task, value: with_question(read(value), task.question),
        max_tokens=PLAN_TOKENS,
    ),
)
GRAPH_TERMS = Role(
    "graph_terms",
    "The question's terms to look up in the concept graph",
    "2",
    "Omni-RAG, term extraction for the graph",
    Writing(lambda _: shown.texts_schema("terms", TERMS, 100), lambda task: task.question, _terms, max_tokens=150),
)
PSEUDO_DOCUMENT = Role(
    "pseudo_document",
    "A passage as a source might hold it, searched in the question's place",
    "2",
    "Omni-RAG, baseline Query2Doc",
    Writing(
        lambda _: shown.object_of({"passage": {"type": "string", "minLength": 1, "maxLength": PSEUDO_CHARACTERS}}),
        lambda task: f"{task.question}\n{DESCRIBED[task.language][task.source]}",
        lambda task, value: shown.in_language(value["passage"].strip(), task.language),
        max_tokens=400,
    ),
)
FEEDBACK = Role(
    "plan_feedback",
    "How good what a plan found is, and what to ask instead",
    "2",
    "Omni-RAG, baselines Reflexion and SeRTS",
    Writing(
        lambda _: shown.object_of(
            {"score": {"enum": list(range(BEST + 1))}, "suggestion": {"type": "string", "maxLength": 600}}
        ),
        lambda task: f"{task.question}\n{written(task.plan)}",
        _feedback,
        _texts,
        max_tokens=250,
    ),
)
ROLES = (PLAN, GRAPH_TERMS, PSEUDO_DOCUMENT, FEEDBACK)
