"""The roles of a question (LINS, MAIRAG): their inputs, outputs, and how a chat model is asked for each.

Evidence goes to a model between marks that name its marker, with the instruction that it is quoted material and gives
no orders. What comes back is held to it: a reply in another language, of unknown markers, or of nothing is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents import evidence as shown
from localmed.agents.prompts import asked_by, instructions
from localmed.agents.roles import Choosing, Fitted, Role, Texts, Writing
from localmed.clinical import asking as questions
from localmed.clinical import medicines
from localmed.domain import Evidence, Hit, Message, Statement, message
from localmed.errors import Rejected
from localmed.language import detect
from localmed.messages import render
from localmed.ports import Choice

NOT_COVERED = "workflow.not_covered"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
KEPT = 0.5  # of the threshold: beside a passage that answers, one less sure may add to it


@dataclass(frozen=True, slots=True)
class QuestionInput:
    """A question, as the input of a role that needs nothing else."""

    question: str

    @property
    def language(self) -> str:
        """The question's."""
        return detect(self.question)


@dataclass(frozen=True, slots=True)
class KeywordsInput(QuestionInput):
    """At most ``most`` keywords are wanted. The result is a ``Keywords``."""

    most: int


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords, most important first; ``unknown`` are the question's words that the library does not hold."""

    words: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelevanceInput(QuestionInput):
    """``dense`` says whether the similarities of ``hits`` count, ``reranker`` whose scores they carry ("": nobody's).

    The result is a ``Relevance``.
    """

    hits: tuple[Hit, ...]
    dense: bool
    reranker: str = ""


