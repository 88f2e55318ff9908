"""Gathering, as source planning does it: every query of a plan goes to its source, every term to the concept graph."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.asking import Relevance
from localmed.agents.planning import FoundInput
from localmed.agents.source_plan import GRAPH, SOURCES, SourcePlan
from localmed.domain import Hit, SearchFilter
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found
from localmed.workflows import finding
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import LookUp, Requests, Search

PER_QUERY = 10  # of the twenty that are reranked (Omni-RAG, 5.1)


@dataclass(frozen=True, slots=True)
class Sources:
    """The collections of each source of a plan, and whether the library has a concept graph."""

    book: tuple[str, ...] = ()
    guideline: tuple[str, ...] = ()
    research: tuple[str, ...] = ()
    wiki: tuple[str, ...] = ()
    graph: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The sources there are."""
        return tuple(source for source in (*SOURCES, GRAPH) if getattr(self, source))


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a plan found: for each source its hits, best first and each once, and the graph's cards."""

    plan: SourcePlan
    hits: tuple[tuple[str, tuple[Hit, ...]], ...] = ()
    cards: tuple[Card, ...] = ()
    sample: Found | None = None  # one of the searches: it says whether meaning was compared, and who reranked

    def best(self, most: int) -> tuple[Hit, ...]:
        """The ``most`` best: the first of every source, then the second, so that no source crowds out another."""
        longest = max((len(hits) for _, hits in self.hits), default=0)
        turns = (hits[place] for place in range(longest) for _, hits in self.hits if place < len(hits))
        return tuple({hit.passage.id: hit for hit in turns}.values())[:most]

    def feedback_input(self, question: str, relevance: Relevance, most: int) -> FoundInput:
        """What the feedback is asked about."""
        cards = tuple(". ".join((card.concept.name, card.concept.definition)) for card in self.cards)
        texts = tuple(hit.passage.in_context for hit in self.best(most))
        return FoundInput(question, self.plan, texts + cards, relevance.probability)


def gather(
    question: str, plan: SourcePlan, sources: Sources, filters: SearchFilter
) -> Generator[Requests, Any, Gathered]:
    """Search every query of ``plan`` in its source, and look its terms up."""
    every: list[tuple[str, tuple[Hit, ...]]] = []
    some: Found | None = None
    for source in SOURCES:
        names = getattr(sources, source)
        queries = plan.queries(source) if names else ()
        searches = tuple(Search(query, replace(filters, collections=names), PER_QUERY) for query in queries)
        results: tuple[Found, ...] = (yield searches) if searches else ()
        some = next(iter(results), some)
        ranked = (hit for place in range(PER_QUERY) for result in results for hit in result.hits[place : place + 1])
        every.append((source, tuple({hit.passage.id: hit for hit in ranked}.values())))
    terms = tuple(LookUp(term, query, question) for term, query in plan.graph) if sources.graph else ()
    cards: tuple[Card | None, ...] = (yield terms) if terms else ()
    known = {card.concept.id: card for card in cards if card}
    return Gathered(plan, tuple(every), tuple(known.values()), some)


def judged(question: str, gathered: Gathered, plan: Plan) -> Generator[Requests, Any, tuple[Relevance, Notes]]:
    """How likely each of the best hits holds an answer to ``question`` itself."""
    if not gathered.sample:
        return Relevance((), 1.0), ()
    best = replace(gathered.sample, hits=gathered.best(plan.passages), reranker="")
    return (yield from finding.judged(question, best, plan))
