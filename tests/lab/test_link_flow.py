"""Link-Eval on scripted results: what it asks for, and what it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from localmed.answering.asking import FLUENCY, RELEVANCE
from localmed.answering.chat import ChatRoles
from localmed.answering.role_table import role_table
from localmed.answering.roles import Performer
from localmed.domain import SearchFilter
from localmed.domain.errors import Rejected
from localmed.domain.findings import Finding
from localmed.lab.link_counts import LinkCounts
from localmed.lab.link_eval import MOST_COMPARED, LinkInput, evaluated
from localmed.process.hooks import Hooks
from localmed.retrieval.tiers import Tier
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver, Judge, Perform
from tests.fakes import Steps, services
from tests.lab.test_link_eval import SCORES, SOURCES, WORKED, by_words, link_statement
from tests.scripted import Said, ScriptedChat
from tests.values import finding, passage

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
    languages: Sequence[str] = ("en",),
) -> tuple[LinkCounts, list[Any]]:
    """The counts, and what was asked for."""
    requests: list[Any] = []
    served = role_table(ROLES, "chat" if chat else "rules", {}, {}, chat)
    answering = services(
        served, find=lambda *_: again or found(), judge=lambda pairs: [by_words(*pair) for pair in pairs]
    )
    driver = Driver(answering, Hooks(recorder=Steps(lambda request, _: requests.append(request))))
    return driver.part(evaluated(task, SearchFilter(), plan, languages)), requests


def chat(*labels: Said) -> ChatRoles:
    """A chat model that judges references and statements so."""
    return ChatRoles(ScriptedChat(labels))


HELPS = [{"relevant": score, "irrelevant": 1 - score} for score in SCORES]
READS: list[Said] = [{"fluent": 0.9, "awkward": 0.1}, {"fluent": 0.5, "awkward": 0.5}, "awkward", "fluent"]


def test_the_worked_example_comes_through_the_flow() -> None:
    counts, requests = run(WORKED, chat=chat(*HELPS, *READS), plan=JUDGED)
    assert counts.citation_set_precision == 2 / 3
    assert counts.citation_precision == 2 / 5
    assert counts.citation_recall == 2 / 3
    assert counts.fluency == pytest.approx((0.9 + 0.5 + 0.0 + 1.0) / 4)
    assert [type(request) for request in requests] == [Perform, Judge, Judge, Perform]
    assert len(requests[1].pairs) == 3 + 4 * 3
    assert len(requests[2].pairs) == 2, "the set of two, without each of them; a set of one has nothing left"


def test_without_a_chat_model_references_and_fluency_are_not_measured() -> None:
    counts, _ = run(WORKED)
    assert (counts.citation_set_precision, counts.citation_precision) == (2 / 3, 2 / 5)
    assert (counts.citation_recall, counts.references, counts.unjudged_references) == (None, 0, 5)
    assert counts.fluency is None


class Rejecting:
    """A chat model whose replies cannot be used."""

    def perform(self, role: Any, task: Any) -> Any:
        raise Rejected("agents.nothing_said")


def test_replies_that_cannot_be_used_leave_references_and_fluency_unmeasured() -> None:
    counts, _ = run(WORKED, chat=Rejecting(), plan=JUDGED)
    assert (counts.citation_precision, counts.unjudged_references, counts.fluency) == (2 / 5, 5, None)


def test_without_a_judge_only_quotations_are_counted() -> None:
    quoted = replace(WORKED, statements=(*WORKED.statements, link_statement("Rest helps.", "4")))
    counts, _ = run(quoted, languages=())
    assert (counts.sets, counts.correct_sets, counts.verbatim_sets, counts.unjudged_sets) == (1, 1, 1, 3)
    assert (counts.pairs, counts.conflicts, counts.gold) == (0, 0, None)


def test_what_was_retrieved_and_not_cited_is_looked_for_again() -> None:
    cited = replace(WORKED, sources=SOURCES[:4], retrieved=True)
    again = found("Zinc again: nobody cites it.", "Nor this.")
    counts, requests = run(cited, again, chat(*HELPS[:4], "relevant", "relevant", *READS), JUDGED)
    assert [request.name for request in requests][:2] == ["find", "relevance"]
    assert (counts.references, counts.valid, counts.valid_cited) == (6, 4, 2)
    given, _ = run(replace(cited, retrieved=False), again, chat(*HELPS[:4], *READS), JUDGED)
    assert given.references == 4


def test_no_statement_and_too_many() -> None:
    assert run(LinkInput("?", ()))[0].statements == 0
    many = LinkInput("?", tuple(link_statement(f"Drug {number} helps.") for number in range(MOST_COMPARED + 1)))
    assert run(many)[0].uncited == MOST_COMPARED + 1
