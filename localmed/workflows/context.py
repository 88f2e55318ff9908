"""What a question would be answered from, without an answer: the arms of the papers' experiments.

``retrieval`` takes what the first tier finds as it is (plain retrieval-augmented generation). ``mairag`` goes as far as
LINS's agents do before the generator: passages that help (PRA); else the model's own knowledge if it is certain (SKA);
else what is found for sub-questions (QDA). ``mairag-without-ROLE`` leaves one of them out. ``plan-STRATEGY`` gathers by
a source plan (Omni-RAG). The answer holds evidence and trace only: ``unverified`` where the model was certain by
itself, ``abstained`` where nothing was found and it was not.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.agents.asking import COHERENCE, RELEVANCE, QuestionInput
from localmed.agents.decomposing import DECOMPOSITION, SELF_KNOWLEDGE, SUB_QUESTIONS
from localmed.domain import Answer, AnswerStatus, Evidence, Hit, Provenance, SearchFilter
from localmed.errors import Rejected
from localmed.workflows import finding
from localmed.workflows.ask import initial_answer, searched_each
from localmed.workflows.finding import Plan, TierSearch
from localmed.workflows.flow import Cite, Flow, Perform, Search, Step, attempt
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
    plan = replace(plan, roles=plan.roles - left_out)
    request, notes = yield from finding.request(question, filters, plan)
    most = 1 if arm == RETRIEVAL else 0
    searched: TierSearch = yield from finding.search(request, iter(plan.tiers), plan, most)
    answer = initial_answer(question, searched + TierSearch(notes=notes), provenance)
    if arm == RETRIEVAL:  # no rule of ours sets a hit aside either
        hits = searched.tried[0].result.hits[: plan.passages] if searched.tried else ()
        return _with(answer, (yield from _cited(hits)))
    if searched.leading:
        return _with(answer, (yield from _cited(searched.leading.hits[: plan.passages])))
    return (yield from _unhelped(answer, request, plan))


def _cited(hits: tuple[Hit, ...]) -> Step[tuple[Evidence, ...]]:
    evidence: tuple[Evidence, ...] = (yield Cite(hits)) if hits else ()
    return evidence


def _with(answer: Answer, evidence: tuple[Evidence, ...], status: AnswerStatus = AnswerStatus.ABSTAINED) -> Answer:
    return replace(answer, workflow="context", evidence=evidence, status=AnswerStatus.ANSWERED if evidence else status)


def _unhelped(answer: Answer, request: Search, plan: Plan) -> Flow:
    """Own knowledge, else the evidence of the question's parts."""
    if SELF_KNOWLEDGE.name in plan.roles and (yield from _certain(answer.question)):
        return _with(answer, (), AnswerStatus.UNVERIFIED)
    if DECOMPOSITION.name not in plan.roles:
        return _with(answer, ())
    questions, _ = yield from attempt(DECOMPOSITION, QuestionInput(answer.question))
    parts, _ = yield from searched_each(questions[:SUB_QUESTIONS], answer.question, request, plan)
    pieces = dict.fromkeys(piece for part in parts for piece in part.evidence)
    return _with(answer, tuple(pieces)[: plan.passages])


def _certain(question: str) -> Step[bool]:
    try:
        certain: bool = yield Perform(SELF_KNOWLEDGE, QuestionInput(question))
    except Rejected:
        return False
    return certain


def _planned(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    planned, _ = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    evidence = yield from _cited(gathered.best(plan.passages))
    answer = initial_answer(question, TierSearch(), provenance)
    return replace(_with(answer, evidence), parts=searched_part(gathered))
