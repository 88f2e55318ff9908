"""The safety screen, by which every workflow begins that takes a person's text.

A flow begins with ``concern = yield from screened(text, plan)`` and, where that is not empty, ends with ``return
refused(...)``: the site's message, no evidence, nothing searched. Rules decide first and cannot be switched off. Two
roles may add to them: likeness to sentences of our own, for every text of a patient, and of staff who speak of
themselves; and, where the safety role is on, a chat model, for every text of a patient, and for staff where death or
harm is spoken of at all.
"""

from __future__ import annotations

from localmed.domain import Answer, AnswerStatus, Evidence, Provenance, message
from localmed.safety.safety import LIKENESS, SAFETY, Concern, SafetyInput, Screening, site_message
from localmed.safety.safety_rules import of_oneself, screen
from localmed.text.language import detect
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Perform, Step, attempt


def screened(text: str, plan: Plan, own_words: bool = True) -> Step[Concern]:
    """What concern ``text`` gives, "" if none; ``plan.audience`` says who asks.

    Without ``own_words`` (a clinician's order, say) nothing is likened: the likeness was not fitted on such texts.
    """
    task = SafetyInput(text, plan.audience)
    ruled = screen(task)
    if ruled.concern:
        return ruled.concern
    if own_words and LIKENESS.name in plan.roles and (plan.audience == "patient" or of_oneself(text)):
        likened: Screening = yield Perform(LIKENESS, task)
        if likened.concern:
            return likened.concern
    if SAFETY.name not in plan.roles or not (ruled.subject or plan.audience == "patient"):
        return ""
    reply, _ = yield from attempt(SAFETY, task)
    screening: Screening = reply
    return screening.concern


def refused(question: str, plan: Plan, provenance: Provenance, workflow: str = "ask") -> Answer:
    """The answer that is the site's safety message, in the question's language: its only note."""
    language = detect(question)
    chosen = dict(plan.safety).get(language) or site_message(language, "", "")
    return Answer(AnswerStatus.SAFETY, question, language, (), (), (), provenance, notes=(chosen,), workflow=workflow)


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Which of the sources shown should have been reviewed by the day of the question."""
    late = (piece for piece in evidence if piece.overdue)
    return tuple(
        message("workflow.overdue", marker=piece.marker, date=piece.overdue, title=piece.document_title)
        for piece in late
    )
