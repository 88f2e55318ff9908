"""Source plans (Omni-RAG, "source planning"): which queries go to which source, and the tag format they are written in.

::

    <book> query ; query </book>
    <guideline> query </guideline>
    <research> </research>
    <wiki> </wiki>
    <graph> term , query ; term , query </graph>

Beside the paper's sources there are ours, ``leaflet`` and ``local``. Every source has its tag, once at most, in any
order; up to three queries between `` ; ``; a tag may be empty or left out. In the graph's tag a `` , `` with blanks
around it parts term and query, so that a term may hold a comma ("Anemia, Sickle Cell"). Read strictly, but for a fence:
what a planner writes is taken whole or not at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from localmed.domain import Kind
from localmed.errors import Rejected

QUERIES = 3  # of one source at most (Omni-RAG, Prompt E.2)
QUERY_CHARACTERS = 300
SOURCES = {
    "book": Kind.BOOK,
    "guideline": Kind.GUIDELINE,
    "research": Kind.LITERATURE,
    "wiki": Kind.WIKI,
    "leaflet": Kind.LEAFLET,
    "local": Kind.LOCAL,
}
GRAPH = "graph"

_NAMES = "|".join((*SOURCES, GRAPH))
_TAG = re.compile(rf"\s*<({_NAMES})>(.*?)</\1>\s*", re.DOTALL)
_FENCE = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)
_MARK = re.compile(rf"</?({_NAMES})>")


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


def parse(text: str) -> SourcePlan:
    """The plan written in ``text``; raise ``Rejected`` for anything but tags of sources and their queries."""
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1]
    texts: dict[str, str] = {}
    at = 0
    while match := _TAG.match(text, at):
        if match[1] in texts or _MARK.search(match[2]):
            raise Rejected("agents.plan_tag_twice", tag=match[1])
        texts[match[1]] = match[2]
        at = match.end()
    if at < len(text) or not texts:
        raise Rejected("agents.plan_tags")
    named = {source: _queries(texts.get(source, ""), source) for source in SOURCES}
    return SourcePlan(**named, graph=tuple(_pair(query) for query in _queries(texts.get(GRAPH, ""), GRAPH)))


def written(plan: SourcePlan) -> str:
    """``plan`` in the tag format, without the tags of sources that it does not ask; ``parse`` reads it back."""
    tags = {source: " ; ".join(plan.queries(source)) for source in SOURCES}
    tags[GRAPH] = " ; ".join(f"{term} , {query}" for term, query in plan.graph)
    lines = [f"<{source}> {queries} </{source}>" for source, queries in tags.items() if queries]
    return "\n".join(lines or [f"<{GRAPH}></{GRAPH}>"])


def _queries(text: str, source: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    queries = tuple(" ".join(query.split()) for query in re.split(r"\s;\s", text))
    if len(queries) > QUERIES:
        raise Rejected("agents.plan_queries", source=source, most=QUERIES)
    if any(not query or ";" in (query[0], query[-1]) or len(query) > QUERY_CHARACTERS for query in queries):
        raise Rejected("agents.plan_query", source=source)
    return tuple(dict.fromkeys(queries))


def _pair(text: str) -> tuple[str, str]:
    parts = text.split(" , ")
    if len(parts) != 2 or not all(parts):
        raise Rejected("agents.plan_pair")
    return parts[0], parts[1]
