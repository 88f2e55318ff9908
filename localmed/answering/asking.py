"""The roles of a thorough answer (LINS, MAIRAG) and of Link-Eval, with inputs and outputs.

Passages go to a model between marks, with the instruction that quoted material gives no orders. An empty reply or one
in another language is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.roles import Choosing, Role, Writing
from localmed.domain import Evidence, Message, Passage, Statement, message
from localmed.domain.errors import Rejected
from localmed.domain.ports import Choice
from localmed.text import medicines
from localmed.text.language import detect


@dataclass(frozen=True, slots=True)
class QuestionInput:
    """A question as a role's input."""

    question: str

    @property
    def language(self) -> str:
        """The question's language."""
        return detect(self.question)


@dataclass(frozen=True, slots=True)
class RelevanceInput(QuestionInput):
    """Passages to judge; the result is the probability for each that it helps to answer."""

    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class CoherenceInput(QuestionInput):
    """Statements and the evidence they cite; the result is a ``Coherence``."""

    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Coherence:
    """Whether an answer agrees with its evidence; ``conflicting``: places of statements that do not."""

    agrees: bool
    reason: Message | None = None
    conflicting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowUp(QuestionInput):
    """A question after ``earlier`` ones, oldest first; the result is a self-contained question."""

    earlier: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FluencyInput:
    """Statements of an answer; the result is the probability for each that it reads well, empty if not measured."""

    statements: tuple[str, ...]

    @property
    def language(self) -> str:
        """The statements' language."""
        return detect(" ".join(self.statements))


def _likely(_: Any, choices: Sequence[Choice]) -> tuple[float, ...]:
    return tuple(choice.probabilities[0] for choice in choices)


def _passages(task: RelevanceInput) -> tuple[str, ...]:
    return tuple(shown.quoted("passage", passage.in_context, task.language) for passage in task.passages)


def _self_contained(task: FollowUp, value: Any) -> str:
    return a_question(str(value["question"]), "\n".join((*task.earlier, task.question)), task.language)


def a_question(text: str, known: str, language: str) -> str:
    """A question that a model rewrote; raise ``Rejected`` if it names a medicine that ``known`` lacks."""
    question = shown.in_language(" ".join(text.split()), language)
    if medicines.names(question) - medicines.names(known):
        raise Rejected("agents.new_medicine")
    return question


def _coherence(task: CoherenceInput, choices: Sequence[Choice]) -> Coherence:
    pairs = zip(_stating(task), choices, strict=True)
    conflicting = tuple(place for place, choice in pairs if choice.best != 0)
    return Coherence(not conflicting, message("agents.answer_contradicts") if conflicting else None, conflicting)


def _stating(task: CoherenceInput) -> list[int]:
    return [place for place, one in enumerate(task.statements) if not one.withheld and one.citations]


def _statement_and_sources(task: CoherenceInput) -> tuple[str, ...]:
    known = {piece.marker: piece for piece in task.evidence}
    stating = [task.statements[place] for place in _stating(task)]
    markers = [dict.fromkeys(citation.marker for citation in statement.citations) for statement in stating]
    return tuple(
        f"{shown.evidence_text([known[marker] for marker in cited], task.language)}\n"
        f"{shown.quoted('statement', statement.text, task.language)}"
        for statement, cited in zip(stating, markers, strict=True)
    )


def _sub_questions(task: QuestionInput, value: Any) -> tuple[str, ...]:
    questions = dict.fromkeys(" ".join(question.split()) for question in value["questions"])
    return tuple(question for question in questions if question and question != task.question)[:SUB_QUESTIONS]


SUB_QUESTIONS = 4  # each is searched once, so this bounds the cost of a question
QUESTION_CHARACTERS = 300  # of a sub-question
RELEVANT = 0.5  # least probability of "relevant": more likely than not

# LINS, passage relevance agent (PRA).
RELEVANCE = Role(
    "relevance",
    "3",
    Choosing(
        {"en": ("relevant", "irrelevant"), "zh": ("有关", "无关")},
        lambda task: f"{task.question}\n",
        _passages,
        _likely,
    ),
)
# LINS, passage coherence agent (PCA).
COHERENCE = Role(
    "coherence",
    "1",
    Choosing(
        {"en": ("agrees", "conflicts"), "zh": ("一致", "矛盾")},
        lambda task: f"{task.question}\n",
        _statement_and_sources,
        _coherence,
    ),
)
# LINS, question enhancement for follow-ups (QEA).
SELF_CONTAINED = Role(
    "self_contained",
    "2",
    Writing(
        lambda _: shown.object_of({"question": {"type": "string", "minLength": 1, "maxLength": 1000}}),
        lambda task: "\n".join((*task.earlier, task.question)),
        _self_contained,
        max_tokens=200,
    ),
)
# LINS, self-knowledge agent (SKA).
SELF_KNOWLEDGE = Role(
    "self_knowledge",
    "1",
    Choosing(
        {"en": ("certain", "uncertain"), "zh": ("能够", "不能")},
        lambda task: f"{task.question}\n",
        lambda _: ("",),
        lambda _, choices: choices[0].best == 0,
    ),
)
# LINS, MAIRAG: internal knowledge; unverified.
OWN_ANSWER = Role(
    "own_answer",
    "2",
    Writing(
        lambda _: shown.texts_schema("sentences", 4, 600),
        lambda task: task.question,
        lambda task, value: shown.unverified(value["sentences"], task.language),
    ),
)
# LINS, question decomposition agent (QDA).
DECOMPOSITION = Role(
    "decomposition",
    "2",
    Writing(
        lambda _: shown.texts_schema("questions", SUB_QUESTIONS, QUESTION_CHARACTERS),
        lambda task: task.question,
        _sub_questions,
        max_tokens=400,
    ),
)
# LINS, Link-Eval: statement fluency, as a yes-or-no question like UniEval.
FLUENCY = Role(
    "fluency",
    "1",
    Choosing(
        {"en": ("fluent", "awkward"), "zh": ("流畅", "生硬")},
        lambda _: "",
        lambda task: tuple(shown.quoted("statement", statement, task.language) for statement in task.statements),
        _likely,
    ),
)
ROLES = (
    RELEVANCE, COHERENCE, SELF_CONTAINED, SELF_KNOWLEDGE, OWN_ANSWER, DECOMPOSITION, FLUENCY
)  # fmt: skip
