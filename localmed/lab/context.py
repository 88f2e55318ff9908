"""The evidence for a question without an answer, by the arms of the papers' experiments.

``retrieval`` takes the first sections (plain retrieval-augmented generation). ``mairag`` runs LINS's agents up to the
generator, with the steps of ``thorough``: relevant sections (PRA); else the model's own knowledge if it is certain
(SKA); else sections found for sub-questions (QDA). ``mairag-without-ROLE`` omits one. ``plan-STRATEGY`` gathers by a
source plan (Omni-RAG). The answer has evidence (the best passage of each section) and trace only. Its status is
``unverified`` where the model was certain by itself, ``abstained`` where it was not and nothing was found.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.answering.asking import COHERENCE, DECOMPOSITION, RELEVANCE, SELF_KNOWLEDGE, QuestionInput
from localmed.domain import Answer, AnswerStatus, Evidence, Provenance, SearchFilter
from localmed.text.language import detect
from localmed.workflows.finding import Plan, bounded
from localmed.workflows.flow import Cite, Flow, asked
from localmed.workflows.plan import searched_part
from localmed.workflows.receipts import best_of, receipts
from localmed.workflows.strategies import STRATEGIES, Sources, gather
from localmed.workflows.thorough import by_sub_questions, relevant

RETRIEVAL, MAIRAG, PLAN = "retrieval", "mairag", "plan-"
SWITCHES = (RELEVANCE.name, SELF_KNOWLEDGE.name, DECOMPOSITION.name, COHERENCE.name)  # PRA, SKA, QDA, PCA
ARMS = (
    RETRIEVAL,
    MAIRAG,
    *(f"{MAIRAG}-without-{role}" for role in SWITCHES),
    *(f"{PLAN}{name}" for name in STRATEGIES),
)


def context(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, arm: str, provenance: Provenance
) -> Flow:
    """The evidence that ``arm`` finds for ``question``."""
    question, _ = bounded(question)
    if arm.startswith(PLAN):
        return (yield from _planned(question, filters, plan, sources, arm.removeprefix(PLAN), provenance))
    plan = replace(plan, chat=plan.chat - {arm.removeprefix(f"{MAIRAG}-without-")})
    within = plan.within(filters)
    found: Answer = yield from receipts(question, within, plan.searched, provenance)
    if arm == RETRIEVAL:
        return _with(found, best_of(found, found.sections)[: plan.passages])
    helping = yield from relevant(found, plan)
    if not helping.sections:
        if (yield from asked(SELF_KNOWLEDGE, QuestionInput(question), plan.chat, False)):
            return _with(found, (), AnswerStatus.UNVERIFIED)
        helping = yield from by_sub_questions(found, within, plan, provenance, ())
    return _with(helping, best_of(helping, helping.sections)[: plan.passages])


def _with(answer: Answer, evidence: tuple[Evidence, ...], status: AnswerStatus = AnswerStatus.ABSTAINED) -> Answer:
    status = AnswerStatus.ANSWERED if evidence else status
    return replace(answer, workflow="context", evidence=evidence, status=status, receipts=None, conflicts=())


def _planned(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    planned, _ = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    hits = gathered.best(plan.passages)
    evidence: tuple[Evidence, ...] = (yield Cite(hits)) if hits else ()
    answer = Answer(AnswerStatus.ABSTAINED, question, detect(question), (), (), (), provenance)
    return replace(_with(answer, evidence), parts=searched_part(gathered))
