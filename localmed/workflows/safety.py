"""The safety screen: what every flow asks first, and the message it returns in an answer's place.

A flow begins with ``concern = yield from screened(text, plan)`` and, where that is not empty, ends with
``return refused(...)``: the site's message, no evidence, nothing searched. Rules decide first and cannot be switched
off. Where the safety role is on, a chat model may add to them: for every text of a patient, and for staff where death
or harm is spoken of at all.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from localmed.agents.safety import SAFETY, Concern, SafetyInput, Screening, message
from localmed.agents.safety_rules import screen
from localmed.domain import Answer, AnswerStatus, Provenance
from localmed.language import detect
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Asked, attempt


def screened(text: str, plan: Plan) -> Generator[Asked, Any, Concern]:
    """What concern ``text`` gives, "" if none; ``plan.audience`` says who asks."""
    given = SafetyInput(text, plan.audience)
    ruled = screen(given)
    if ruled.concern or SAFETY.name not in plan.roles or not (ruled.subject or plan.audience == "patient"):
        return ruled.concern
    asked, _ = yield from attempt(SAFETY, given)
    screening: Screening = asked
    return screening.concern


def refused(question: str, plan: Plan, provenance: Provenance, workflow: str = "ask") -> Answer:
    """The answer that is the site's safety message, in the question's language: its only note."""
    language = detect(question)
    chosen = dict(plan.safety).get(language) or message(language, "", "")
    return Answer(AnswerStatus.SAFETY, question, language, (), (), (), provenance, notes=(chosen,), workflow=workflow)
