"""Plan: which source is asked what (Omni-RAG, source planning), then an answer from what all of them hold.

A strategy makes the plan: ``prompting`` asks the planner once (a tuned model may be the planner); the paper's baselines
are strategies too: ``none``, ``original`` (the question goes to every source), ``query2doc``, ``reflexion`` and
``serts`` (``strategies``). For each query the top 20 of its source are reranked to 10; of the graph a term's definition
and ten relations are shown. What was found is judged and answered from like any question's; definitions are evidence
beside it where a model writes, which may need them, and where a definition is what is asked for.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.agents.asking import CITED_ANSWER, AnswerInput
from localmed.agents.source_plan import GRAPH, SOURCES
from localmed.clinical import asking
from localmed.domain import Answer, AnswerStatus, Hit, Message, Provenance, SearchFilter, message
from localmed.domain.parts import ConceptPart, SourcePlanPart
from localmed.language import detect
from localmed.workflows import defining, finding
from localmed.workflows.abstaining import NOT_ENOUGH, abstained, without_statements
from localmed.workflows.answering import write
from localmed.workflows.ask import completed_answer
from localmed.workflows.defining import concept_part
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Cite, Flow
from localmed.workflows.strategies import STRATEGIES, Gathered, Sources, gather, judged


def plan_sources(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    """The flow of one question by ``strategy`` over ``sources``."""
    question, cut = finding.bounded(question)
    planned, notes = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    relevance, more = yield from judged(question, gathered, plan)
    answer = _begun(question, gathered, sources, cut + notes + more, provenance)
    if planned.empty:
        return abstained(answer, message("plan.no_sources"))
    hits = relevance.helpful(gathered.best(plan.passages)) if relevance.enough else ()
    cited = (*hits, *_definitions(question, gathered, plan, alone=not hits))
    if not cited:
        return abstained(answer, NOT_ENOUGH)
    evidence = yield Cite(cited)
    dense = gathered.sample is not None and gathered.sample.dense
    written = yield from write(AnswerInput(question, evidence, dense), plan, relevance=relevance)
    if not written.stands:
        return without_statements(answer, written)
    return completed_answer(answer, written, written.evidence)


def _begun(question: str, gathered: Gathered, sources: Sources, notes: Notes, provenance: Provenance) -> Answer:
    searched = tuple(name for source in SOURCES if gathered.plan.queries(source) for name in getattr(sources, source))
    missing = [source for source in (*SOURCES, GRAPH) if source not in sources.names]
    names = tuple(Message(f"plan.source.{source}") for source in missing)
    notes += (message("plan.not_there", names=names),) if missing else ()
    language = gathered.sample.language if gathered.sample else detect(question)
    answer = Answer(AnswerStatus.ABSTAINED, question, language, (), (), searched, provenance, notes=notes)
    return replace(answer, workflow="plan", parts=(*searched_part(gathered), *_looked_up(gathered)))


def searched_part(gathered: Gathered) -> tuple[SourcePlanPart, ...]:
    """What each source was asked, and how many passages came."""
    return tuple(
        SourcePlanPart(source, gathered.plan.queries(source), len(hits))
        for source, hits in gathered.hits
        if gathered.plan.queries(source)
    )


def _definitions(question: str, gathered: Gathered, plan: Plan, alone: bool) -> tuple[Hit, ...]:
    """The graph's definitions as evidence beside passages, or ``alone``, which answers a question for one only."""
    defines = bool(asking.defined(question))
    return defining.hits(gathered.cards) if defines or (not alone and CITED_ANSWER.name in plan.chat) else ()


def _looked_up(gathered: Gathered) -> tuple[ConceptPart, ...]:
    """Of each concept the definition with its source, and its relations."""
    return tuple(map(concept_part, gathered.cards))
