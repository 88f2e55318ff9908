"""The roles that judge an answer's badge (Answered with Evidence, evaluation rubric and its structured prompt).

What is judged is what is shown: the answer without its withheld sentences must answer every part of the question.
One choice of true or false for each of the three criteria, which share the question, the context and the answer before
them. ``BADGE_STRICT`` asks the same with other words and from the other side ("is anything missing?"): a second vote of
a jury on the same model, not an independent one. How often the model errs was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.badge import Criteria, Vote
from localmed.answering.prompts import instructions
from localmed.answering.roles import Choosing, Role
from localmed.domain import BadgeJudge, Evidence, Statement
from localmed.domain.ports import Choice

CHARACTERS = 12_000  # of the context that a model is shown: ~4,000 tokens of 8,192; what comes after is left out whole

_CRITERIA = {
    "en": (
        "The answer, as it stands, answers every part of the question directly.",
        "The context is about the subject of the question, even if it does not answer it.",
        "The answer says only what the context says, and nothing against it.",
    ),
    "zh": (
        "回答按现有文字直接回答了问题的每一个部分。",
        "材料与问题的主题有关，即使没有直接回答问题。",
        "回答只说了材料中的内容，没有与材料相反的内容。",
    ),
}
_STRICT = {
    "en": (
        "Something that the question asks for is missing from the answer.",
        "The context is about another illness, medicine or situation than the question.",
        "The answer holds something that the context does not say.",
    ),
    "zh": (
        "问题所问的内容在回答中有缺失。",
        "材料所谈的疾病、药物或情形与问题不同。",
        "回答中有材料没有说到的内容。",
    ),
}
_LABELS = {"en": ("true", "false"), "zh": ("对", "错")}
_NAMES = {"en": ("question", "context", "answer"), "zh": ("问题", "材料", "回答")}


@dataclass(frozen=True, slots=True)
class JudgingInput(QuestionInput):
    """An answer to ``question`` and its context. ``statements`` are those that the badge is about. Gives a ``Vote``."""

    evidence: tuple[Evidence, ...]
    statements: tuple[Statement, ...]


def _prompt(task: JudgingInput) -> str:
    question, context, answer = _NAMES[task.language]
    left = CHARACTERS
    passages: list[str] = []
    for piece in task.evidence:
        left -= len(piece.passage.in_context)
        if passages and left < 0:
            break
        passages.append(piece.passage.in_context[:CHARACTERS])
    statements = "\n".join(statement.text for statement in task.statements)
    parts = ((question, task.question), (context, "\n\n".join(passages)), (answer, statements))
    return "\n".join(shown.between_marks(name, text) for name, text in parts) + "\n"


def _vote(_: JudgingInput, choices: Sequence[Choice]) -> Vote:
    return Vote(Criteria(*(choice.best == 0 for choice in choices)), BadgeJudge("chat"))


def _strict_vote(_: JudgingInput, choices: Sequence[Choice]) -> Vote:
    return Vote(Criteria(*(choice.best == 1 for choice in choices)), BadgeJudge("chat_strict"))


BADGE = Role(
    "badge",
    "Whether the answer shown answers every part of the question, and the context is related to it and carries it",
    "2",
    "Answered with Evidence, evaluation rubric",
    Choosing(
        instructions("badge"),
        _LABELS,
        _prompt,
        lambda task: _CRITERIA[task.language],
        _vote,
    ),
)
BADGE_STRICT = Role(
    "badge_strict",
    "The same three criteria, asked from the other side, as a second vote",
    "2",
    "Answered with Evidence, limitations: a jury in place of one judge",
    Choosing(
        instructions("badge_strict"),
        _LABELS,
        _prompt,
        lambda task: _STRICT[task.language],
        _strict_vote,
    ),
)
ROLES = (BADGE, BADGE_STRICT)
