"""Plan: which source is asked what (Omni-RAG, source planning), then an answer from what all of them hold.

A strategy makes the plan: ``prompting`` asks the planner once (a tuned model may be the planner); the paper's baselines
are strategies too: ``none``, ``original`` (the question goes to every source), ``query2doc``, ``reflexion`` and
``serts`` (``strategies``). For each query the top 20 of its source are reranked to 10; of the graph a term's definition
and ten relations are shown. What was found is judged and answered from like any question's.
"""

from __future__ import annotations

from localmed.agents.asking import AnswerInput
from localmed.agents.source_plan import GRAPH, SOURCES
from localmed.domain import Answer, AnswerStatus, Part, Provenance, SearchFilter
from localmed.language import detect
from localmed.retrieval.concepts import Card
from localmed.workflows.answering import write
from localmed.workflows.ask import NOT_ENOUGH, abstained, finished, nothing_stands, unnamed
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Cite, Flow
from localmed.workflows.gathering import Gathered, Sources, gather, judged
from localmed.workflows.strategies import STRATEGIES

NO_SOURCES = "No source was asked: the strategy plans no search"
NOT_THERE = "Not planned for, as the library holds nothing of it: {names}"


def plan_sources(
    question: str, wanted: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    """The flow of one question by ``strategy`` over ``sources``."""
    planned, notes = yield from STRATEGIES[strategy](question, wanted, plan, sources)
    gathered = yield from gather(question, planned, sources, wanted)
    relevance, more = yield from judged(question, gathered, plan)
    answer = _begun(question, gathered, sources, notes + more, provenance)
    if planned.empty:
        return abstained(answer, NO_SOURCES)
    if not relevance.enough or gathered.found is None:
        return abstained(answer, NOT_ENOUGH)
    evidence = yield Cite(relevance.helpful(gathered.best(plan.passages)))
    written = yield from write(AnswerInput(question, evidence, gathered.found.dense), plan)
    if not written.stands:
        return nothing_stands(answer, written)
    return finished(answer, written, evidence, unnamed(relevance))


def _begun(question: str, gathered: Gathered, sources: Sources, notes: Notes, provenance: Provenance) -> Answer:
    searched = tuple(name for source in SOURCES if gathered.plan.queries(source) for name in getattr(sources, source))
    missing = [source for source in (*SOURCES, GRAPH) if source not in sources.names]
    notes += (NOT_THERE.format(names=", ".join(missing)),) if missing else ()
    return Answer(
        AnswerStatus.ABSTAINED,
        question,
        gathered.found.language if gathered.found else detect(question),
        (),
        (),
        searched,
        provenance,
        notes=notes,
        workflow="plan",
        parts=(*_planned(gathered), *_looked_up(gathered)),
    )


def _planned(gathered: Gathered) -> tuple[Part, ...]:
    """What each source was asked, and how many passages came."""
    return tuple(
        Part("source", source, facts=(*(("query", each) for each in gathered.plan.queries(source)),
                                      ("passages", str(len(hits)))))
        for source, hits in gathered.hits
        if gathered.plan.queries(source)
    )  # fmt: skip


def _looked_up(gathered: Gathered) -> tuple[Part, ...]:
    """Of each concept the definition with its source, and its relations."""
    return tuple(
        Part(
            "concept", card.concept.name, facts=(*_definition(card), *((r.predicate, r.object) for r in card.relations))
        )
        for card in gathered.cards
    )


def _definition(card: Card) -> tuple[tuple[str, str], ...]:
    if not card.concept.definition:
        return ()
    return (("definition", card.concept.definition), ("source", f"{card.concept.collection} {card.concept.id}"))
