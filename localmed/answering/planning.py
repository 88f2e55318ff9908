"""The roles of source planning (Omni-RAG): plan queries for each source, score the results, suggest others.

A plan lists the queries of each source::

    {"book": ["query", "query"], "guideline": [], "graph": [{"term": "heart failure", "query": "signs"}]}

The paper uses tags (``<book> query ; query </book>``). Every server can enforce JSON by a schema, and a small model
wrote no readable tags. ``leaflet`` and ``local`` are additions to the paper's sources. Each available source has a list
of up to three queries; not all lists may be empty. A tuned model can be the planner. Without a model the question goes
to every source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Role, Rules, Writing
from localmed.domain import Kind
from localmed.domain.errors import Rejected

QUERIES = 3  # of one source at most (Omni-RAG, Prompt E.2)
QUERY_CHARACTERS = 160  # of a planner's query: a whole question fits
QUESTION_CHARACTERS = 300  # of a question used as a query
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
_Query = TypeVar("_Query", str, tuple[str, str])  # a query of text, or a term and query of the graph
TERMS = 3  # of a question looked up in the graph (Omni-RAG, Prompt E.5: fewer than four)
PLAN_TOKENS = 1000  # of a plan with full lists
BEST = 5  # the highest score of results
PSEUDO_CHARACTERS = 1200  # of a pseudo-document: about 200 words

DESCRIBED = {
    "en": {
        "book": "textbooks and teaching material",
        "guideline": "clinical guidelines",
        "research": "research articles",
        "wiki": "general encyclopaedia articles",
        "leaflet": "leaflets for patients on medicines and illnesses",
        "local": "the hospital's own pages: departments, telephone numbers, local rules",
        GRAPH: "definitions of medical terms and their relations",
    },
    "zh": {
        "book": "教科书和教学资料",
        "guideline": "临床指南",
        "research": "研究文献",
        "wiki": "一般百科条目",
        "leaflet": "面向患者的药品与疾病说明",
        "local": "本院资料：科室、电话、院内规定",
        GRAPH: "医学术语的定义及其关系",
    },
}


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The queries of each text source, and (term, query) pairs for the concept graph."""

    book: tuple[str, ...] = ()
    guideline: tuple[str, ...] = ()
    research: tuple[str, ...] = ()
    wiki: tuple[str, ...] = ()
    graph: tuple[tuple[str, str], ...] = ()
    leaflet: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    def queries(self, source: str) -> tuple[str, ...]:
        """The queries of a source of ``SOURCES``."""
        queries: tuple[str, ...] = getattr(self, source)
        return queries

    @property
    def empty(self) -> bool:
        """Whether there is no query."""
        return not (self.graph or any(self.queries(source) for source in SOURCES))


def plan_schema(sources: Sequence[str]) -> Mapping[str, Any]:
    """The schema of a plan for ``sources``."""
    query = {"type": "string", "minLength": 2, "maxLength": QUERY_CHARACTERS}
    pair = shown.object_of({"term": {"type": "string", "minLength": 2, "maxLength": TERM_CHARACTERS}, "query": query})
    items = {name: pair if name == GRAPH else query for name in _ordered(sources)}
    return shown.object_of(
        {name: {"type": "array", "items": item, "maxItems": QUERIES} for name, item in items.items()}
    )


def read_plan(value: Mapping[str, Any]) -> SourcePlan:
    """The plan of an object of ``plan_schema``; raise ``Rejected`` for one without queries."""
    named = {source: _distinct(map(_line, value.get(source, ()))) for source in SOURCES}
    pairs = ((_line(pair["term"]), _line(pair["query"])) for pair in value.get(GRAPH, ()))
    plan = SourcePlan(**named, graph=_distinct(pair for pair in pairs if all(pair)))
    if plan.empty:
        raise Rejected("agents.plan_empty")
    return plan


def with_question(plan: SourcePlan, question: str) -> SourcePlan:
    """``plan`` with the question as first query of each of its sources.

    A small model's queries found nothing where the question did.
    """
    first = question[:QUESTION_CHARACTERS]
    lists: dict[str, Any] = {
        source: _distinct((first, *queries)) for source in SOURCES if (queries := plan.queries(source))
    }
    return replace(plan, **lists)


def written(plan: SourcePlan, sources: Sequence[str] = ()) -> str:
    """``plan`` as JSON, with empty lists for unused ``sources``."""
    lists: dict[str, Any] = {name: getattr(plan, name) for name in _ordered((*SOURCES, GRAPH))}
    lists = {name: queries for name, queries in lists.items() if queries or name in sources}
    if GRAPH in lists:
        lists[GRAPH] = [{"term": term, "query": query} for term, query in plan.graph]
    return json.dumps(lists, ensure_ascii=False)


