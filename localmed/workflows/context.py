"""What a question would be answered from, without an answer: the arms of the papers' experiments.

``retrieval`` takes what the first tier finds as it is (plain retrieval-augmented generation). ``mairag`` goes as far as
LINS's agents do before the generator: passages that help (PRA); else the model's own knowledge if it is certain (SKA);
else what is found for sub-questions (QDA). ``mairag-without-ROLE`` leaves one of them out. ``plan-STRATEGY`` gathers by
a source plan (Omni-RAG). The answer holds evidence and trace only: ``unverified`` where the model was certain by
itself, ``abstained`` where nothing was found and it was not.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.answering.asking import (
    COHERENCE,
    DECOMPOSITION,
    RELEVANCE,
    RELEVANT,
    SELF_KNOWLEDGE,
    SUB_QUESTIONS,
    QuestionInput,
    RelevanceInput,
)
from localmed.domain import Answer, AnswerStatus, Evidence, Hit, Provenance, SearchFilter
from localmed.domain.findings import Found
from localmed.text.language import detect
from localmed.workflows import finding
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Cite, Flow, Search, Step, asked
from localmed.workflows.plan import searched_part
from localmed.workflows.strategies import STRATEGIES, Sources, gather

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
    question, _ = finding.bounded(question)
    if arm.startswith(PLAN):
        return (yield from _planned(question, filters, plan, sources, arm.removeprefix(PLAN), provenance))
    left_out = set(SWITCHES) if arm == RETRIEVAL else {arm.removeprefix(f"{MAIRAG}-without-")}
    plan = replace(plan, roles=plan.roles - left_out, chat=plan.chat - left_out)
    request, _ = yield from finding.request(question, filters, plan)
    tried = [tier for tier in plan.tiers if tier.collections]
    answer = Answer(AnswerStatus.ABSTAINED, question, detect(question), (), (), plan.searched, provenance)
    for tier in tried[:1] if arm == RETRIEVAL else tried:
        found: Found = yield replace(request, filters=tier.limit(filters))
        hits = found.hits if arm == RETRIEVAL else (yield from helpful(question, found.hits, plan))
        if hits:
            return _with(answer, (yield from _cited(hits[: plan.passages])))
    return answer if arm == RETRIEVAL else (yield from _unhelped(answer, filters, plan))


def helpful(question: str, hits: tuple[Hit, ...], plan: Plan) -> Step[tuple[Hit, ...]]:
    """Those of ``hits`` that help (PRA); all of them where no model judges."""
    if not hits:
        return hits
    task = RelevanceInput(question, tuple(hit.passage for hit in hits))
    labels: tuple[float, ...] = yield from asked(RELEVANCE, task, plan.chat, ())
    return tuple(hit for hit, label in zip(hits, labels, strict=True) if label >= RELEVANT) if labels else hits


def _cited(hits: tuple[Hit, ...]) -> Step[tuple[Evidence, ...]]:
    evidence: tuple[Evidence, ...] = (yield Cite(hits)) if hits else ()
    return evidence


def _with(answer: Answer, evidence: tuple[Evidence, ...], status: AnswerStatus = AnswerStatus.ABSTAINED) -> Answer:
    return replace(answer, workflow="context", evidence=evidence, status=AnswerStatus.ANSWERED if evidence else status)


def _unhelped(answer: Answer, filters: SearchFilter, plan: Plan) -> Flow:
    """Own knowledge (SKA), else the evidence of the question's parts (QDA)."""
    if (yield from asked(SELF_KNOWLEDGE, QuestionInput(answer.question), plan.chat, False)):
        return _with(answer, (), AnswerStatus.UNVERIFIED)
    questions: tuple[str, ...] = yield from asked(DECOMPOSITION, QuestionInput(answer.question), plan.chat, ())
    hits: dict[str, Hit] = {}
    for part in questions[:SUB_QUESTIONS]:
        found: Found = yield Search(part, plan.within(filters), plan.passages)
        hits |= {hit.passage.id: hit for hit in (yield from helpful(part, found.hits, plan))}
    return _with(answer, (yield from _cited(tuple(hits.values())[: plan.passages])))


def _planned(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    planned, _ = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    evidence = yield from _cited(gathered.best(plan.passages))
    answer = Answer(AnswerStatus.ABSTAINED, question, detect(question), (), (), (), provenance)
    return replace(_with(answer, evidence), parts=searched_part(gathered))
