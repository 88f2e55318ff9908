"""Strategies for source plans: the planner, and the baselines of Omni-RAG (5.1, D.3).

``reflexion`` plans, searches, scores the results and plans again with all feedback. ``serts`` does so over a tree (Hu
et al. 2024): the node with the best upper confidence bound gets a child planned from the feedback on its line, and the
child's score is added up the tree. Both stop at the best score, at a repeated plan, or after eight plans, and take the
best plan. ``gather`` searches every query in its source and every term in the concept graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import log, sqrt

from localmed.answering import planning
from localmed.answering.asking import RELEVANCE, QuestionInput, RelevanceInput
from localmed.domain import Hit, SearchFilter
from localmed.domain.findings import Found
from localmed.retrieval.concepts import Card
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import LookUp, Search, Step, asked, attempt

PER_QUERY = 10  # of the twenty that are reranked (Omni-RAG, 5.1)
PLANS = 8  # made for one question at most (Omni-RAG, D.3)
SIBLINGS = 2  # children of a node of the tree
EXPLORE = sqrt(2)  # the weight of what was seldom tried (UCT, Kocsis & Szepesvári 2006)


@dataclass(frozen=True, slots=True)
class Sources:
    """The collections of each source of a plan, and whether the library has a concept graph."""

    book: tuple[str, ...] = ()
    guideline: tuple[str, ...] = ()
    research: tuple[str, ...] = ()
    wiki: tuple[str, ...] = ()
    leaflet: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    graph: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The available sources."""
        return tuple(source for source in (*planning.SOURCES, planning.GRAPH) if getattr(self, source))


@dataclass(frozen=True, slots=True)
class Gathered:
    """A plan's results: distinct hits of each source, best first, and the graph's cards."""

    plan: planning.SourcePlan
    hits: tuple[tuple[str, tuple[Hit, ...]], ...] = ()
    cards: tuple[Card, ...] = ()
    sample: Found | None = None  # one of the searches: it says whether meaning was compared, and who reranked

    def best(self, most: int) -> tuple[Hit, ...]:
        """The best ``most`` hits, in turn from each source, so that none crowds out another."""
        longest = max((len(hits) for _, hits in self.hits), default=0)
        turns = (hits[place] for place in range(longest) for _, hits in self.hits if place < len(hits))
        return tuple({hit.passage.id: hit for hit in turns}.values())[:most]

    def feedback_input(self, question: str, helping: float, most: int) -> planning.FoundInput:
        """The input of the feedback role."""
        cards = tuple(". ".join((card.concept.name, card.concept.definition)) for card in self.cards)
        texts = tuple(hit.passage.in_context for hit in self.best(most))
        return planning.FoundInput(question, self.plan, texts + cards, helping)


def gather(question: str, plan: planning.SourcePlan, sources: Sources, filters: SearchFilter) -> Step[Gathered]:
    """Search the queries of ``plan`` and look its terms up."""
    every: list[tuple[str, tuple[Hit, ...]]] = []
    some: Found | None = None
    for source in planning.SOURCES:
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


def share_helping(question: str, gathered: Gathered, plan: Plan) -> Step[float]:
    """The probability that the best result helps to answer ``question`` (PRA); 1.0 or 0.0 without a judge."""
    passages = tuple(hit.passage for hit in gathered.best(plan.passages))
    if not passages:
        return 0.0
    labels: tuple[float, ...] = yield from asked(RELEVANCE, RelevanceInput(question, passages), plan.chat, (1.0,))
    return max(labels)


# --- strategies -------------------------------------------------------------------------------------------------------

Planned = Step[tuple[planning.SourcePlan, Notes]]
Strategy = Callable[[str, SearchFilter, Plan, Sources], Planned]


def none(_question: str, _filters: SearchFilter, _plan: Plan, _sources: Sources) -> Planned:
    """No retrieval."""
    return planning.SourcePlan(), ()
    yield ()


def original(question: str, _filters: SearchFilter, _plan: Plan, sources: Sources) -> Planned:
    """The question for every source, its terms for the graph."""
    pairs, notes = yield from _graph(question, sources)
    named = {source: (question,) for source in planning.SOURCES if source in sources.names}
    return planning.SourcePlan(**named, graph=pairs), notes


