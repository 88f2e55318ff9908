"""Source planning: what each strategy asks for, on scripted results; and that an answer comes of all sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localmed.answering import asking, planning
from localmed.answering.asking import RELEVANCE
from localmed.answering.chat import ChatRoles
from localmed.answering.check import CHECK
from localmed.answering.planning import FEEDBACK, PLAN, Feedback, FoundInput, PlanInput, SourcePlan, written
from localmed.answering.role_table import role_table
from localmed.answering.write import WRITE, Covers, Drafted, Written
from localmed.domain import Answer, AnswerStatus, Evidence, Hit, SearchFilter, Support, message
from localmed.domain.errors import Rejected
from localmed.domain.findings import Found
from localmed.domain.parts import ConceptPart, Definition
from localmed.library.graph import Concept, Name
from localmed.library.graph import Source as GraphSource
from localmed.retrieval.concepts import Card
from localmed.retrieval.tiers import Tier
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Request
from localmed.workflows.strategies import PLANS, Sources
from tests.scripted import ScriptedChat
from tests.values import PROVENANCE, evidence, hit
from tests.workflows.driving import Model, Says, driven

QUESTION = "How is asthma treated?"
SOURCES = Sources(book=("books",), guideline=("nice", "who"), research=("pubmed",))
PLANNED = Plan((Tier(("nice",)),), 4, roles=frozenset({role.name for role in planning.ROLES}))
SOURCE = evidence("1", "Asthma is treated with inhaled steroids.", "Asthma")
RULES = planning.rules(lambda _: ("asthma",))
EVERY = {role.name: role for role in (*planning.ROLES, RELEVANCE, WRITE, CHECK)}


def parts_of(answer: Answer) -> tuple[Any, ...]:
    """Its parts, which are of one type here."""
    return answer.parts


class Finder:
    """Finds one passage of its own for each collection, and keeps what it was asked."""

    def __init__(self, found: bool = True) -> None:
        self.searches: list[tuple[str, tuple[str, ...], int]] = []
        self._found = found

    def search(self, question: str, filters: SearchFilter, limit: int) -> Found:
        self.searches.append((question, filters.collections, limit))
        hits = tuple(hit(f"Asthma in {name}.", name) for name in filters.collections)
        return Found(hits if self._found else (), True, "en", "reader")


def mint(hits: tuple[Hit, ...], first: int) -> tuple[Evidence, ...]:
    return tuple(replace(SOURCE, marker=str(first + n), passage=hit.passage) for n, hit in enumerate(hits))


def drive(
    strategy: str,
    *,
    sources: Sources = SOURCES,
    finder: Finder | None = None,
    by: Says | None = None,
    chat: Says | None = None,
) -> tuple[Answer, Finder, list[Request]]:
    """The answer, by rules or by what ``by`` says of a role; a chat model serves the roles of ``chat``."""
    finder, said = finder or Finder(), chat or {}
    usual = dict.fromkeys(said, "chat")
    served = role_table(EVERY, "rules", usual, {**RULES, **(by or {})}, Model(said) if said else None)
    plan = replace(PLANNED, roles=PLANNED.roles | set(said), chat=frozenset(said))
    arguments = (QUESTION, SearchFilter(), plan, sources, strategy, PROVENANCE)
    others = {"search": finder.search, "cite": mint, "look_up": lambda *_: ASTHMA_CARD}
    answer, requests = driven("plan", arguments, served, **others)
    return answer, finder, requests


def test_the_planner_is_asked_once_and_each_source_its_queries() -> None:
    answer, finder, requests = drive("prompting")
    assert [request.name for request in requests].count("plan") == 1
    assert finder.searches == [(QUESTION, names, 10) for names in (("books",), ("nice", "who"), ("pubmed",))]
    assert (answer.status, answer.statements) == (AnswerStatus.SECTIONS, ()), "nobody judged what was found"
    assert [section.best for section in answer.sections] == [piece.marker for piece in answer.evidence]
    assert {piece.passage.text for piece in answer.evidence} == {
        "Asthma in books.", "Asthma in nice.", "Asthma in who.", "Asthma in pubmed."
    }  # fmt: skip
    assert answer.workflow == "plan"
    assert answer.searched == ("books", "nice", "who", "pubmed")
    assert {part.source for part in parts_of(answer)} == {"book", "guideline", "research"}
    missing = tuple(message(f"source.kind.{name}") for name in ("wiki", "leaflet", "local", "graph"))
    assert message("plan.not_there", names=missing) in answer.notes


ONTOLOGY = GraphSource("d", "doid", "Ontology", "2025")
ASTHMA = Concept("DOID:1", "asthma", "doid", "A disease of the airways.", ONTOLOGY)
ASTHMA_CARD = Card(ASTHMA, Name("asthma", "en", "name"), (), (), (), (), 0, "kind")


def test_definitions_of_the_graph_are_sections_and_parts() -> None:
    answer, _, _ = drive("original", sources=replace(SOURCES, graph=True))
    assert "asthma: A disease of the airways." in [piece.passage.text for piece in answer.evidence]
    (concept,) = [part for part in answer.parts if isinstance(part, ConceptPart)]
    assert concept.definition == Definition("A disease of the airways.", "doid DOID:1")


def test_a_chat_model_writes_from_the_passages_of_all_sources() -> None:
    given: list[str] = []

    def write(task: Any) -> Written:
        given.extend(one.text for block in task.blocks for one in block.sentences)
        return Written(Covers.YES, (Drafted("Asthma in nice.", (given.index("Asthma in nice.") + 1,)),))

    answer, _, _ = drive("original", chat={"write": write})
    assert set(given) == {"Asthma in books.", "Asthma in nice.", "Asthma in who.", "Asthma in pubmed."}
    assert answer.status is AnswerStatus.ANSWERED
    assert [(one.text, one.verdict and one.verdict.support, one.withheld) for one in answer.statements] == [
        ("Asthma in nice.", Support.UNCHECKED, True),  # nobody judges
        ("Asthma in nice.", None, False),
    ]


def test_the_share_that_helps_is_a_models() -> None:
    """Without one the first plan is as good as any: planning stops."""

    def labels(task: Any) -> tuple[float, ...]:
        return (0.4,) * len(task.passages)

    assert [request.name for request in drive("reflexion")[2]].count("plan") == 1
    _, _, requests = drive("reflexion", chat={"relevance": labels})
    scored = [request.task.probability for request in requests if request.name == "plan_feedback"]  # type: ignore[union-attr]
    assert set(scored) == {0.4}


def test_no_retrieval_is_no_answer() -> None:
    answer, finder, _ = drive("none")
    assert (answer.status, finder.searches) == (AnswerStatus.ABSTAINED, [])
    assert message("plan.no_sources") in answer.notes


def test_a_pseudo_document_is_searched_beside_the_question() -> None:
    _, finder, _ = drive("query2doc", by={"pseudo_document": lambda task: f"text of a {task.source}"})
    assert [question for question, _, _ in finder.searches] == [
        f"{QUESTION} text of a {source}" for source in ("book", "guideline", "research")
    ]


def plans(*scores: int) -> Says:
    """Another plan each time, with these scores."""
    made = iter(range(100))
    waiting = iter(scores)
    return {
        "plan": lambda task: SourcePlan(book=(f"query {next(made)} after {len(task.feedback)}",)),
        "plan_feedback": lambda task: Feedback(next(waiting), "ask something else"),
    }


@pytest.mark.parametrize("strategy", ["reflexion", "serts"])
def test_the_best_of_several_plans_is_taken(strategy: str) -> None:
    answer, _, requests = drive(strategy, by=plans(1, 4, 2, 5, 0))
    assert [request.name for request in requests].count("plan") == 4, "it stops at the best score"
    (part,) = [part for part in parts_of(answer) if part.source == "book"]
    assert part.queries[0].startswith("query 3 after")
    _, _, requests = drive(strategy, by=plans(*[2] * 20))
    assert [request.name for request in requests].count("plan") == PLANS


def test_each_plan_is_made_with_what_was_said_of_those_before() -> None:
    _, _, requests = drive("reflexion", by=plans(1, 2, 5))
    tasks = [request.task for request in requests if request.name == "plan"]  # type: ignore[union-attr]
    assert [len(task.feedback) for task in tasks] == [0, 1, 2]
    assert tasks[2].feedback[1][1] == "ask something else"


def test_the_tree_gives_a_node_two_children_before_it_grows_deeper() -> None:
    _, _, requests = drive("serts", by=plans(1, 1, 1, 3, 1, 5))
    tasks = [request.task for request in requests if request.name == "plan"]  # type: ignore[union-attr]
    assert [len(task.feedback) for task in tasks[:3]] == [0, 1, 2], "the root, its first child, the sibling knows both"
    assert len(tasks[3].feedback) == 2, "a child of a child: the root and its parent"


def test_a_planner_that_repeats_itself_is_not_asked_again() -> None:
    for strategy in ("reflexion", "serts"):
        _, _, requests = drive(strategy, by={"plan_feedback": lambda _: Feedback(1)})
        assert [request.name for request in requests].count("plan") == 2


def test_nothing_found() -> None:
    answer, _, _ = drive("prompting", finder=Finder(found=False))
    assert (answer.status, answer.receipts, answer.evidence) == (AnswerStatus.ABSTAINED, None, ())


# --- on a chat model --------------------------------------------------------------------------------------------------


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
