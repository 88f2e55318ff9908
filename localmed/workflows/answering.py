"""Answering from evidence, as every workflow does it: a draft, the gate, one more try, or nothing.

A draft passes ``gate``. Where the answer conflicts with its sources (LINS, PCA), or the site wants unsupported
sentences written again, it is written once more from the evidence, told what was wrong; if it conflicts again there is
none.
Nobody sees a sentence before its check. What stands at the end gets its badge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from localmed.agents.asking import CITED_ANSWER, AnswerInput, Draft
from localmed.agents.roles import Role
from localmed.domain import Badge, Evidence, Message, Statement, Verification, message
from localmed.verification import citations, scope
from localmed.verification.prompt_injection import has_injection
from localmed.workflows import gate
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Step, attempt

CONFLICT = message("gate.conflict_twice")
UNNAMED, PART_MISSING = "workflow.unnamed", "workflow.part_missing"
DOUBTS = {UNNAMED: "badge.why_unnamed", PART_MISSING: "badge.why_part_missing",
          "ebm.no_medicine": "badge.why_no_medicine"}  # fmt: skip  # notes that keep a badge from green


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
    lacking = scope.lacking(task.question, written.statements, task.evidence)
    notes += (message(UNNAMED, words=lacking),) if lacking else ()
    return replace(written, verification=downgraded(account, notes), notes=notes)


def downgraded(verification: Verification, notes: Notes) -> Verification:
    """Never green where what is quoted does not name what narrows the question, or a part of it found nothing."""
    lacking = next((note for note in notes if note.code in DOUBTS), None)
    if lacking is None or verification.badge is not Badge.GREEN:
        return verification
    before = Badge.YELLOW if verification.badge_before is Badge.GREEN else verification.badge_before
    reason = Message(DOUBTS[lacking.code], lacking.parameters)
    return replace(verification, badge=Badge.YELLOW, badge_before=before, reason=reason)


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
