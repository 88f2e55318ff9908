"""The roles of a question that nothing found answers as a whole (LINS, MAIRAG): own knowledge, or its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localmed.agents import evidence as shown
from localmed.agents.asking import QuestionInput
from localmed.agents.prompts import instructions
from localmed.agents.roles import Choosing, Role, Writing
from localmed.domain import Evidence

SUB_QUESTIONS = 4  # of a question at most; each is searched once, so this bounds what a question costs
QUESTION_CHARACTERS = 300  # of a sub-question


@dataclass(frozen=True, slots=True)
class SynthesisInput(QuestionInput):
    """What was found for the ``parts`` of a question: (sub-question, its evidence). The result is a ``str``."""

    parts: tuple[tuple[str, tuple[Evidence, ...]], ...]


@dataclass(frozen=True, slots=True)
class SampleInput(QuestionInput):
    """The ``sample``-th of several answers to one question, each drawn with a temperature; from 1 on."""

    sample: int


def _sub_questions(task: QuestionInput, value: Any) -> tuple[str, ...]:
    questions = dict.fromkeys(" ".join(question.split()) for question in value["questions"])
    return tuple(question for question in questions if question and question != task.question)[:SUB_QUESTIONS]


def _synthesis(task: SynthesisInput, value: Any) -> str:
    return shown.in_language(str(value["passage"]).strip(), task.language)


def _synthesis_prompt(task: SynthesisInput) -> str:
    parts = [f"{question}\n{shown.evidence_text(evidence, task.language)}" for question, evidence in task.parts]
    return "\n\n".join((task.question, *parts))


SELF_KNOWLEDGE = Role(
    "self_knowledge",
    "Whether the model knows the answer by itself",
    "1",
    "LINS, self-knowledge agent (SKA)",
    Choosing(
        instructions("self_knowledge"),
        {"en": ("certain", "uncertain"), "zh": ("能够", "不能")},
        lambda task: f"{task.question}\n",
        lambda _: ("",),
        lambda _, choices: choices[0].best == 0,
    ),
)
OWN_ANSWER = Role(
    "own_answer",
    "An answer from the model's own knowledge, unverified",
    "2",
    "LINS, MAIRAG: internal knowledge",
    Writing(
        instructions("own_answer"),
        lambda _: shown.texts_schema("sentences", 4, 600),
        lambda task: task.question,
        lambda task, value: shown.unverified(value["sentences"], task.language),
    ),
)
DECOMPOSITION = Role(
    "decomposition",
    "The sub-questions of a question that nothing found answers as a whole",
    "2",
    "LINS, question decomposition agent (QDA)",
    Writing(
        instructions("decomposition"),
        lambda _: shown.texts_schema("questions", SUB_QUESTIONS, QUESTION_CHARACTERS),
        lambda task: task.question,
        _sub_questions,
        max_tokens=400,
    ),
)
SYNTHESIS = Role(
    "synthesis",
    "A passage that puts together what was found for the sub-questions",
    "2",
    "LINS, MAIRAG: reference passage",
    Writing(
        instructions("synthesis"),
        lambda _: shown.object_of({"passage": {"type": "string", "minLength": 1, "maxLength": 3000}}),
        _synthesis_prompt,
        _synthesis,
        max_tokens=700,
    ),
)
ROLES = (SELF_KNOWLEDGE, OWN_ANSWER, DECOMPOSITION, SYNTHESIS)
