"""A thorough answer on request: MAIRAG (LINS, Fig. 1b) and the badge's jury (Answered with Evidence).

Over the sections of ``ask``, each is judged (PRA). If none helps, the model answers from its own knowledge, labelled
unverified, if the site allows it and the model is certain (SKA); else sub-questions are searched once each (QDA). The
answer is written and checked as in ``ask``, and written once more if sentences conflict with their sources (PCA). A
jury votes on the badge. Bounds: one label a section, ``SUB_QUESTIONS`` searches, two drafts, one vote a juror. Without
a chat model this is ``ask``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localmed.answering import asking, check, judging
from localmed.answering.judging import ROLES as JURY
from localmed.answering.judging import JudgingInput, Vote
from localmed.answering.write import WRITE
from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    Evidence,
    Passage,
    Provenance,
    Receipts,
    SearchFilter,
    ShownSection,
    Statement,
    message,
)
from localmed.workflows.ask import answered
from localmed.workflows.finding import Plan, cared, refused, screened
from localmed.workflows.flow import Flow, Step, asked
from localmed.workflows.receipts import receipts, renumbered

OWN = message("workflow.own_knowledge")
NONE_HELPS = message("workflow.none_helps")
_JURY = {role.name: role for role in JURY}


def thorough(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    earlier: tuple[str, ...] = (),
    left_out: tuple[str, ...] = (),
) -> Flow:
    """The flow for one question."""
    if (yield from screened(said := "\n".join((*earlier[-1:], question)), plan)):
        return refused(question, plan, provenance)
    care = yield from cared(said, plan)
    if earlier:  # the follow-up made to stand alone (QEA)
        question = yield from asked(asking.SELF_CONTAINED, asking.FollowUp(question, earlier), plan.chat, question)
    within = plan.within(filters)
    found: Answer = yield from receipts(question, within, plan.searched, provenance, earlier, left_out=left_out)
    found = replace(found, notes=(*care, *found.notes, *plan.lacking))
    if WRITE.name not in plan.chat or found.receipts is None:
        return found
    answer = yield from relevant(found, plan)
    if not answer.sections:
        own = yield from own_knowledge(answer, plan)
        if own:
            return replace(found, status=AnswerStatus.UNVERIFIED, statements=own, notes=(*found.notes, OWN))
        answer = yield from by_sub_questions(found, within, plan, provenance, left_out)
    if not answer.sections:
        return replace(found, notes=(*found.notes, NONE_HELPS))
    written: Answer = yield from answered(answer, plan, filters, earlier=earlier)
    written = yield from _coherent(answer, written, plan, filters, earlier)
    return (yield from voted(written, plan.jury))


def relevant(answer: Answer, plan: Plan) -> Flow:
    """``answer`` with the sections that help (PRA); all if nobody judges."""
    if answer.receipts is None or not answer.sections:
        return answer
    known = answer.by_marker
    best: tuple[Passage, ...] = tuple(known[section.best].passage for section in answer.sections)
    labels: tuple[float, ...] = yield from asked(
        asking.RELEVANCE, asking.RelevanceInput(answer.question, best), plan.chat, ()
    )
    if not labels:
        return answer
    helps = {passage.id for passage, label in zip(best, labels, strict=True) if label >= asking.RELEVANT}

    def helpful(sections: Sequence[ShownSection]) -> tuple[ShownSection, ...]:
        return tuple(one for one in sections if known[one.best].passage.id in helps)

    found = answer.receipts
    return replace(answer, receipts=replace(found, sections=helpful(found.sections), others=helpful(found.others)))


def own_knowledge(answer: Answer, plan: Plan) -> Step[tuple[Statement, ...]]:
    """The model's own answer (SKA), if the site allows it and the model is certain; else nothing."""
    if not plan.own_knowledge or not {asking.SELF_KNOWLEDGE.name, asking.OWN_ANSWER.name} <= plan.chat:
        return ()
    task, nothing = asking.QuestionInput(answer.question), tuple[Statement, ...]()
    certain = yield from asked(asking.SELF_KNOWLEDGE, task, plan.chat, False)
    return (yield from asked(asking.OWN_ANSWER, task, plan.chat, nothing)) if certain else nothing


def by_sub_questions(
    answer: Answer, within: SearchFilter, plan: Plan, provenance: Provenance, left_out: tuple[str, ...]
) -> Flow:
    """``answer`` with the sections that help its sub-questions (QDA), in their order."""
    parts: tuple[str, ...] = yield from asked(
        asking.DECOMPOSITION, asking.QuestionInput(answer.question), plan.chat, ()
    )
    evidence, sections = list(answer.evidence), list[ShownSection]()
    for part in parts[: asking.SUB_QUESTIONS]:
        found: Answer = yield from receipts(part, within, plan.searched, provenance, left_out=left_out)
        helping: Answer = renumbered((yield from relevant(found, plan)), len(evidence))
        sections, evidence = [*sections, *helping.sections], [*evidence, *helping.evidence]
    known = answer.receipts or Receipts()
    kept = Receipts(known.readings, tuple(sections), flags=known.flags, absent=known.absent)
    return replace(answer, evidence=tuple(evidence), receipts=kept)


def _coherent(answer: Answer, written: Answer, plan: Plan, filters: SearchFilter, earlier: tuple[str, ...]) -> Flow:
    """``written``, or a second draft if a sentence conflicts with its sources (PCA)."""
    shown = written.shown
    if not shown:
        return written
    task = asking.CoherenceInput(answer.question, shown, written.evidence)
    coherence = yield from asked(asking.COHERENCE, task, plan.chat, asking.Coherence(True))
    if coherence.agrees:
        return written
    wrong = "\n".join(shown[place].text for place in coherence.conflicting)
    again: Answer = yield from answered(answer, plan, filters, earlier=earlier, wrong=wrong)
    return again if again.shown else written


def voted(answer: Answer, jury: tuple[str, ...]) -> Flow:
    """``answer`` with the badge by votes of ``jury``; unchanged without votes or statements."""
    shown, account = answer.shown, answer.verification
    if not shown or account.badge is Badge.NONE:
        return answer
    votes = yield from votes_on(answer.question, shown, answer.evidence, jury)
    return replace(answer, verification=judging.voted(account, votes))


def votes_on(
    question: str, statements: tuple[Statement, ...], evidence: tuple[Evidence, ...], jury: tuple[str, ...]
) -> Step[list[Vote]]:
    """The votes of ``jury`` on ``statements`` and their sources; a failed juror casts none."""
    task = JudgingInput(question, check.cited(statements, evidence) or evidence, statements)
    votes: list[Vote] = []
    for name in jury:
        voting: Step[Vote | None] = asked(_JURY[name], task, jury, None)
        if vote := (yield from voting):
            votes.append(vote)
    return votes
