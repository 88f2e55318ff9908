"""The roles of source planning (Omni-RAG): which source is asked what, how good the result is, and whom to ask again.

The planner writes the paper's tag format, so that a model tuned for it can take the role's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from localmed.agents import evidence as shown
from localmed.agents.asking import QuestionInput
from localmed.agents.roles import Role, Writing
from localmed.agents.source_plan import GRAPH, QUERIES, SOURCES, SourcePlan, parse, written
from localmed.errors import Rejected

TERMS = 3  # looked up in the graph for a question as it is (Omni-RAG, Prompt E.5: fewer than four)
BEST = 5  # the highest score of what was found
PSEUDO_CHARACTERS = 1200  # of a pseudo-document: about 200 words

DESCRIBED = {
    "en": {
        "book": "textbooks and teaching material",
        "guideline": "clinical guidelines",
        "research": "research articles",
        "wiki": "general encyclopaedia articles",
        GRAPH: "definitions of medical terms and their relations",
    },
    "zh": {
        "book": "教科书和教学资料",
        "guideline": "临床指南",
        "research": "研究文献",
        "wiki": "一般百科条目",
        GRAPH: "医学术语的定义及其关系",
    },
}
_FORMAT = written(
    SourcePlan(("...", "..."), ("...",), ("...",), (), (("term", "query"), ("term", "query")))
)  # what the model is shown of the format


@dataclass(frozen=True, slots=True)
class PlanInput(QuestionInput):
    """A question, the sources there are, and what was said of earlier plans (plan, suggestion), oldest first.

    The result is a ``SourcePlan``.
    """

    sources: tuple[str, ...]
    feedback: tuple[tuple[SourcePlan, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PseudoInput(QuestionInput):
    """A passage is wanted as ``source`` might hold it (Query2Doc). The result is a ``str``."""

    source: str


@dataclass(frozen=True, slots=True)
class FoundInput(QuestionInput):
    """What a plan found: ``texts``, best first. The result is a ``Feedback``."""

    plan: SourcePlan
    texts: tuple[str, ...]
    probability: float = 0.0  # of the best passage to hold an answer, as the relevance role judged


@dataclass(frozen=True, slots=True)
class Feedback:
    """How good what was found is, 0 to ``BEST``, and what to ask instead."""

    score: int
    suggestion: str = ""


def _sources(task: PlanInput) -> str:
    described = DESCRIBED[task.language]
    lines = [f"{source}: {described[source]}" for source in (*SOURCES, GRAPH) if source in task.sources]
    earlier = [f"{written(plan)}\n{suggestion}" for plan, suggestion in task.feedback]
    return "\n\n".join((task.question, "\n".join(lines), _FORMAT, *earlier))


def _plan(task: PlanInput, text: Any) -> SourcePlan:
    plan = parse(str(text))
    absent = [source for source in SOURCES if source not in task.sources and plan.queries(source)]
    if absent or (plan.graph and GRAPH not in task.sources):
        raise Rejected("agents.unknown_plan_source")
    return plan


def _terms(_: QuestionInput, value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(term.split()) for term in value["terms"]))[:TERMS]


def _feedback(task: FoundInput, value: Any) -> Feedback:
    suggestion = str(value["suggestion"]).strip()
    return Feedback(int(value["score"]), shown.in_language(suggestion, task.language) if suggestion else "")


def _texts(task: FoundInput) -> tuple[str, ...]:
    return tuple(shown.between_marks("found", text) for text in task.texts)


PLAN = Role(
    "plan",
    "Which queries go to which source",
    "1",
    "Omni-RAG, source planning",
    Writing(
        {
            "en": "Plan the search for what is needed to answer a medical question. Write, for each source, up to "
            f"{QUERIES} different queries that fit what that source holds; leave the tag of a source empty if it is "
            f"not "
            "needed or not listed. Follow the format exactly: queries are parted by ' ; ', in the graph's tag a term "
            "and "
            "what is asked of it by ' , '. Where earlier plans and suggestions are given, write a better plan. Reply "
            "with the five tags and nothing else.",
            "zh": f"请为回答一个医学问题制订检索计划：为每个来源写出最多 {QUERIES} 条适合该来源内容且互不重复的检索式；"
            "不需要或未列出的来源，其标签留空。严格遵守格式：检索式之间用“ ; ”分隔，graph 标签内术语与所问内容之间用“ "
            ", ”分隔。"
            "如附有先前的计划和建议，请写出更好的计划。只输出五个标签，不要输出其他内容。",
        },
        lambda _: None,
        _sources,
        _plan,
        max_tokens=400,
    ),
)
GRAPH_TERMS = Role(
    "graph_terms",
    "The question's terms to look up in the concept graph",
    "1",
    "Omni-RAG, term extraction for the graph",
    Writing(
        {
            "en": f"Name at most {TERMS} medical terms of the question, as it writes them, the most important first.",
            "zh": f"请按原文列出问题中最多 {TERMS} 个医学术语，最重要的在前。",
        },
        lambda _: shown.texts_schema("terms", TERMS, 100),
        lambda task: task.question,
        _terms,
        max_tokens=150,
    ),
)
PSEUDO_DOCUMENT = Role(
    "pseudo_document",
    "A passage as a source might hold it, searched in the question's place",
    "1",
    "Omni-RAG, baseline Query2Doc",
    Writing(
        {
            "en": "Write, in at most 150 words, a passage that answers the question as the named source might put it. "
            "It "
            "is used for searching only.",
            "zh": "请按所列来源可能的写法，用最多二百字写一段回答该问题的文字，仅用于检索。",
        },
        lambda _: shown.object_of({"passage": {"type": "string", "minLength": 1, "maxLength": PSEUDO_CHARACTERS}}),
        lambda task: f"{task.question}\n{DESCRIBED[task.language][task.source]}",
        lambda task, value: shown.in_language(value["passage"].strip(), task.language),
        max_tokens=400,
    ),
)
FEEDBACK = Role(
    "plan_feedback",
    "How good what a plan found is, and what to ask instead",
    "1",
    "Omni-RAG, baselines Reflexion and SeRTS",
    Writing(
        {
            "en": f"Judge what a search found for a medical question, from 0 to {BEST}: one point each if it is about "
            f"the "
            "subject, holds part of the answer, holds the main part, comes from a trustworthy source, and answers "
            "fully. Suggest, in at most 60 words, better queries and which sources to add or leave out. "
            f"{shown.QUOTED['en']}",
            "zh": f"请评价检索结果对该医学问题的价值，0 至 {BEST} 分：主题相关、含部分答案、含主要答案、来源可靠、"
            f"完整回答，各一分。"
            f"并用最多八十字建议更好的检索式，以及应增减哪些来源。{shown.QUOTED['zh']}",
        },
        lambda _: shown.object_of(
            {
                "score": {"enum": list(range(BEST + 1))},
                "suggestion": {"type": "string", "maxLength": 600},
            }
        ),
        lambda task: f"{task.question}\n{written(task.plan)}",
        _feedback,
        _texts,
        max_tokens=250,
    ),
)
ROLES = (PLAN, GRAPH_TERMS, PSEUDO_DOCUMENT, FEEDBACK)
