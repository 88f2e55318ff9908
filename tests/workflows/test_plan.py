"""Source planning: what each strategy asks for, on scripted results; and that an answer comes of all sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localmed.agents import asking, planning
from localmed.agents.asking import RELEVANCE, Draft, Keywords, Relevance
from localmed.agents.chat import ChatRoles
from localmed.agents.planning import FEEDBACK, PLAN, Feedback, FoundInput, PlanInput
from localmed.agents.planning_rules import rules
from localmed.agents.role_table import role_table
from localmed.agents.source_plan import SourcePlan, written
from localmed.domain import Answer, AnswerStatus, Hit, SearchFilter, message
from localmed.errors import Rejected
from localmed.hooks import Hooks
from localmed.library.graph import Concept, Name
from localmed.library.graph import Source as GraphSource
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.workflows.abstaining import NOT_ENOUGH
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Request
from localmed.workflows.plan import plan_sources
from localmed.workflows.recording import Recording, replay
from localmed.workflows.strategies import PLANS, STRATEGIES, Gathered, Sources
from tests.fakes import Steps, services
from tests.scripted import ScriptedChat
from tests.values import PROVENANCE, evidence, hit, quotation

QUESTION = "How is asthma treated?"
SOURCES = Sources(book=("books",), guideline=("nice", "who"), research=("pubmed",))
PLANNED = Plan((Tier(("nice",)),), 4, roles=frozenset({role.name for role in (*asking.ROLES, *planning.ROLES)}))
SOURCE = evidence("1", "Asthma is treated with inhaled steroids.", "Asthma")
RULES = {
    "relevance": lambda task: Relevance((0.8,) * len(task.hits), 0.5),
    "cited_answer": lambda task: Draft((quotation(task.evidence[0], 0, len(task.evidence[0].passage.text)),)),
    **rules(lambda task: Keywords(("asthma", "treated")[: task.most])),
}
EVERY = {role.name: role for role in (*asking.ROLES, *planning.ROLES) if role.name in RULES}


def parts_of(answer: Answer) -> tuple[Any, ...]:
    """Its parts, which are of one type here."""
    return answer.parts


class Finder:
    """Finds one passage of its own for each collection, and keeps what it was asked."""

    def __init__(self) -> None:
        self.searches: list[tuple[str, tuple[str, ...], int]] = []

    def search(self, question: str, filters: SearchFilter, limit: int, keywords: Any = ()) -> Found:
        self.searches.append((question, filters.collections, limit))
        return Found(tuple(hit(f"Asthma in {name}.", name) for name in filters.collections), True, "en", "reader")


def drive(strategy: str, **by: Callable[[Any], Any]) -> tuple[Answer, Finder, list[Request]]:
    finder, requests = Finder(), []
    served = role_table(EVERY, "rules", {}, {**RULES, **by}, None)

    def mint(hits: tuple[Hit, ...], first: int) -> Any:
        return tuple(replace(SOURCE, marker=str(first + n)) for n in range(len(hits)))

    recording = Recording()

    def step(request: Request, result: Any) -> None:
        requests.append(request)
        recording.step(request, result)

    arguments = (QUESTION, SearchFilter(), PLANNED, SOURCES, strategy, PROVENANCE)
    recording.begin("plan", arguments)
    driver = Driver(services(served, search=finder.search, cite=mint), Hooks(recorder=Steps(step)))
    answer = driver.run(plan_sources(*arguments))
    assert replay(recording.finish(answer)) == (answer, True), "every flow replays"
    return answer, finder, requests


def test_the_planner_is_asked_once_and_each_source_its_queries() -> None:
    answer, finder, requests = drive("prompting")
    assert [request.name for request in requests].count("plan") == 1
    assert finder.searches == [
        (query, names, 10)
        for names in (("books",), ("nice", "who"), ("pubmed",))
        for query in (QUESTION, "asthma treated")
    ]
    assert answer.status is AnswerStatus.ANSWERED
    assert answer.workflow == "plan"
    assert answer.searched == ("books", "nice", "who", "pubmed")
    assert {part.source for part in parts_of(answer)} == {"book", "guideline", "research"}
    missing = tuple(message(f"plan.source.{name}") for name in ("wiki", "leaflet", "local", "graph"))
    assert message("plan.not_there", names=missing) in answer.notes


ONTOLOGY = GraphSource("d", "doid", "Ontology", "2025")
ASTHMA = Concept("DOID:1", "asthma", "doid", "A disease of the airways.", ONTOLOGY)
ASTHMA_CARD = Card(ASTHMA, Name("asthma", "en", "name"), (), (), (), (), 0, "kind")


def defining(question: str, chat: frozenset[str] = frozenset(), relevance: float = 0.8) -> tuple[Answer, list[str]]:
    """The answer with a graph that defines asthma, and the texts that evidence was made of."""
    cited: list[str] = []

    def judged(task: Any) -> Relevance:
        return Relevance((relevance,) * len(task.hits), 0.5)

    def mint(hits: tuple[Hit, ...], first: int) -> Any:
        cited.extend(hit.passage.text for hit in hits)
        return tuple(replace(SOURCE, marker=str(first + n), passage=hit.passage) for n, hit in enumerate(hits))

    served = role_table(EVERY, "rules", {}, {**RULES, RELEVANCE.name: judged}, None)
    with_graph, plan = replace(SOURCES, graph=True), replace(PLANNED, chat=chat)
    graph_services = services(served, search=Finder().search, cite=mint, look_up=lambda *_: ASTHMA_CARD)
    answer = Driver(graph_services).run(
        plan_sources(question, SearchFilter(), plan, with_graph, "original", PROVENANCE)
    )
    return answer, cited


def test_definitions_of_the_graph_are_evidence_where_one_is_asked_for_or_a_model_writes() -> None:
    definition = "asthma: A disease of the airways."
    assert definition in defining("What is asthma?")[1]
    assert definition not in defining(QUESTION)[1], "rules would quote it as an answer to anything"
    assert definition in defining(QUESTION, frozenset({"cited_answer"}))[1]


def test_a_definition_alone_answers_who_asks_for_one() -> None:
    answer, cited = defining("What is asthma?", relevance=0.1)
    assert cited == ["asthma: A disease of the airways."]
    assert [citation.passage_id for one in answer.statements for citation in one.citations] == [
        answer.evidence[0].passage.id
    ]
    assert answer.status is AnswerStatus.ANSWERED
    assert defining(QUESTION, frozenset({"cited_answer"}), relevance=0.1)[0].status is AnswerStatus.ABSTAINED


def test_no_retrieval_is_no_answer() -> None:
    answer, finder, _ = drive("none")
    assert (answer.status, finder.searches) == (AnswerStatus.ABSTAINED, [])
    assert message("plan.no_sources") in answer.notes


def test_the_original_question_goes_everywhere() -> None:
    _, finder, requests = drive("original")
    assert {question for question, _, _ in finder.searches} == {QUESTION}
    assert "plan" not in [request.name for request in requests]


def test_a_pseudo_document_is_searched_beside_the_question() -> None:
    _, finder, _ = drive("query2doc", pseudo_document=lambda task: f"text of a {task.source}")
    assert [question for question, _, _ in finder.searches] == [
        f"{QUESTION} text of a {source}" for source in ("book", "guideline", "research")
    ]


def plans(*scores: int) -> dict[str, Callable[[Any], Any]]:
    """Another plan each time, with these scores."""
    made = iter(range(100))
    waiting = iter(scores)
    return {
        "plan": lambda task: SourcePlan(book=(f"query {next(made)} after {len(task.feedback)}",)),
        "plan_feedback": lambda task: Feedback(next(waiting), "ask something else"),
    }


@pytest.mark.parametrize("strategy", ["reflexion", "serts"])
def test_the_best_of_several_plans_is_taken(strategy: str) -> None:
    answer, _, requests = drive(strategy, **plans(1, 4, 2, 5, 0))
    assert [request.name for request in requests].count("plan") == 4, "it stops at the best score"
    (part,) = [part for part in parts_of(answer) if part.source == "book"]
    assert part.queries[0].startswith("query 3 after")
    _, _, requests = drive(strategy, **plans(*[2] * 20))
    assert [request.name for request in requests].count("plan") == PLANS


def test_each_plan_is_made_with_what_was_said_of_those_before() -> None:
    _, _, requests = drive("reflexion", **plans(1, 2, 5))
    tasks = [request.task for request in requests if request.name == "plan"]  # type: ignore[union-attr]
    assert [len(task.feedback) for task in tasks] == [0, 1, 2]
    assert tasks[2].feedback[1][1] == "ask something else"


def test_the_tree_gives_a_node_two_children_before_it_grows_deeper() -> None:
    _, _, requests = drive("serts", **plans(1, 1, 1, 3, 1, 5))
    tasks = [request.task for request in requests if request.name == "plan"]  # type: ignore[union-attr]
    assert [len(task.feedback) for task in tasks[:3]] == [0, 1, 2], "the root, its first child, the sibling knows both"
    assert len(tasks[3].feedback) == 2, "a child of a child: the root and its parent"


def test_a_planner_that_repeats_itself_is_not_asked_again() -> None:
    for strategy in ("reflexion", "serts"):
        _, _, requests = drive(strategy, plan_feedback=lambda _: Feedback(1))
        assert [request.name for request in requests].count("plan") == 2


def test_nothing_relevant() -> None:
    answer, _, _ = drive("prompting", relevance=lambda task: Relevance((0.1,) * len(task.hits), 0.5))
    assert answer.status is AnswerStatus.ABSTAINED
    assert NOT_ENOUGH in answer.notes


def test_sources_take_turns() -> None:
    a, b, c = (hit(f"{name}.", name) for name in "abc")
    gathered = Gathered(SourcePlan(), (("book", (a, b)), ("guideline", (c, a))))
    assert gathered.best(3) == (a, c, b)


# --- on a chat model
# ---------------------------------------------------------------------------------------------------


def on_model(role: Any, task: Any, *script: Any) -> Any:
    return ChatRoles(ScriptedChat(script)).perform(role, task)


GIVEN = PlanInput(QUESTION, ("book", "graph"))
GOOD = SourcePlan(book=("asthma treatment",), graph=(("asthma", "treatment"),))
ASKED = replace(GOOD, book=(QUESTION, "asthma treatment"))


def test_a_model_is_held_to_the_schema_of_the_sources_there_are() -> None:
    assert on_model(PLAN, GIVEN, written(GOOD)) == ASKED
    assert on_model(PLAN, GIVEN, "Sure! Here is a plan.", written(GOOD)) == ASKED
    with pytest.raises(Rejected):
        on_model(PLAN, GIVEN, "Sure!", "Sure!")


def test_a_source_that_is_asked_is_asked_the_question_too() -> None:
    """Queries of a model may find nothing; a source that the plan leaves out stays out."""
    task = PlanInput(QUESTION, ("book", "guideline", "graph"))
    poor = SourcePlan(book=("clinical guidelines", "query"))
    assert on_model(PLAN, task, written(poor, task.sources)).book == (QUESTION, "clinical guidelines", "query")
    assert not on_model(PLAN, task, written(poor, task.sources)).guideline
    repeated = SourcePlan(book=(QUESTION,))
    assert on_model(PLAN, task, written(repeated, task.sources)) == repeated, "no query twice"


def test_a_plan_that_asks_nothing_is_asked_for_once_more() -> None:
    nothing = written(SourcePlan(), GIVEN.sources)
    assert on_model(PLAN, GIVEN, nothing, written(GOOD)) == ASKED
    with pytest.raises(Rejected):
        on_model(PLAN, GIVEN, nothing, nothing)


def test_a_source_that_is_not_there_is_not_planned_for() -> None:
    with pytest.raises(Rejected):
        on_model(PLAN, GIVEN, *[written(replace(GOOD, wiki=("asthma",)))] * 2)


def test_the_other_roles_on_a_model() -> None:
    task = FoundInput(QUESTION, GOOD, ("Asthma is treated.",))
    assert on_model(FEEDBACK, task, {"score": 4, "suggestion": "Ask guidelines."}) == Feedback(4, "Ask guidelines.")
    with pytest.raises(Rejected):
        on_model(FEEDBACK, task, *[{"score": 9, "suggestion": ""}] * 2)
    question = asking.QuestionInput(QUESTION)
    assert on_model(planning.GRAPH_TERMS, question, {"terms": ["asthma", "asthma"]}) == ("asthma",)


def test_every_strategy_of_the_paper_is_there() -> None:
    assert list(STRATEGIES) == ["none", "original", "query2doc", "prompting", "reflexion", "serts"]
