"""The badge of an answer: green, yellow or red by three criteria, and the roles that judge them.

Answered with Evidence, criteria and badge table, evaluation rubric and structured prompt. The criteria: the answer
answers every part of the question, the context is related to the question, the answer is grounded in the context. All
three give green, the last two yellow, anything else red. Green means "supported by its sources", never "safe": sources
and judge may be wrong, so the judge is named with any measured errors. Several judges vote on each criterion (the
paper's limitations ask for a jury); a tie is no.

Only shown sentences are judged. Each criterion is one choice of true or false. ``BADGE_STRICT`` asks the opposite ("is
anything missing?"): a second vote on the same model, not an independent one. The model's error rate was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Choosing, Role
from localmed.domain import Badge, BadgeJudge, Evidence, Message, Statement, Verification, message
from localmed.domain.ports import Choice


@dataclass(frozen=True, slots=True)
class Criteria:
    """The three criteria of a badge."""

    answers: bool
    related: bool
    grounded: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's criteria."""

    criteria: Criteria
    judge: BadgeJudge


def badge(criteria: Criteria) -> Badge:
    """The badge by the paper's table."""
    if not (criteria.related and criteria.grounded):
        return Badge.RED
    return Badge.GREEN if criteria.answers else Badge.YELLOW


def reason(criteria: Criteria) -> Message:
    """The reason for the badge."""
    if badge(criteria) is Badge.GREEN:
        return message("badge.why_green")
    if badge(criteria) is Badge.YELLOW:
        return message("badge.why_yellow")
    if criteria.grounded:
        return message("badge.why_unrelated")
    return message("badge.why_not_grounded") if criteria.related else message("badge.why_neither")


def majority(votes: Sequence[Criteria]) -> Criteria:
    """Each criterion by more than half of the votes; without votes no."""
    return Criteria(
        *(sum(getattr(vote, name.name) for vote in votes) * 2 > len(votes) for name in fields(Criteria))
    )  # fmt: skip


_ORDER = (Badge.NONE, Badge.GREEN, Badge.YELLOW, Badge.RED)


def voted(account: Verification, votes: Sequence[Vote]) -> Verification:
    """``account`` with the badge of ``votes`` unless its own is worse; unchanged without votes."""
    if not votes:
        return account
    criteria = majority([vote.criteria for vote in votes])
    worse = max(account.badge, badge(criteria), key=_ORDER.index)
    return replace(
        account,
        badge=worse,
        badge_before=badge(criteria) if account.badge is Badge.NONE else account.badge,
        reason=account.reason if worse is account.badge else reason(criteria),
        badge_judges=tuple(vote.judge for vote in votes),
    )


# --- how a chat model is asked ----------------------------------------------------------------------------------------

CHARACTERS = 12_000  # of the context for a model: ~4,000 tokens of 8,192; further passages are left out

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
    """An answer's ``statements`` and context; the result is a ``Vote``."""

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


def _voting(judge: str, met: int) -> Callable[[JudgingInput, Sequence[Choice]], Vote]:
    """A reader of the choices of ``judge``; the label ``met`` means that a criterion is met."""
    return lambda _, choices: Vote(Criteria(*(choice.best == met for choice in choices)), BadgeJudge(judge))


# Answered with Evidence, evaluation rubric.
BADGE = Role(
    "badge",
    "2",
    Choosing(_LABELS, _prompt, lambda task: _CRITERIA[task.language], _voting("chat", 0)),
)
# The opposite questions as a second vote (Answered with Evidence, limitations: a jury instead of one judge).
BADGE_STRICT = Role(
    "badge_strict",
    "2",
    Choosing(_LABELS, _prompt, lambda task: _STRICT[task.language], _voting("chat_strict", 1)),
)
ROLES = (BADGE, BADGE_STRICT)
