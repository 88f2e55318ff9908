"""Answering from evidence, as every workflow does it: a draft, the gate, one more try, or nothing.

A draft passes ``gate``. Where the answer conflicts with its sources (LINS, PCA), or the site wants unsupported
sentences written again, it is written once more from the evidence, told what was wrong; if it conflicts again there is
none.
Nobody sees a sentence before its check. What stands at the end gets its badge.

A flow begins with ``concern = yield from screened(text, plan)``, the safety screen, and, where that is not empty, ends
with ``return refused(...)``: the site's message, no evidence, nothing searched. Rules decide first and cannot be
switched off. Two roles may add to them: likeness to sentences of our own, for every text of a patient, and of staff who
speak of themselves; and, where the safety role is on, a chat model, for every text of a patient, and for staff where
death or harm is spoken of at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from localmed.agents.asking import CITED_ANSWER, AnswerInput, Draft
from localmed.agents.roles import Role
from localmed.agents.safety import LIKENESS, SAFETY, Concern, SafetyInput, Screening, site_message
from localmed.agents.safety_rules import of_oneself, screen
from localmed.domain import Answer, AnswerStatus, Evidence, Provenance, Statement, Verification, message
from localmed.language import detect
from localmed.verification import citations
from localmed.verification.prompt_injection import has_injection
from localmed.workflows import gate
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Perform, Step, attempt

CONFLICT = message("gate.conflict_twice")


@dataclass(frozen=True, slots=True)
class Written:
    """Checked statements, withheld ones included; none where the evidence does not answer."""

    statements: tuple[Statement, ...]
    verification: Verification
    notes: Notes = ()

    @property
    def stands(self) -> bool:
        """Whether anything is left to show."""
        return bool(citations.shown(self.statements))


def write(task: AnswerInput, plan: Plan, role: Role = CITED_ANSWER) -> Step[Written]:
    """A checked answer to ``task`` by ``role`` (whose input and output are those of ``CITED_ANSWER``).

    Evidence that speaks to a language model is left out, whoever answers, and that is told.
    """
    left = tuple(piece.marker for piece in task.evidence if has_injection(piece.passage.in_context))
    task = replace(task, evidence=tuple(piece for piece in task.evidence if piece.marker not in left))
    written = yield from _written(task, plan, role)
    account = yield from gate.badged(task.question, written.statements, task.evidence, written.verification, plan.jury)
    notes = (*written.notes, *((message("gate.planted", count=len(left)),) if left else ()))
    return replace(written, verification=account, notes=notes)


def _written(task: AnswerInput, plan: Plan, role: Role) -> Step[Written]:
    written = yield from _drafted(task, plan, role)
    wrong = gate.to_correct(written.statements, plan)
    if not wrong:
        coherence = yield from gate.coherent(task, written.statements, plan)
        if coherence.agrees:
            return replace(written, verification=gate.with_coherence(written.verification, coherence))
        wrong = (coherence.reason,) if coherence.reason else ()
    written = yield from _drafted(replace(task, conflict=wrong), plan, role)
    coherence = yield from gate.coherent(task, written.statements, plan)
    account = gate.with_coherence(written.verification, coherence)
    if coherence.agrees:
        return replace(written, verification=account)
    return Written((), account, (*written.notes, CONFLICT))


def _drafted(task: AnswerInput, plan: Plan, role: Role) -> Step[Written]:
    """What ``role`` drafts, checked."""
    drafted, notes = yield from attempt(role, task)
    draft: Draft = drafted
    statements, verification, added = yield from gate.checked(draft, task.evidence, plan)
    return Written(statements, verification, draft.notes + notes + added)


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Which of the sources shown should have been reviewed by the day of the question."""
    late = (piece for piece in evidence if piece.overdue)
    return tuple(
        message("workflow.overdue", marker=piece.marker, date=piece.overdue, title=piece.document_title)
        for piece in late
    )


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