def query2doc(question: str, _filters: SearchFilter, _plan: Plan, sources: Sources) -> Planned:
    """A pseudo-passage for each source instead of the question."""
    pairs, notes = yield from _graph(question, sources)
    named: dict[str, tuple[str, ...]] = {}
    for source in (name for name in planning.SOURCES if name in sources.names):
        text, more = yield from attempt(planning.PSEUDO_DOCUMENT, planning.PseudoInput(question, source))
        named[source], notes = (f"{question} {text}" if text != question else question,), notes + more
    return planning.SourcePlan(**named, graph=pairs), notes


def prompting(question: str, _filters: SearchFilter, _plan: Plan, sources: Sources) -> Planned:
    """The planner's plan."""
    return (yield from attempt(planning.PLAN, planning.PlanInput(question, sources.names)))


def reflexion(question: str, filters: SearchFilter, plan: Plan, sources: Sources) -> Planned:
    """A sequence of plans, each with the feedback on all before it."""
    return (yield from _grown(question, filters, plan, sources, lambda nodes: nodes[-1]))


def serts(question: str, filters: SearchFilter, plan: Plan, sources: Sources) -> Planned:
    """A tree of plans, searched by upper confidence bounds."""
    return (yield from _grown(question, filters, plan, sources, _selected))


def _grown(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, parent_of: Callable[[list[Node]], Node]
) -> Planned:
    """The best of successive plans, each a child of the node that ``parent_of`` chooses."""
    root, notes = yield from _scored_plan(question, None, filters, plan, sources)
    nodes = [root]
    while len(nodes) < PLANS and max(node.score for node in nodes) < planning.BEST:
        parent = parent_of(nodes)
        node, more = yield from _scored_plan(question, parent, filters, plan, sources)
        notes += more
        if any(node.plan == earlier.plan for earlier in nodes):
            break
        parent.children.append(node)
        nodes.append(node)
        for ancestor in node.line():
            ancestor.visits, ancestor.total = ancestor.visits + 1, ancestor.total + node.score / planning.BEST
    return max(nodes, key=lambda node: node.score).plan, tuple(dict.fromkeys(notes))


STRATEGIES: dict[str, Strategy] = {
    "none": none,
    "original": original,
    "query2doc": query2doc,
    "prompting": prompting,
    "reflexion": reflexion,
    "serts": serts,
}


@dataclass(slots=True, eq=False)
class Node:
    """A tried plan with feedback and parent; ``total`` is a sum of scores, each 0 to 1."""

    plan: planning.SourcePlan
    score: int
    suggestion: str
    parent: Node | None
    visits: int = 1
    total: float = 0.0
    children: list[Node] = field(default_factory=list)

    def line(self) -> Iterator[Node]:
        """This node's parents up to the root."""
        node = self.parent
        while node:
            yield node
            node = node.parent

    def bound(self) -> float:
        """The upper confidence bound of its mean score."""
        above = self.parent.visits if self.parent else self.visits
        return self.total / self.visits + EXPLORE * sqrt(log(above) / self.visits)


def _selected(nodes: list[Node]) -> Node:
    """The node to expand: follow the best bounds to a node with room for a child."""
    node = nodes[0]
    while len(node.children) == SIBLINGS:
        node = max(node.children, key=Node.bound)
    return node


def _scored_plan(
    question: str, parent: Node | None, filters: SearchFilter, plan: Plan, sources: Sources
) -> Step[tuple[Node, Notes]]:
    """Plan with the feedback on the line, search and score."""
    line = [parent, *parent.line()] if parent else []
    feedback_given = tuple((node.plan, node.suggestion) for node in reversed(line))
    siblings = tuple((child.plan, child.suggestion) for child in parent.children) if parent else ()
    planned, notes = yield from attempt(
        planning.PLAN, planning.PlanInput(question, sources.names, feedback_given + siblings)
    )
    gathered = yield from gather(question, planned, sources, filters)
    helping = yield from share_helping(question, gathered, plan)
    task = gathered.feedback_input(question, helping, plan.passages)
    answered, last = yield from attempt(planning.FEEDBACK, task)
    feedback: planning.Feedback = answered
    node = Node(planned, feedback.score, feedback.suggestion, parent, total=feedback.score / planning.BEST)
    return node, notes + last


def _graph(question: str, sources: Sources) -> Step[tuple[tuple[tuple[str, str], ...], Notes]]:
    if planning.GRAPH not in sources.names:
        return (), ()
    terms, notes = yield from attempt(planning.GRAPH_TERMS, QuestionInput(question))
    return tuple((term, question) for term in terms), notes