@dataclass(frozen=True, slots=True)
class Relevance:
    """How likely each hit holds an answer, in the hits' order, and the threshold in force.

    ``differing`` are words of another population, subtype, setting or purpose that every hit lacks, for which hits were
    set aside. ``reason`` is why the hits do not answer, where they do not; ``calibrated`` is False where the threshold
    was chosen for another encoder, reranker or language. ``quotable``: the rules would answer from the hits;
    ``doubted``: they would, and a chat model found help in none. ``likely`` are the probabilities of the hits that may
    still be quoted, as not sure, where none reaches the threshold; ``unsure`` says that it came to that.
    """

    probabilities: tuple[float, ...]
    threshold: float
    differing: tuple[str, ...] = ()
    reason: Message | None = None
    calibrated: bool = True
    quotable: bool = True
    doubted: bool = False
    likely: tuple[float, ...] = ()
    unsure: bool = False

    @property
    def probability(self) -> float:
        """The highest."""
        return max(self.probabilities, default=0.0)

    @property
    def enough(self) -> bool:
        """Whether to answer."""
        return bool(self.probabilities) and self.probability >= self.threshold

    @property
    def second(self) -> Relevance | None:
        """What to answer from, as not sure, where there is not enough."""
        best = max(self.likely, default=0.0)
        return replace(self, probabilities=self.likely, threshold=best, unsure=True) if best else None

    def helpful(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Those of ``hits`` that help (LINS, PRA: the passages that are kept): at least half as sure as to answer."""
        pairs = zip(hits, self.probabilities, strict=True)
        return tuple(hit for hit, probability in pairs if probability >= self.threshold * KEPT)


@dataclass(frozen=True, slots=True)
class AnswerInput(QuestionInput):
    """The result is a ``Draft``: markers only from ``evidence``.

    ``reference`` is a synthesised passage to go by (LINS, QDA), which is never cited. ``conflict`` says what was wrong
    with the answer before this one (LINS, PCA). ``left_out`` tells of passages that did not fit the model's context.
    ``beside`` is other evidence of the same answer, whose markers are taken. ``first`` are the sentences of that answer
    which are to be written again. ``audience`` and ``day`` are those of the question. ``patient`` is what is known of
    the patient who asks, without what identifies; no statement can cite it.
    """

    evidence: tuple[Evidence, ...]
    dense: bool
    reference: str = ""
    conflict: tuple[Message, ...] = ()
    first: tuple[str, ...] = ()
    audience: str = "staff"
    day: str = ""
    left_out: Message | None = None
    beside: tuple[Evidence, ...] = ()
    patient: str = ""

    @property
    def context(self) -> tuple[str, ...]:
        """What was asked and told, whose numbers an answer may repeat."""
        return (self.question, self.patient) if self.patient else (self.question,)


@dataclass(frozen=True, slots=True)
class Draft:
    """Statements that nobody has checked yet. No statements: the evidence does not answer."""

    statements: tuple[Statement, ...] = ()
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class CoherenceInput(QuestionInput):
    """Whether ``statements`` agree with the ``evidence`` they cite. The result is a ``Coherence``."""

    statements: tuple[Statement, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Coherence:
    """Whether an answer agrees with its evidence; ``judge`` says who looked, ``conflicting`` which sentences do not."""

    agrees: bool
    judge: str
    reason: Message | None = None
    conflicting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowUp(QuestionInput):
    """A question after ``earlier`` ones, oldest first. The result is a question that stands alone."""

    earlier: tuple[str, ...]


def _relevance(_: RelevanceInput, choices: Sequence[Choice]) -> Relevance:
    return Relevance(tuple(choice.probabilities[0] for choice in choices), MODEL_THRESHOLD)


def _passages(task: RelevanceInput) -> tuple[str, ...]:
    return tuple(shown.quoted("passage", hit.passage.in_context, task.language) for hit in task.hits)


def _keywords(task: KeywordsInput, value: Any) -> Keywords:
    words = tuple(dict.fromkeys(word for keyword in value["keywords"] if (word := " ".join(keyword.split()))))
    if not words:
        raise Rejected("agents.no_keyword")
    return Keywords(words[: task.most])


def _self_contained(task: FollowUp, value: Any) -> str:
    return a_question(str(value["question"]), "\n".join((*task.earlier, task.question)), task.language)


def a_question(text: str, known: str, language: str) -> str:
    """A question that a model rewrote; raise ``Rejected`` unless it is one, of no medicine but those ``known``."""
    question = shown.in_language(" ".join(text.split()), language)
    if not questions.is_question(question):
        raise Rejected("agents.no_question")
    if medicines.names(question) - medicines.names(known):
        raise Rejected("agents.new_medicine")
    return question


def _answer_prompt(task: AnswerInput) -> str:
    texts = {"reference": task.reference, "patient": task.patient}
    beside = [shown.quoted(name, text, task.language) for name, text in texts.items() if text]
    return "\n".join((asked_by(task.language, task.audience, task.day), task.question, *beside, *to_correct(task)))


_AGAIN = {
    "en": "These sentences of your answer were found wrong ({reasons}). Write only them again, as the sources have it, "
    "and leave out what no source says:",
    "zh": "你的回答中以下各句有误（{reasons}）。只重写这些句子，使之与来源一致；来源没有说的不要写：",
}


def to_correct(task: AnswerInput) -> list[str]:
    """What a model is told to write otherwise, in the question's language, as lines of its task."""
    if not task.conflict:
        return []
    reasons = "; ".join(dict.fromkeys(render(reason, task.language) for reason in task.conflict))
    numbered = (f"{number}. {text}" for number, text in enumerate(task.first, 1))
    return [_AGAIN[task.language].format(reasons=reasons), *numbered]


def _draft(task: AnswerInput, value: Any) -> Draft:
    statements = shown.cited(value["statements"], task.evidence, task.language)
    return Draft(statements, (task.left_out,) if task.left_out else ())


def _form(task: AnswerInput, value: Any) -> Draft:
    """The sentences of an answer's form; what it says no source covers is told where the question speaks of it."""
    statements = shown.form(value, task.evidence, task.language)
    texts = (" ".join(text.split()) for text in value[shown.NOT_COVERED])
    missing = tuple(text for text in dict.fromkeys(texts) if _of_question(text, task.question))
    notes = (message(NOT_COVERED, parts=missing),) if missing and statements else ()
    return Draft(statements, notes + ((task.left_out,) if task.left_out else ()))


def _of_question(text: str, question: str) -> bool:
    """Whether ``text`` names only what the question does: a model's own numbers and medicines are no gap of sources."""
    numbers = set(_NUMBER.findall(text)) - set(_NUMBER.findall(question))
    return not numbers and not medicines.names(text) - medicines.names(question)


def _shortened(task: AnswerInput, fitted: Fitted) -> AnswerInput:
    return replace(task, evidence=tuple(task.evidence[place] for place in fitted.kept), left_out=fitted.note)


def cited_writing(
    texts: Texts,
    prompt: Callable[[Any], str],
    max_tokens: int,
    formed: bool = False,
    keep: Callable[[Any, Draft], Draft] = lambda _, draft: draft,
) -> Writing:
    """A chat model writes statements that cite the ``evidence`` of an ``AnswerInput``; read as a ``Draft``.

    ``formed``: in the sections of an answer's form. ``keep`` says what of the draft is taken.
    """
    read = _form if formed else _draft
    return Writing(
        texts,
        lambda task: (shown.form_schema if formed else shown.statements_schema)(task.evidence),
        prompt,
        lambda task, value: keep(task, read(task, value)),
        lambda task: tuple(shown.evidence_text((piece,), task.language) for piece in task.evidence),
        _shortened,
        max_tokens,
    )


def _coherence(task: CoherenceInput, choices: Sequence[Choice]) -> Coherence:
    pairs = zip(_stating(task), choices, strict=True)
    conflicting = tuple(statement.text for statement, choice in pairs if choice.best != 0)
    reason = message("agents.answer_contradicts") if conflicting else None
    return Coherence(not conflicting, "chat", reason, conflicting)


def _stating(task: CoherenceInput) -> list[Statement]:
    return [statement for statement in task.statements if not statement.withheld and statement.citations]


def _statement_and_sources(task: CoherenceInput) -> tuple[str, ...]:
    known = {piece.marker: piece for piece in task.evidence}
    stating = _stating(task)
    markers = [dict.fromkeys(citation.marker for citation in statement.citations) for statement in stating]
    return tuple(
        f"{shown.evidence_text([known[marker] for marker in cited], task.language)}\n"
        f"{shown.quoted('statement', statement.text, task.language)}"
        for statement, cited in zip(stating, markers, strict=True)
    )


MODEL_THRESHOLD = 0.5  # of the label "relevant": more likely than not; not calibrated on a real model

RELEVANCE = Role(
    "relevance",
    "Whether what was found can answer the question",
    "2",
    "LINS, passage relevance agent (PRA)",
    Choosing(
        instructions("relevance"),
        {"en": ("relevant", "irrelevant"), "zh": ("有关", "无关")},
        lambda task: f"{task.question}\n",
        _passages,
        _relevance,
    ),
)
KEYWORDS = Role(
    "keywords",
    "The question's keywords, most important first",
    "3",
    "LINS, keyword extraction agent (KEA)",
    Writing(
        instructions("keywords"),
        lambda task: shown.texts_schema("keywords", task.most, 60),
        lambda task: task.question,
        _keywords,
        max_tokens=200,
    ),
)
CITED_ANSWER = Role(
    "cited_answer",
    "Statements that answer, each with its citation",
    "3",
    "LINS, MAIRAG: generator",
    cited_writing(
        instructions("cited_answer"),
        _answer_prompt,
        max_tokens=900,
        formed=True,
    ),
)
COHERENCE = Role(
    "coherence",
    "Whether the answer agrees with its evidence",
    "1",
    "LINS, passage coherence agent (PCA)",
    Choosing(
        instructions("coherence"),
        {"en": ("agrees", "conflicts"), "zh": ("一致", "矛盾")},
        lambda task: f"{task.question}\n",
        _statement_and_sources,
        _coherence,
    ),
)
SELF_CONTAINED = Role(
    "self_contained",
    "A follow-up question made to stand alone",
    "2",
    "LINS, question enhancement for follow-ups (QEA)",
    Writing(
        instructions("self_contained"),
        lambda _: shown.object_of({"question": {"type": "string", "minLength": 1, "maxLength": 1000}}),
        lambda task: "\n".join((*task.earlier, task.question)),
        _self_contained,
        max_tokens=200,
    ),
)
ROLES = (KEYWORDS, RELEVANCE, CITED_ANSWER, COHERENCE, SELF_CONTAINED)
