"""Source planning without a model: the question and its keywords go to every source there is."""

from __future__ import annotations

from collections.abc import Callable

from localmed.answering import planning
from localmed.answering.asking import Keywords, KeywordsInput, QuestionInput
from localmed.answering.roles import Rules
from localmed.answering.source_plan import GRAPH, QUESTION_CHARACTERS, SOURCES, SourcePlan


def rules(keywords: Callable[[KeywordsInput], Keywords]) -> Rules:
    """The roles of planning; ``keywords`` is what names a question's keywords."""

    def terms(task: QuestionInput) -> tuple[str, ...]:
        return keywords(KeywordsInput(task.question, planning.TERMS)).words[: planning.TERMS]

    def plan(task: planning.PlanInput) -> SourcePlan:
        named = terms(task)
        question = task.question[:QUESTION_CHARACTERS]
        queries = tuple(dict.fromkeys((question, " ".join(named)))) if named else (question,)
        chosen = {source: queries for source in SOURCES if source in task.sources}
        pairs = tuple((term, question) for term in named) if GRAPH in task.sources else ()
        return SourcePlan(**chosen, graph=pairs)

    return {
        planning.PLAN.name: plan,
        planning.GRAPH_TERMS.name: terms,
        planning.PSEUDO_DOCUMENT.name: pseudo_document,
        planning.FEEDBACK.name: feedback,
    }


def pseudo_document(task: planning.PseudoInput) -> str:
    """Without a model nothing is made up: the question stands for itself."""
    return task.question


def feedback(task: planning.FoundInput) -> planning.Feedback:
    """The score is the relevance of the best passage; rules have nothing to suggest."""
    return planning.Feedback(round(planning.BEST * task.probability))
