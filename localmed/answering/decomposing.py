"""The roles of a question that nothing found answers as a whole (LINS, MAIRAG): own knowledge, or its parts."""

from __future__ import annotations

from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.prompts import instructions
from localmed.answering.roles import Choosing, Role, Writing

SUB_QUESTIONS = 4  # of a question at most; each is searched once, so this bounds what a question costs
QUESTION_CHARACTERS = 300  # of a sub-question


def _sub_questions(task: QuestionInput, value: Any) -> tuple[str, ...]:
    questions = dict.fromkeys(" ".join(question.split()) for question in value["questions"])
    return tuple(question for question in questions if question and question != task.question)[:SUB_QUESTIONS]


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
ROLES = (SELF_KNOWLEDGE, OWN_ANSWER, DECOMPOSITION)
