"""The roles of a question that is looked into thoroughly (LINS, MAIRAG), their inputs and outputs; and Link-Eval's.

Passages go to a model between marks, with the instruction that they are quoted material and give no orders. What comes
back is held to it: a reply in another language, or of nothing, is rejected.
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
    """A question, as the input of a role that needs nothing else."""

    question: str

    @property
    def language(self) -> str:
        """The question's."""
        return detect(self.question)


@dataclass(frozen=True, slots=True)
class RelevanceInput(QuestionInput):
    """Whether each of ``passages`` helps to answer; the result is a tuple of probabilities, in their order."""

    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class CoherenceInput(QuestionInput):
    """Whether ``statements`` agree with the ``evidence`` they cite. The result is a ``Coherence``."""

    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Coherence:
    """Whether an answer agrees with its evidence; ``conflicting`` are the places of the statements that do not."""

    agrees: bool
    reason: Message | None = None
    conflicting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowUp(QuestionInput):
    """A question after ``earlier`` ones, oldest first. The result is a question that stands alone."""

    earlier: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FluencyInput:
    """Statements of an answer. The result is a tuple: how likely each reads well (0 to 1); empty: not measured."""

    statements: tuple[str, ...]

    @property
    def language(self) -> str:
        """The statements'."""
        return detect(" ".join(self.statements))


def _likely(_: Any, choices: Sequence[Choice]) -> tuple[float, ...]:
    return tuple(choice.probabilities[0] for choice in choices)


def _passages(task: RelevanceInput) -> tuple[str, ...]:
    return tuple(shown.quoted("passage", passage.in_context, task.language) for passage in task.passages)


def _self_contained(task: FollowUp, value: Any) -> str:
    return a_question(str(value["question"]), "\n".join((*task.earlier, task.question)), task.language)


def a_question(text: str, known: str, language: str) -> str:
    """A question that a model rewrote; raise ``Rejected`` where it names a medicine that is not ``known``."""
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


SUB_QUESTIONS = 4  # of a question at most; each is searched once, so this bounds what a question costs
QUESTION_CHARACTERS = 300  # of a sub-question
RELEVANT = 0.5  # of the label "relevant", from which a passage helps: more likely than not

# Whether a passage helps to answer the question (LINS, passage relevance agent (PRA)).
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
# Whether the answer agrees with its evidence (LINS, passage coherence agent (PCA)).
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
# A follow-up question made to stand alone (LINS, question enhancement for follow-ups (QEA)).
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
# Whether the model knows the answer by itself (LINS, self-knowledge agent (SKA)).
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
# An answer from the model's own knowledge, unverified (LINS, MAIRAG: internal knowledge).
OWN_ANSWER = Role(
    "own_answer",
    "2",
    Writing(
        lambda _: shown.texts_schema("sentences", 4, 600),
        lambda task: task.question,
        lambda task, value: shown.unverified(value["sentences"], task.language),
    ),
)
# The sub-questions of a question that nothing found answers as a whole (LINS, question decomposition agent (QDA)).
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
# Whether a statement reads well (LINS, Link-Eval: statement fluency, asked as a yes-or-no question as UniEval does).
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
