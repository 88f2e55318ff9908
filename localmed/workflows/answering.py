"""Answering from evidence, as every workflow does it: a draft, the gate, one more try, or nothing.

A draft passes ``gate``. Where the answer conflicts with its sources (LINS, PCA), or the site wants unsupported
sentences written again, it is written once more from the evidence, told what was wrong; if it conflicts again there is
none.
Nobody sees a sentence before its check. What stands at the end gets its badge.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.asking import CITED_ANSWER, AnswerInput, Draft
from localmed.agents.roles import Role
from localmed.domain import Evidence, Statement, Verification, message
from localmed.verification.planted import planted
from localmed.workflows import gate
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Asked, attempt

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
        return any(not statement.withheld for statement in self.statements)


def write(given: AnswerInput, plan: Plan, role: Role = CITED_ANSWER) -> Generator[Asked, Any, Written]:
    """A checked answer to ``given`` by ``role`` (whose input and output are those of ``CITED_ANSWER``).

    Evidence that speaks to a language model is left out, whoever answers, and that is told.
    """
    left = tuple(each.marker for each in given.evidence if planted(each.passage.in_context))
    given = replace(given, evidence=tuple(each for each in given.evidence if each.marker not in left))
    written = yield from _written(given, plan, role)
    account = yield from gate.badged(
        given.question, written.statements, given.evidence, written.verification, plan.jury
    )
    notes = (*written.notes, *((message("gate.planted", count=len(left)),) if left else ()))
    return replace(written, verification=account, notes=notes)


def _written(given: AnswerInput, plan: Plan, role: Role) -> Generator[Asked, Any, Written]:
    written = yield from _drafted(given, plan, role)
    wrong = gate.to_correct(written.statements, plan)
    if not wrong:
        coherence = yield from gate.coherent(given, written.statements, plan)
        if coherence.agrees:
            return replace(written, verification=gate.told(written.verification, coherence))
        wrong = (coherence.reason,) if coherence.reason else ()
    written = yield from _drafted(replace(given, conflict=wrong), plan, role)
    coherence = yield from gate.coherent(given, written.statements, plan)
    account = gate.told(written.verification, coherence)
    if coherence.agrees:
        return replace(written, verification=account)
    return Written((), account, (*written.notes, CONFLICT))


def _drafted(given: AnswerInput, plan: Plan, role: Role) -> Generator[Asked, Any, Written]:
    """What ``role`` drafts, checked."""
    drafted, notes = yield from attempt(role, given)
    draft: Draft = drafted
    statements, verification, added = yield from gate.checked(draft, given.evidence, plan)
    return Written(statements, verification, draft.notes + notes + added)


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Which of the sources shown should have been reviewed by the day of the question."""
    late = (each for each in evidence if each.overdue)
    return tuple(
        message("workflow.overdue", marker=each.marker, date=each.overdue, title=each.document_title) for each in late
    )
