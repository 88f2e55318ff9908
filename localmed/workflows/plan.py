"""Plan: plans queries for each source (Omni-RAG, source planning), and shows the passages found.

A strategy makes the plan: ``prompting`` asks the planner, which may be a tuned model, once; the paper's baselines are
``none``, ``original`` (the question goes to every source), ``query2doc``, ``reflexion`` and ``serts`` (``strategies``).
For each query the top 20 of its source are reranked to 10; the graph gives definitions and relations. A chat model
writes an answer from the passages, which is checked as usual.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.answering.planning import GRAPH, SOURCES
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Message,
    Provenance,
    Receipts,
    SearchFilter,
    ShownLine,
    ShownSection,
    message,
)
from localmed.domain.parts import SourcePlanPart
from localmed.library.graph import cited_passage
from localmed.text.language import detect, sentences
from localmed.workflows import finding
from localmed.workflows.ask import answered
from localmed.workflows.finding import Notes, Plan, cared, refused, screened
from localmed.workflows.flow import Cite, Flow
from localmed.workflows.receipts import concept_part
from localmed.workflows.strategies import STRATEGIES, Gathered, Sources, gather


def plan_sources(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    """The flow for one question by ``strategy`` over ``sources``."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "plan")
    care = yield from cared(question, plan)
    question, cut = finding.bounded(question)
    planned, notes = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    answer = _begun(question, gathered, sources, care + cut + notes, provenance)
    if planned.empty:
        return replace(answer, notes=(*answer.notes, message("plan.no_sources")))
    definitions = (cited_passage(card.concept) for card in gathered.cards)
    hits = (*gathered.best(plan.passages), *(Hit(passage) for passage in definitions if passage))
    if not hits:
        return answer
    evidence: tuple[Evidence, ...] = yield Cite(hits)
    dense = gathered.sample is not None and gathered.sample.dense
    shown = Receipts(sections=tuple(map(_section, evidence)), dense=dense)
    answer = replace(answer, status=AnswerStatus.SECTIONS, evidence=evidence, receipts=shown)
    return (yield from answered(answer, plan, filters))


def _section(piece: Evidence) -> ShownSection:
    """A passage as a section without marks."""
    spans = sentences(piece.passage.text)
    return ShownSection(piece.marker, tuple(ShownLine(piece.marker, start, end) for start, end in spans))


def _begun(question: str, gathered: Gathered, sources: Sources, notes: Notes, provenance: Provenance) -> Answer:
    searched = tuple(name for source in SOURCES if gathered.plan.queries(source) for name in getattr(sources, source))
    missing = [source for source in (*SOURCES, GRAPH) if source not in sources.names]
    names = tuple(Message(f"source.kind.{source}") for source in missing)
    notes += (message("plan.not_there", names=names),) if missing else ()
    language = gathered.sample.language if gathered.sample else detect(question)
    answer = Answer(AnswerStatus.ABSTAINED, question, language, (), (), searched, provenance, notes=notes)
    return replace(answer, workflow="plan", parts=(*searched_part(gathered), *map(concept_part, gathered.cards)))


def searched_part(gathered: Gathered) -> tuple[SourcePlanPart, ...]:
    """The queries and number of passages of each source."""
    return tuple(
        SourcePlanPart(source, gathered.plan.queries(source), len(hits))
        for source, hits in gathered.hits
        if gathered.plan.queries(source)
    )