def is_query(query: str) -> bool:
    """Whether ``query`` has the form of a planner's query."""
    return 2 <= len(query) <= QUERY_CHARACTERS and query == _line(query)


def _ordered(sources: Collection[str]) -> list[str]:
    return [name for name in (*SOURCES, GRAPH) if name in sources]


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _distinct(values: Iterable[_Query]) -> tuple[_Query, ...]:
    """Each of ``values`` once, without empty ones."""
    return tuple(dict.fromkeys(value for value in values if value))


# --- the roles --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanInput(QuestionInput):
    """A question, the available sources, and (plan, suggestion) of earlier plans, oldest first.

    The result is a ``SourcePlan``.
    """

    sources: tuple[str, ...]
    feedback: tuple[tuple[SourcePlan, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PseudoInput(QuestionInput):
    """A request for a passage in the style of ``source`` (Query2Doc); the result is a ``str``."""

    source: str


@dataclass(frozen=True, slots=True)
class FoundInput(QuestionInput):
    """A plan's results, ``texts``, best first; the result is a ``Feedback``."""

    plan: SourcePlan
    texts: tuple[str, ...]
    probability: float = 0.0  # of the best passage to hold an answer, as the relevance role judged


@dataclass(frozen=True, slots=True)
class Feedback:
    """The score of results, 0 to ``BEST``, and a suggestion for other queries."""

    score: int
    suggestion: str = ""


def _sources(task: PlanInput) -> str:
    described = DESCRIBED[task.language]
    there = [source for source in (*SOURCES, GRAPH) if source in task.sources]
    lines = [f"{source}: {described[source]}" for source in there]
    earlier = [f"{written(plan)}\n{suggestion}" for plan, suggestion in task.feedback]
    return "\n\n".join((task.question, "\n".join(lines), *earlier))


def _terms(_: QuestionInput, value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(term.split()) for term in value["terms"]))[:TERMS]


def _feedback(task: FoundInput, value: Any) -> Feedback:
    suggestion = str(value["suggestion"]).strip()
    return Feedback(int(value["score"]), shown.in_language(suggestion, task.language) if suggestion else "")


# Omni-RAG, source planning.
PLAN = Role(
    "plan",
    "3",
    Writing(
        lambda task: plan_schema(task.sources),
        _sources,
        lambda task, value: with_question(read_plan(value), task.question),
        max_tokens=PLAN_TOKENS,
    ),
)
# Omni-RAG, term extraction for the graph.
GRAPH_TERMS = Role(
    "graph_terms",
    "2",
    Writing(lambda _: shown.texts_schema("terms", TERMS, 100), lambda task: task.question, _terms, max_tokens=150),
)
# Omni-RAG, baseline Query2Doc: a passage to search for instead of the question.
PSEUDO_DOCUMENT = Role(
    "pseudo_document",
    "2",
    Writing(
        lambda _: shown.object_of({"passage": {"type": "string", "minLength": 1, "maxLength": PSEUDO_CHARACTERS}}),
        lambda task: f"{task.question}\n{DESCRIBED[task.language][task.source]}",
        lambda task, value: shown.in_language(value["passage"].strip(), task.language),
        max_tokens=400,
    ),
)
# Omni-RAG, baselines Reflexion and SeRTS.
FEEDBACK = Role(
    "plan_feedback",
    "2",
    Writing(
        lambda _: shown.object_of(
            {"score": {"enum": list(range(BEST + 1))}, "suggestion": {"type": "string", "maxLength": 600}}
        ),
        lambda task: f"{task.question}\n{written(task.plan)}",
        _feedback,
        lambda task: tuple(shown.quoted("found", text, task.language) for text in task.texts),
        max_tokens=250,
    ),
)
ROLES = (PLAN, GRAPH_TERMS, PSEUDO_DOCUMENT, FEEDBACK)


def rules(terms: Callable[[str], Sequence[str]]) -> Rules:
    """The rules without a model; ``terms`` gives the terms of a question that the concept graph has."""

    def named(task: QuestionInput) -> tuple[str, ...]:
        return tuple(terms(task.question)[:TERMS])

    def plan(task: PlanInput) -> SourcePlan:
        question = task.question[:QUESTION_CHARACTERS]
        pairs = tuple((term, question) for term in named(task)) if GRAPH in task.sources else ()
        return SourcePlan(**{source: (question,) for source in SOURCES if source in task.sources}, graph=pairs)

    return {
        PLAN.name: plan,
        GRAPH_TERMS.name: named,
        PSEUDO_DOCUMENT.name: lambda task: task.question,  # nothing is invented
        FEEDBACK.name: lambda task: Feedback(round(BEST * task.probability)),
    }
