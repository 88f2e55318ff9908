"""Source plans (Omni-RAG, "source planning"): which queries go to which source, and the JSON that they are written in.

::

    {"book": ["query", "query"], "guideline": [], "graph": [{"term": "heart failure", "query": "signs"}]}

The paper writes tags (``<book> query ; query </book>``). A schema can hold a model to JSON on every server, and a small
model that wrote tags by itself wrote none that could be read. Beside the paper's sources there are ours, ``leaflet``
and ``local``. Every source that there is has its list, of up to three queries; a list may be empty, not all of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from localmed.answering.evidence import object_of
from localmed.domain import Kind
from localmed.domain.errors import Rejected

QUERIES = 3  # of one source at most (Omni-RAG, Prompt E.2)
QUERY_CHARACTERS = 160  # of a query that a planner writes: a question as it is asked fits
QUESTION_CHARACTERS = 300  # of a question that is searched as it is
TERM_CHARACTERS = 80
SOURCES = {
    "book": Kind.BOOK,
    "guideline": Kind.GUIDELINE,
    "research": Kind.LITERATURE,
    "wiki": Kind.WIKI,
    "leaflet": Kind.LEAFLET,
    "local": Kind.LOCAL,
}
GRAPH = "graph"
_Query = TypeVar("_Query", str, tuple[str, str])  # of a text, or a term and a query of the graph


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The queries of each source that is read as text, and (term, query) of the concept graph."""

    book: tuple[str, ...] = ()
    guideline: tuple[str, ...] = ()
    research: tuple[str, ...] = ()
    wiki: tuple[str, ...] = ()
    graph: tuple[tuple[str, str], ...] = ()
    leaflet: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    def queries(self, source: str) -> tuple[str, ...]:
        """Those of a source of ``SOURCES``."""
        queries: tuple[str, ...] = getattr(self, source)
        return queries

    @property
    def empty(self) -> bool:
        """Whether nothing is to be searched."""
        return not (self.graph or any(self.queries(source) for source in SOURCES))


def schema(sources: Sequence[str]) -> Mapping[str, Any]:
    """The schema of a plan that asks ``sources`` and no other."""
    query = {"type": "string", "minLength": 2, "maxLength": QUERY_CHARACTERS}
    pair = object_of({"term": {"type": "string", "minLength": 2, "maxLength": TERM_CHARACTERS}, "query": query})
    items = {name: pair if name == GRAPH else query for name in _ordered(sources)}
    return object_of({name: {"type": "array", "items": item, "maxItems": QUERIES} for name, item in items.items()})


def read(value: Mapping[str, Any]) -> SourcePlan:
    """The plan of an object of ``schema``; raise ``Rejected`` for one that asks nothing."""
    named = {source: _distinct(map(_line, value.get(source, ()))) for source in SOURCES}
    pairs = ((_line(pair["term"]), _line(pair["query"])) for pair in value.get(GRAPH, ()))
    plan = SourcePlan(**named, graph=_distinct(pair for pair in pairs if all(pair)))
    if plan.empty:
        raise Rejected("agents.plan_empty")
    return plan


def with_question(plan: SourcePlan, question: str) -> SourcePlan:
    """``plan`` with the question itself before the queries of each source that it asks.

    What a model writes is read whatever it is worth: queries of a small one found nothing where the question did.
    """
    first = question[:QUESTION_CHARACTERS]
    lists: dict[str, Any] = {
        source: _distinct((first, *queries)) for source in SOURCES if (queries := plan.queries(source))
    }
    return replace(plan, **lists)


def written(plan: SourcePlan, sources: Sequence[str] = ()) -> str:
    """``plan`` in JSON, with an empty list for those of ``sources`` that it does not ask."""
    lists: dict[str, Any] = {name: getattr(plan, name) for name in _ordered((*SOURCES, GRAPH))}
    lists = {name: queries for name, queries in lists.items() if queries or name in sources}
    if GRAPH in lists:
        lists[GRAPH] = [{"term": term, "query": query} for term, query in plan.graph]
    return json.dumps(lists, ensure_ascii=False)


def holds(query: str) -> bool:
    """Whether a planner can write ``query`` as it is."""
    return 2 <= len(query) <= QUERY_CHARACTERS and query == _line(query)


def _ordered(sources: Collection[str]) -> list[str]:
    return [name for name in (*SOURCES, GRAPH) if name in sources]


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _distinct(values: Iterable[_Query]) -> tuple[_Query, ...]:
    """Each of ``values`` once, without empty ones."""
    return tuple(dict.fromkeys(value for value in values if value))
