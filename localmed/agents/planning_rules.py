"""Source planning without a model: the question and its keywords go to every source there is."""

from __future__ import annotations

from collections.abc import Callable

from localmed.agents.asking import Keywords, KeywordsInput, QuestionInput
from localmed.agents.planning import (
    BEST,
    FEEDBACK,
    GRAPH_TERMS,
    PLAN,
    PSEUDO_DOCUMENT,
    TERMS,
    Feedback,
    FoundInput,
    PlanInput,
    PseudoInput,
)
from localmed.agents.roles import Rules
from localmed.agents.source_plan import GRAPH, QUERY_CHARACTERS, SOURCES, SourcePlan


def rules(keywords: Callable[[KeywordsInput], Keywords]) -> Rules:
    """The roles of planning; ``keywords`` is what names a question's keywords."""

    def terms(task: QuestionInput) -> tuple[str, ...]:
        return keywords(KeywordsInput(task.question, TERMS)).words[:TERMS]

    def plan(task: PlanInput) -> SourcePlan:
        named = terms(task)
        question = task.question[:QUERY_CHARACTERS]
        queries = tuple(dict.fromkeys((question, " ".join(named)))) if named else (question,)
        chosen = {source: queries for source in SOURCES if source in task.sources}
        pairs = tuple((term, question) for term in named) if GRAPH in task.sources else ()
        return SourcePlan(**chosen, graph=pairs)

    return {
        PLAN.name: plan,
        GRAPH_TERMS.name: terms,
        PSEUDO_DOCUMENT.name: pseudo_document,
        FEEDBACK.name: feedback,
    }


def pseudo_document(task: PseudoInput) -> str:
    """Without a model nothing is made up: the question stands for itself."""
    return task.question


def feedback(task: FoundInput) -> Feedback:
    """The score is the relevance of the best passage; rules have nothing to suggest."""
    return Feedback(round(BEST * task.probability))
