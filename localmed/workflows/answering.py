"""Answering from evidence, as every workflow does it: a draft, its checks, one more try, or nothing.

The order is fixed: citations exist and quote exactly; a model's sentence is supported by what it cites; the answer as
a whole agrees with its sources (LINS, PCA). On a conflict the answer is written once more from the evidence, told what
was wrong; if it conflicts again there is none. Nobody sees a sentence before its check.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.asking import CITED_ANSWER, COHERENCE, AnswerInput, Coherence, CoherenceInput, Draft
from localmed.agents.roles import Role
from localmed.domain import Origin, Statement, Verification
from localmed.verification import citations, support
from localmed.verification.planted import planted
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Asked, Judge, attempt

PLANTED = "Not used, since they hold text addressed to a language model: {number} passages"
CONFLICT = "The answer contradicted its sources twice and is not shown"


@dataclass(frozen=True, slots=True)
class Written:
    """Checked statements, withheld ones included; none where the evidence does not answer."""

    statements: tuple[Statement, ...]
    verification: Verification
    notes: Notes = ()

    @property
    def stands(self) -> bool:
        """Whether anything is left to show."""
        return any(not each.withheld for each in self.statements)


def write(given: AnswerInput, plan: Plan, role: Role = CITED_ANSWER) -> Generator[Asked, Any, Written]:
    """A checked answer to ``given`` by ``role`` (whose input and output are those of ``CITED_ANSWER``).

    Evidence that speaks to a language model is left out, whoever answers, and that is told.
    """
    left = tuple(each.marker for each in given.evidence if planted(each.passage.in_context))
    given = replace(given, evidence=tuple(each for each in given.evidence if each.marker not in left))
    written = yield from _written(given, plan, role)
    return replace(written, notes=(*written.notes, *((PLANTED.format(number=len(left)),) if left else ())))


def _written(given: AnswerInput, plan: Plan, role: Role) -> Generator[Asked, Any, Written]:
    written = yield from _drafted(given, role)
    coherence = yield from _coherent(given, written, plan)
    if coherence.agrees:
        return written
    written = yield from _drafted(replace(given, conflict=coherence.reason), role)
    coherence = yield from _coherent(given, written, plan)
    return written if coherence.agrees else Written((), written.verification, (*written.notes, CONFLICT))


def _drafted(given: AnswerInput, role: Role) -> Generator[Asked, Any, Written]:
    draft, notes = yield from attempt(role, given)
    checked: Draft = draft
    statements, verification = citations.check(checked.statements, given.evidence)
    if any(each.origin is Origin.GENERATED and not each.withheld for each in statements):
        stances = yield Judge(support.pairs(statements, given.evidence))
        statements, verification = support.check(statements, given.evidence, stances, verification)
    return Written(statements, verification, checked.notes + notes)


def _coherent(given: AnswerInput, written: Written, plan: Plan) -> Generator[Asked, Any, Coherence]:
    """Quotations agree with what they quote; of a model's words the role is asked."""
    own = any(each.origin is Origin.GENERATED and not each.withheld for each in written.statements)
    if COHERENCE.name not in plan.roles or not own:
        return Coherence(True, "")
    coherence, _ = yield from attempt(COHERENCE, CoherenceInput(given.question, written.statements, given.evidence))
    agreed: Coherence = coherence
    return agreed
