"""The gate before display: what every drafted answer passes, in this order, before anybody sees a sentence of it.

1. Citations exist and quote exactly; a quotation brings its neighbouring exceptions with it
   (``verification.citations``, ``verification.support``).
2. A model's sentences are carried by what they cite, by rule and by the judge of entailment; what is not is withheld,
   marked or written once more, as the site says. Without a judge what rules cannot tell gives way to a quotation.
3. The answer as a whole agrees with its sources (LINS, PCA); of the departments that are advised, each stands by the
   guide (Dual-RAG, check module).
4. The badge (Answered with Evidence), judged with the withheld sentences in it and without them, of each kind of source
   alone and of all.

What fails leaves a visible gap. The outcome of each step stands in ``Answer.verification`` and in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from localmed.agents.asking import COHERENCE, AnswerInput, Coherence, CoherenceInput, Draft
from localmed.agents.guidance import FINAL_CHECK, CheckInput, check_by_rule
from localmed.agents.judging import ROLES, JudgingInput
from localmed.clinical import asking
from localmed.domain import Badge, Evidence, Message, Origin, Statement, Support, Verification, message
from localmed.errors import Rejected
from localmed.verification import badge, citations, support
from localmed.verification.badge import Vote
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Judge, Step, attempt

_JUDGES = {role.name: role for role in ROLES}

Checked = tuple[tuple[bool, ...], Verification, Notes]


def checked(
    draft: Draft, evidence: tuple[Evidence, ...], plan: Plan, exceptions: bool = True, context: tuple[str, ...] = ()
) -> Step[tuple[tuple[Statement, ...], Verification, Notes]]:
    """Steps 1 and 2: the draft's statements with their verdicts, the account, and a note of what was added.

    ``context`` are the question and the record. Without ``exceptions`` nothing is added or put in a sentence's place,
    and a verdict comes for each of the draft's statements.
    """
    statements, verification = citations.check(draft.statements, evidence)
    if any(statement.origin is Origin.GENERATED and not statement.withheld for statement in statements):
        stances = yield Judge(support.pairs(statements, evidence))
        policy: support.Policy = "mark" if plan.unsupported == "mark" else "withhold"
        statements, verification = support.check(
            statements, evidence, stances, verification, policy, plan.judge, context, replaceable=exceptions
        )
    complete = support.with_exceptions(statements, evidence) if exceptions else statements
    added = len(complete) - len(statements)
    return complete, _counted(verification, added), ((message("gate.added", count=added),) if added else ())


def completed(
    statements: tuple[Statement, ...], evidence: tuple[Evidence, ...], context: tuple[str, ...]
) -> tuple[Statement, ...]:
    """The sentences of an answer, behind each that was withheld the source's own one where there is one.

    ``context`` are the question and what is known of the patient.
    """
    question, *record = context
    return support.in_place(statements, evidence, question, "\n".join(record))


def _counted(verification: Verification, added: int) -> Verification:
    """``verification`` with ``added`` quotations counted in, which are to the character."""
    return replace(verification, statements_checked=verification.statements_checked + added)


def to_correct(statements: Sequence[Statement], plan: Plan) -> tuple[Message, ...]:
    """What a model is told to write otherwise, where the site wants that."""
    wrong = tuple(
        message("agents.correct_sentence", number=number, reason=statement.verdict.reason)
        for number, statement in enumerate(statements, 1)
        if statement.origin is Origin.GENERATED
        and statement.verdict
        and statement.verdict.reason
        and support.unsupported(statement)
    )
    return wrong if plan.unsupported == "regenerate" else ()


def coherent(task: AnswerInput, statements: tuple[Statement, ...], plan: Plan) -> Step[Coherence]:
    """Step 3: quotations agree with what they quote; of a model's words that nobody showed to be supported, the role
    is asked.
    """
    shown_to_hold = (Support.VERBATIM, Support.SUPPORTED)
    own = tuple(
        statement
        for statement in statements
        if statement.origin is Origin.GENERATED
        and not statement.withheld
        and not (statement.verdict and statement.verdict.support in shown_to_hold)
    )
    if COHERENCE.name not in plan.roles or not own:
        return Coherence(True, "")
    coherence, _ = yield from attempt(COHERENCE, CoherenceInput(task.question, own, task.evidence))
    agreed: Coherence = coherence
    return agreed


def with_coherence(before: Verification, coherence: Coherence) -> Verification:
    """``before`` with how step 3 ended; nothing where nobody was asked, as quotations need nobody."""
    if not coherence.judge:
        return before
    judge = Message(f"badge.judge.{coherence.judge}")
    ended = message("gate.agrees", judge=judge) if coherence.agrees else message("gate.conflicts", judge=judge)
    return replace(before, checks=(*before.checks, ended))


def standing(task: CheckInput, before: Verification, plan: Plan) -> Step[Checked]:
    """Step 3 for departments: which of ``task.advised`` stand, by rule always and by the role where it is served."""
    passed = check_by_rule(task)
    notes: Notes = ()
    if FINAL_CHECK.name in plan.roles and task.advised:
        fits, notes = yield from attempt(FINAL_CHECK, task)
        passed = tuple(one and other for one, other in zip(passed, fits, strict=True))
    outcome = message("gate.departments_stand", count=len(passed), standing=sum(passed))
    return passed, replace(before, checks=(*before.checks, outcome)), notes


def badged(
    question: str,
    statements: tuple[Statement, ...],
    evidence: tuple[Evidence, ...],
    before: Verification,
    jury: tuple[str, ...],
) -> Step[Verification]:
    """Step 4: ``before`` with the badge of what is shown; without a jury, or with nothing to show, there is none."""
    shown = citations.shown(statements)
    if not shown or not jury:
        return before
    votes = yield from _votes(question, shown, evidence, jury)
    if not votes:
        return before
    earlier = votes if shown == statements else (yield from _votes(question, statements, evidence, jury))
    alone: list[tuple[str, Badge]] = []
    kinds = dict.fromkeys(piece.kind for piece in citations.cited(shown, evidence))
    for kind in kinds if len(kinds) > 1 else ():
        own = tuple(piece for piece in evidence if piece.kind is kind)
        cited = {piece.marker for piece in own}
        theirs = tuple(
            statement for statement in shown if any(citation.marker in cited for citation in statement.citations)
        )
        alone.append((kind.value, _badge((yield from _votes(question, theirs, own, jury)))))
    colour, reason = _badge(votes), badge.reason(badge.majority([vote.criteria for vote in votes]))
    lost = lost_by_withholding(question, statements, evidence)
    if colour is Badge.GREEN and lost:
        colour, reason = Badge.YELLOW, lost
    return replace(
        before,
        badge=colour,
        reason=reason,
        badge_judges=tuple(vote.judge for vote in votes),
        badge_before=_badge(earlier),
        badges=tuple(alone),
    )


def lost_by_withholding(
    question: str, statements: tuple[Statement, ...], evidence: tuple[Evidence, ...]
) -> Message | None:
    """What the answer lacks of what a model should have written: sentences of which nothing is quoted, a value that was
    asked for, or anything for a value that was given.
    """
    if any(one.verdict and one.verdict.reason == support.FOR_VALUE for one in statements):
        return message("badge.why_for_value")
    if gaps := support.gaps(statements, evidence):
        return message("badge.why_withheld", count=gaps)
    if not any(statement.withheld for statement in statements):
        return None
    shown = (statement.text for statement in citations.shown(statements))
    return None if asking.filled(asking.slots(question), shown) else message("badge.why_value_withheld")


def _votes(
    question: str, statements: tuple[Statement, ...], evidence: tuple[Evidence, ...], jury: tuple[str, ...]
) -> Step[list[Vote]]:
    """The vote of each of the jury on ``statements`` and the evidence that they cite; a judge may have failed."""
    task = JudgingInput(question, citations.cited(statements, evidence) or evidence, statements)
    votes = []
    for name in jury:
        with suppress(Rejected):  # a judge that no rules stand in for
            votes.append((yield from attempt(_JUDGES[name], task))[0])
    return votes


def _badge(votes: Sequence[Vote]) -> Badge:
    return badge.badge(badge.majority([vote.criteria for vote in votes]))
