"""The Link-Eval flow, replayed with scripted results: what it asks for, what it counts, and that it replays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localmed.answering.asking import FLUENCY, RELEVANCE
from localmed.answering.chat import ChatRoles
from localmed.answering.link_eval import MOST_COMPARED, LinkBasis, LinkInput, LinkStatement
from localmed.answering.role_table import role_table
from localmed.answering.roles import Performer
from localmed.domain import Answer, SearchFilter, TraceStep, message
from localmed.domain.errors import Rejected
from localmed.domain.findings import Finding
from localmed.domain.parts import LinkSetPart
from localmed.presentation.answer import view
from localmed.process.hooks import Hooks
from localmed.retrieval.tiers import Tier
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Find, Judge, Perform
from localmed.workflows.links import counts_of, links
from localmed.workflows.recording import Recording, replay
from tests.answering.test_link_eval import SCORES, SOURCES, WORKED, by_words, link_statement
from tests.fakes import services
from tests.scripted import Said, ScriptedChat
from tests.values import PROVENANCE, finding, passage

SECRET = "Patientname Zyxwvut"
BASIS = LinkBasis("words 1", ("en",))
PLAN = Plan((Tier(("guidelines",), whole=True),), 8)
JUDGED = replace(PLAN, chat=frozenset({RELEVANCE.name, FLUENCY.name}))
ROLES = {role.name: role for role in (RELEVANCE, FLUENCY)}


def found(*texts: str) -> Finding:
    """A section for each text."""
    return finding(*(passage(text, "") for text in texts), question="?")


def run(
    task: LinkInput,
    again: Finding | None = None,
    chat: Performer | None = None,
    plan: Plan = PLAN,
    basis: LinkBasis = BASIS,
) -> tuple[Answer, str, list[TraceStep]]:
    """The answer, its recording and the steps."""
    steps: list[TraceStep] = []
    recording = Recording()
    arguments = (task, SearchFilter(), plan, basis, PROVENANCE)
    recording.begin("links", arguments)
    served = role_table(ROLES, "chat" if chat else "rules", {}, {}, chat)
    answering = services(
        served, find=lambda *_: again or found(), judge=lambda pairs: [by_words(*pair) for pair in pairs]
    )
    driver = Driver(answering, Hooks(finished=steps.append, recorder=recording))
    answer = driver.run(links(*arguments))
    return answer, recording.finish(answer), steps


def chat(*labels: Said) -> ChatRoles:
    """A chat model that judges references and statements so."""
    return ChatRoles(ScriptedChat(labels))


HELPS = [{"relevant": score, "irrelevant": 1 - score} for score in SCORES]
READS: list[Said] = [{"fluent": 0.9, "awkward": 0.1}, {"fluent": 0.5, "awkward": 0.5}, "awkward", "fluent"]


def test_the_worked_example_comes_through_the_flow_and_replays() -> None:
    answer, recorded, _ = run(WORKED, chat=chat(*HELPS, *READS), plan=JUDGED)
    counts = counts_of(answer)
    assert counts.citation_set_precision == 2 / 3
    assert counts.citation_precision == 2 / 5
    assert counts.citation_recall == 2 / 3
    assert counts.fluency == pytest.approx((0.9 + 0.5 + 0.0 + 1.0) / 4)
    assert answer.notes == ()
    assert answer.verification.judges == (message("support.judge.entailment", name="words 1"),)
    again, same = replay(recorded)
    assert same
    assert counts_of(again) == counts


def test_without_a_chat_model_references_and_fluency_are_not_measured() -> None:
    answer, _, _ = run(WORKED)
    counts = counts_of(answer)
    assert (counts.citation_set_precision, counts.citation_precision) == (2 / 3, 2 / 5)
    assert (counts.citation_recall, counts.references, counts.unjudged_references) == (None, 0, 5)
    assert (counts.fluency, answer.notes) == (None, (message("links.not_fluent"),))


class Rejecting:
    """A chat model whose replies cannot be used."""

    def perform(self, role: Any, task: Any) -> Any:
        raise Rejected("agents.nothing_said")


def test_replies_that_cannot_be_used_leave_references_and_fluency_unmeasured() -> None:
    counts = counts_of(run(WORKED, chat=Rejecting(), plan=JUDGED)[0])
    assert (counts.citation_precision, counts.unjudged_references, counts.fluency) == (2 / 5, 5, None)


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
    again = found("Zinc again: nobody cites it.", "Nor this.")
    answer, _, steps = run(cited, again, chat(*HELPS[:4], "relevant", "relevant", *READS), JUDGED)
    counts = counts_of(answer)
    assert [step.name for step in steps][:2] == ["find", "relevance"]
    assert (counts.references, counts.valid, counts.valid_cited) == (6, 4, 2)
    given = run(replace(cited, retrieved=False), again, chat(*HELPS[:4], *READS), JUDGED)[0]
    assert counts_of(given).references == 4


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
    flow = links(WORKED, SearchFilter(), JUDGED, BASIS, PROVENANCE)
    requests: list[Any] = [next(flow)]
    requests.append(flow.send(SCORES))
    first: Judge = requests[-1]
    requests.append(flow.send(tuple(by_words(*pair) for pair in first.pairs)))
    assert [type(request) for request in requests] == [Perform, Judge, Judge]
    assert len(first.pairs) == 3 + 4 * 3
    assert len(requests[2].pairs) == 2  # the set of two, without each of them; a set of one has nothing left
    assert not any(isinstance(request, Find) for request in requests)
