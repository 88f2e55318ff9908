"""What a question would be answered from, by each arm: LINS's agents switched off in turn, and source plans."""

from __future__ import annotations

from typing import Any

import pytest

from localmed.answering.asking import DECOMPOSITION, RELEVANCE, SELF_KNOWLEDGE, RelevanceInput
from localmed.domain import AnswerStatus, Provenance, SearchFilter
from localmed.domain.errors import Rejected
from localmed.lab.mcq import ARMS, find_evidence
from localmed.retrieval.tiers import Tier
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Cite, Find, Perform, Search
from localmed.workflows.strategies import Sources
from tests.values import cited, finding, hit

PROVENANCE = Provenance("0001", "starter", (), (), "0")
ALL = frozenset({"relevance", "self_knowledge", "decomposition", "write", "coherence"})
PLAN = Plan((Tier(("ward",)),), passages=2, roles=ALL, chat=ALL)
HITS = (hit("Zinc is given daily."), hit("Iron is given weekly."), hit("Copper is not given."))


def driven(arm: str, helps: bool, certain: bool = False, rejected: str = "") -> tuple[Any, list[str]]:
    """The flow of ``arm`` with a model that finds help in the first passage, or in none; and what was asked for."""
    flow = find_evidence("How often is zinc given?", SearchFilter(), PLAN, Sources(), arm, PROVENANCE)
    asked_for: list[str] = []
    result: Any = None
    while True:
        try:
            request = flow.throw(result) if isinstance(result, Rejected) else flow.send(result)
        except StopIteration as end:
            return end.value, asked_for
        single = request if not isinstance(request, tuple) else request[0]
        asked_for.append(single.name)
        result = Rejected("agents.nothing_said") if single.name == rejected else reply(single, helps, certain)
        result = (result,) if isinstance(request, tuple) else result


def reply(request: Any, helps: bool, certain: bool) -> Any:
    assert not isinstance(request, Search)
    if isinstance(request, Find):
        return finding(*(one.passage for one in HITS))
    if isinstance(request, Cite):
        return cited(request.hits, request.first)
    assert isinstance(request, Perform)
    if request.role is RELEVANCE:
        assert isinstance(request.task, RelevanceInput)
        whole = request.task.question.startswith("How often")
        best = 0.9 if helps or not whole else 0.2
        return (best, *[0.15] * (len(request.task.passages) - 1))
    if request.role is SELF_KNOWLEDGE:
        return certain
    assert request.role is DECOMPOSITION
    return ("When is zinc given?",)


def test_plain_retrieval_takes_what_comes_first_and_mairag_what_helps() -> None:
    answer, asked_for = driven("retrieval", helps=False)
    assert len(answer.evidence) == PLAN.passages
    assert asked_for == ["find", "cite"], "no agent is asked"
    assert (answer.status, answer.workflow) == (AnswerStatus.ANSWERED, "context")
    answer, _ = driven("mairag", helps=True)
    assert [piece.passage.text for piece in answer.evidence] == ["Zinc is given daily."]


@pytest.mark.parametrize(
    ("left_out", "status", "certain"),
    [("", "unverified", True), ("self_knowledge", "answered", True), ("decomposition", "abstained", False),
     ("relevance", "answered", False)],
)  # fmt: skip
def test_the_switches_turn_one_agent_off_each(left_out: str, status: str, certain: bool) -> None:
    answer, asked_for = driven(f"mairag-without-{left_out}" if left_out else "mairag", helps=False, certain=certain)
    assert answer.status == status
    assert bool(answer.evidence) is (status == "answered")
    asked_roles = [name for name in asked_for if name in ("relevance", "self_knowledge", "decomposition")]
    assert left_out not in asked_roles
    assert left_out != "self_knowledge" or asked_roles[-1] == "relevance", "what was found for the part"
    assert left_out or asked_roles[-1] == "self_knowledge", "certain: nothing is looked for"


@pytest.mark.parametrize("role", ["relevance", "self_knowledge", "decomposition"])
def test_a_reply_that_cannot_be_used_ends_no_run(role: str) -> None:
    answer, asked_for = driven("mairag", helps=False, rejected=role)
    assert role in asked_for
    assert answer.status is (AnswerStatus.ABSTAINED if role == "decomposition" else AnswerStatus.ANSWERED)


@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm.startswith("plan-n") or arm.startswith("plan-o")])
def test_a_plan_of_no_source_finds_nothing(arm: str) -> None:
    answer, _ = driven(arm, helps=True)
    assert (answer.status, answer.evidence) == (AnswerStatus.ABSTAINED, ())
