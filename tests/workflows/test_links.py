"""The Link-Eval flow, replayed with scripted results: what it asks for, what it counts, and that it replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from localmed.agents.asking import RELEVANCE, Relevance
from localmed.agents.chat import ChatRoles
from localmed.agents.linking import FLUENCY, VALIDITY, FluencyInput, ValidityInput
from localmed.agents.linking_rules import not_measured
from localmed.agents.role_table import role_table
from localmed.agents.roles import Rules
from localmed.domain import Answer, SearchFilter, TraceStep, message
from localmed.domain.parts import LinkSetPart
from localmed.hooks import Hooks
from localmed.ports import Stance
from localmed.presentation.answer import view
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.verification.link_eval import MOST_COMPARED, LinkBasis, LinkInput, LinkStatement
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Judge, Perform, Search
from localmed.workflows.links import counts_of, links
from localmed.workflows.recording import Recording, replay
from tests.fakes import services
from tests.scripted import ScriptedChat
from tests.values import PROVENANCE, hit
from tests.verification.test_link_eval import SCORES, SOURCES, WORKED, by_words, link_statement

SECRET = "Patientname Zyxwvut"
BASIS = LinkBasis("words 1", ("en",), 0.5)
ON = frozenset({"relevance", "fluency"})
PLAN = Plan((Tier(("guidelines",), whole=True),), 8, roles=ON)
ROLES = {role.name: role for role in (RELEVANCE, VALIDITY, FLUENCY)}


class Finder:
    """Finds what was given to it."""

    def __init__(self, *texts: str) -> None:
        self.hits = tuple(hit(text, "", 0.5) for text in texts)

    def search(self, question: str, filters: SearchFilter, limit: int, keywords: Sequence[str] = ()) -> Found:
        return Found(self.hits, True, "en")


def validity(task: ValidityInput) -> tuple[float | None, ...]:
    known = {source.passage.text: score for source, score in zip(SOURCES, SCORES, strict=True)}
    return tuple(known.get(reference.text, 0.95) for reference in task.references)


RULES: Rules = {
    RELEVANCE.name: lambda task: Relevance((0.9,) * len(task.hits), 0.5),
    VALIDITY.name: validity,
    FLUENCY.name: not_measured,
}


def run(
    task: LinkInput,
    finder: Finder | None = None,
    chat: ChatRoles | None = None,
    plan: Plan = PLAN,
    basis: LinkBasis = BASIS,
) -> tuple[Answer, str, list[TraceStep]]:
    """The answer, its recording and the steps."""
    steps: list[TraceStep] = []
    recording = Recording()
    arguments = (task, SearchFilter(), plan, basis, PROVENANCE)
    recording.begin("links", arguments)
    served = role_table(ROLES, "chat" if chat else "rules", {"relevance": "rules"}, RULES, chat)
    answering = services(
        served, search=(finder or Finder()).search, judge=lambda pairs: [by_words(*pair) for pair in pairs]
    )
    driver = Driver(answering, Hooks(finished=steps.append, recorder=recording))
    answer = driver.run(links(*arguments))
    return answer, recording.finish(answer), steps


def test_the_worked_example_comes_through_the_flow_and_replays() -> None:
    answer, recorded, _ = run(WORKED)
    counts = counts_of(answer)
    assert counts.citation_set_precision == 2 / 3
    assert counts.citation_precision == 2 / 5
    assert counts.citation_recall == 2 / 3
    assert answer.notes == (message("links.not_fluent"),)
    assert answer.verification.judges == (message("support.judge.entailment", name="words 1"),)
    again, same = replay(recorded)
    assert same
    assert counts_of(again) == counts


def test_each_set_says_what_became_of_it() -> None:
    answer, _, _ = run(WORKED)
    sets = [part for part in answer.parts if isinstance(part, LinkSetPart)]
    assert [set_.correct for set_ in sets] == [True, True, False]
    assert [part.irreplaceable for part in sets] == [("1",), ("2",), ()]
    titles = [part.title for part in view(answer).parts]
    assert titles == ["Link-Eval", "Citation set 1", "Citation set 2", "Citation set 3"]
    rows = {row.label: row.text for row in view(answer).parts[0].rows}
    assert rows["citation set precision"] == "0.667 (2 of 3)"
    assert rows["statement correctness"] == "undefined"
    assert {row.label: row.text for row in view(answer, "zh").parts[1].rows}["是否支持该句"] == "是"


def test_without_a_judge_only_quotations_are_counted() -> None:
    quoted = replace(WORKED, statements=(*WORKED.statements, link_statement("Rest helps.", "4")))
    counts = counts_of(run(quoted, basis=LinkBasis("none", ()))[0])
    assert (counts.sets, counts.correct_sets, counts.verbatim_sets, counts.unjudged_sets) == (1, 1, 1, 3)
    assert (counts.pairs, counts.conflicts, counts.gold) == (0, 0, None)


def test_what_was_retrieved_and_not_cited_is_looked_for_again() -> None:
    cited = replace(WORKED, sources=SOURCES[:4], retrieved=True)
    answer, _, steps = run(cited, Finder("Zinc again: nobody cites it.", "Nor this."))
    counts = counts_of(answer)
    assert [step.name for step in steps][:2] == ["search", "relevance"]
    assert (counts.references, counts.valid, counts.valid_cited) == (6, 4, 2)
    assert counts_of(run(replace(cited, retrieved=False), Finder("Nor this."))[0]).references == 4


def test_a_model_judges_how_statements_read() -> None:
    labels = ({"fluent": 0.9, "awkward": 0.1}, {"fluent": 0.5, "awkward": 0.5}, "awkward", "fluent")
    answer, _, _ = run(WORKED, chat=ChatRoles(ScriptedChat(labels)))
    assert counts_of(answer).fluency == pytest.approx((0.9 + 0.5 + 0.0 + 1.0) / 4)
    assert answer.notes == ()


def test_chinese_statements_are_judged_in_chinese() -> None:
    task = FluencyInput(("可以服用对乙酰氨基酚。",))
    chat = ChatRoles(ScriptedChat(["流畅"]))
    assert chat.perform(FLUENCY, task) == (1.0,)


def test_no_statement_and_too_many() -> None:
    assert run(LinkInput("?", ()))[0].notes == (message("links.nothing_said"),)
    many = LinkInput("?", tuple(link_statement(f"Drug {number} helps.") for number in range(MOST_COMPARED + 1)))
    answer, _, _ = run(many)
    assert message("links.fewer_compared", number=MOST_COMPARED) in answer.notes
    assert counts_of(answer).uncited == MOST_COMPARED + 1


def test_the_trace_and_the_parts_hold_no_text() -> None:
    task = replace(WORKED, statements=(LinkStatement(f"Zinc helps {SECRET}.", ("1",)),), gold=SECRET)
    answer, _, steps = run(task)
    assert SECRET not in repr(answer.parts) + repr(steps) + repr(answer.notes)


def test_only_stances_that_are_needed_are_asked_for() -> None:
    flow = links(WORKED, SearchFilter(), PLAN, BASIS, PROVENANCE)
    requests: list[Any] = [next(flow)]
    requests.append(flow.send(SCORES))
    first: Judge = requests[-1]
    requests.append(flow.send(tuple(by_words(*pair) for pair in first.pairs)))
    assert [type(request) for request in requests] == [Perform, Judge, Judge]
    assert len(first.pairs) == 3 + 4 * 3
    assert len(requests[2].pairs) == 2  # the set of two, without each of them; a set of one has nothing left
    assert not any(isinstance(request, Search) for request in requests)
    assert isinstance(by_words("a", "b"), Stance)
