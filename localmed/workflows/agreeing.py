"""Whether a model's own answer, which no source supports, is what it says each time it is asked (LUQ)."""

from __future__ import annotations

from localmed.agents.decomposing import OWN_ANSWER, SampleInput
from localmed.domain import Message, Statement, message
from localmed.errors import Rejected
from localmed.ports import Stance
from localmed.verification.sampling import LEAST_SAMPLES, agreement, pairs
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Judge, Perform, Step

UNJUDGED = message("workflow.agreement_unjudged")


def said_again(question: str, own: tuple[Statement, ...], plan: Plan) -> Step[Notes]:
    """A note of how far ``plan.own_samples`` further answers agree with ``own``; none where the site wants none."""
    if not plan.own_samples:
        return ()
    if not plan.judge:
        return (UNJUDGED,)
    samples: list[str] = []
    for number in range(1, plan.own_samples + 1):
        try:
            sample: tuple[Statement, ...] = yield Perform(OWN_ANSWER, SampleInput(question, number))
        except Rejected:  # a reply that cannot be used is no answer to compare with
            continue
        samples.append(" ".join(statement.text for statement in sample))
    stances: tuple[Stance, ...] = (yield Judge(pairs([line.text for line in own], samples))) if samples else ()
    share = agreement(stances)
    return (_note(share, len(samples)),)


def _note(share: float | None, count: int) -> Message:
    if share is None or count < LEAST_SAMPLES:
        return UNJUDGED
    return message("workflow.agreement", count=count, share=share)
