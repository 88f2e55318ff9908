"""The verification flow on scripted studies and a judge of our own; every run is replayed from its recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localmed.answering import judging, reliability
from localmed.answering.answer_file import VerifyInput
from localmed.answering.check import CHECK, SupportInput
from localmed.answering.judging import Criteria, Vote
from localmed.answering.role_table import role_table
from localmed.answering.roles import Performer, Role
from localmed.answering.write import WRITE, Covers, Drafted, Written
from localmed.domain import Answer, BadgeJudge, Document, Kind, Message, Support
from localmed.domain.parts import ClaimPart, Label, ResponsePart
from localmed.domain.ports import NOT_JUDGED, Stance
from localmed.presentation.answer import view
from localmed.presentation.views import AnswerView
from localmed.retrieval.studies import Reference, Study
from localmed.retrieval.tiers import Tier
from localmed.safety.prompt_injection import has_injection
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Request
from localmed.workflows.m_eval import Bounds
from tests.values import PROVENANCE, cited, finding, passage
from tests.workflows.driving import driven

QUESTION = "Does aspirin prevent stroke?"
ANSWER = "Aspirin prevents stroke in adults."
BOUNDS = Bounds(15, 9, ("pubmed",))
UNJUDGED = Plan((Tier(("pubmed",), whole=True),), 8)
PLAN = replace(UNJUDGED, judge="words")
JURY = replace(PLAN, jury=("badge",), chat=frozenset({"badge"}))
ROLES = {role.name: role for role in (WRITE, CHECK, *reliability.ROLES, *judging.ROLES)}


class Copies:
    """A chat model that copies its first sentence, checks like ``judge`` and votes by the verdicts."""

    def perform(self, role: Role, task: Any) -> Any:
        if role is WRITE:
            first = task.blocks[0].sentences[0]
            return Written(Covers.YES, (Drafted(first.text, (first.number,)),))
        if role is CHECK:
            assert isinstance(task, SupportInput)
            return tuple(judge(task.pairs))
        verdicts = [one.verdict.support if one.verdict else None for one in task.statements]
        return Vote(Criteria(True, True, set(verdicts) == {Support.SUPPORTED}), BadgeJudge("chat"))


def study(title: str, text: str, types: tuple[str, ...] = (), date: str = "2024", **facts: Any) -> Study:
    held = passage(text, title, edition=date)
    document = Document(
        held.document_id, "pubmed", title, title, "en", "f", "0" * 64, "0" * 64, "application/xml", edition=date,
        publication_types=types, **facts,
    )  # fmt: skip
    return Study(document, (held,), Kind.LITERATURE, has_injection(text))


FOR = study("A review of aspirin", "Aspirin prevents stroke.", ("Systematic Review",), "2023")
AGAINST = study("A letter on aspirin", "Aspirin causes stroke.", ("Letter",), "2024")
BESIDE = study("Aspirin in dogs", "Aspirin is given to dogs, with stroke of luck.", ("Review",))


def judge(pairs: Sequence[tuple[str, str]]) -> list[Stance]:
    """By one word of the premise."""
    stances = {"prevents": Stance(0.8, 0.1, 0.1), "causes": Stance(0.1, 0.1, 0.8), "预防": NOT_JUDGED}
    return [
        next((stance for word, stance in stances.items() if word in text), Stance(0.1, 0.8, 0.1)) for text, _ in pairs
    ]


def drive(
    workflow: str,
    arguments: tuple[Any, ...],
    retrieved: Sequence[Study],
    known: dict[str, Study],
    chat: Performer | None = None,
    by_chat: Sequence[str] = (),
) -> tuple[Answer, list[Request]]:
    """The answer and what was asked for; ``chat`` serves the roles ``by_chat``."""
    served = role_table(ROLES, "rules", dict.fromkeys(by_chat, "chat"), {}, chat)
    return driven(
        workflow, arguments, served, find=lambda *_: finding(*FOR.passages), cite=cited, judge=judge,
        studies=lambda *_: tuple(retrieved),
        resolve=lambda references: tuple(known.get(one.text or one.id or one.marker) for one in references),
    )  # fmt: skip


def verify(
    text: str = ANSWER,
    retrieved: Sequence[Study] = (),
    known: dict[str, Study] | None = None,
    question: str = QUESTION,
    plan: Plan = PLAN,
    references: tuple[Reference, ...] = (),
) -> Answer:
    arguments = (VerifyInput(question, text, references), BOUNDS, plan, PROVENANCE)
    return drive("verify", arguments, retrieved, known or {}, Copies(), tuple(plan.chat))[0]


def part(answer: Answer, kind: type) -> Any:
    return next(one for one in answer.parts if isinstance(one, kind))


def claims(answer: Answer) -> list[Label]:
    return [one.label for one in answer.parts if isinstance(one, ClaimPart)]


def response(answer: Answer) -> Label:
    return Label(part(answer, ResponsePart).label)


def codes(answer: Answer) -> set[str]:
    return {note.code for note in answer.notes if isinstance(note, Message)}


def shown(answer: Answer, title: str, language: str = "en") -> str:
    """The rows of the part whose title begins so, a line each."""
    seen: AnswerView = view(answer, language)
    rows = next(one.rows for one in seen.parts if one.title.startswith(title))
    return "\n".join(f"{row.label}: {row.text} {row.detail}" for row in rows)
