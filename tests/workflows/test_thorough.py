"""Thorough (MAIRAG): who is asked what, in which order and how often, on a scripted model; every flow replays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localmed.answering import asking, judging
from localmed.answering.asking import Coherence
from localmed.answering.check import CHECK
from localmed.answering.judging import Criteria, Vote
from localmed.answering.role_table import role_table
from localmed.answering.write import WRITE, Covers, Drafted, Written
from localmed.domain import Answer, AnswerStatus, Badge, BadgeJudge, Origin, SearchFilter, Statement, message
from localmed.domain.errors import Rejected
from localmed.domain.findings import Finding
from localmed.domain.ports import Stance
from localmed.retrieval.tiers import Tier
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Request
from localmed.workflows.thorough import NONE_HELPS, OWN
from tests.values import PROVENANCE, cited, finding, passage
from tests.workflows.driving import Model, Says, driven, texts, titles

QUESTION = "What is the dose of adrenaline, and how is it kept?"
DOSE = passage("Give 500 micrograms of adrenaline. Repeat after five minutes.", "Anaphylaxis")
STORE = passage("Store adrenaline in the dark. Keep it cold.", "Storage")
FOOD = passage("The canteen opens at noon.", "Canteen")
ROLES = {role.name: role for role in (*asking.ROLES, *judging.ROLES, WRITE, CHECK)}
PLAN = Plan((Tier(("ward",), whole=True),), 8, own_knowledge=True, jury=("badge",))


def copies(task: Any) -> Written:
    """The first sentence of each block."""
    firsts = [block.sentences[0] for block in task.blocks]
    return Written(Covers.YES, tuple(Drafted(one.text, (one.number,)) for one in firsts))


def helps(*titles: str) -> Callable[[Any], tuple[float, ...]]:
    return lambda task: tuple(0.9 if one.title in titles else 0.1 for one in task.passages)


USUAL: Says = {
    "relevance": helps("Anaphylaxis", "Storage"),
    "write": copies,
    "check": lambda task: (Stance(0.9, 0.1, 0.0),) * len(task.pairs),
    "coherence": lambda _: Coherence(True),
    "badge": lambda _: Vote(Criteria(True, True, True), BadgeJudge("chat")),
    "self_knowledge": lambda _: True,
    "own_answer": lambda _: (Statement("It is 500 micrograms.", (), Origin.UNVERIFIED),),
    "decomposition": lambda _: ("What is the dose?", "How is it kept?"),
    "self_contained": lambda _: QUESTION,
}


def run(
    *,
    off: tuple[str, ...] = (),
    plan: Plan = PLAN,
    earlier: tuple[str, ...] = (),
    found: Callable[[str], tuple[Any, ...]] = lambda _: (DOSE, STORE, FOOD),
    **says: Callable[[Any], Any],
) -> tuple[Answer, list[Request]]:
    """The answer, and what was asked for; the roles ``off`` nobody serves."""
    by = {name: said for name, said in {**USUAL, **says}.items() if name not in off}

    def find(question: str, *_: Any) -> Finding:
        return finding(*found(question), question=question)

    served = role_table(ROLES, "chat", dict.fromkeys(off, "off"), {}, Model(by))
    arguments = (QUESTION, SearchFilter(), replace(plan, roles=frozenset(by), chat=frozenset(by)), PROVENANCE, earlier)
    return driven("thorough", arguments, served, find=find, cite=cited)


def names(requests: list[Request]) -> list[str]:
    return [request.name for request in requests]


def test_it_writes_from_the_sections_that_help_and_a_jury_votes() -> None:
    answer, requests = run()
    assert names(requests) == ["find", "cite", "relevance", "scopes", "write", "coherence", "badge"]
    assert texts(answer) == ["Give 500 micrograms of adrenaline.", "Store adrenaline in the dark."]
    assert titles(answer) == ["Anaphylaxis", "Storage"]
    assert (answer.status, answer.verification.badge) == (AnswerStatus.ANSWERED, Badge.GREEN)


@pytest.mark.parametrize(
    ("criteria", "badge"),
    [(Criteria(True, True, True), Badge.GREEN), (Criteria(False, True, True), Badge.YELLOW),
     (Criteria(True, True, False), Badge.RED)],
)  # fmt: skip
def test_a_jury_may_make_the_badge_worse_and_never_better(criteria: Criteria, badge: Badge) -> None:
    def vote(_: Any) -> Vote:
        return Vote(criteria, BadgeJudge("chat"))

    assert run(badge=vote)[0].verification.badge is badge
    missing, _ = run(badge=vote, write=lambda task: replace(copies(task), missing=("the price",)))
    assert missing.verification.badge is (Badge.RED if badge is Badge.RED else Badge.YELLOW)
    unvoted, _ = run(badge=lambda _: Rejected("agents.nothing_said"))
    assert unvoted.verification.badge_judges == ()


def test_what_conflicts_is_written_once_more_and_told_what_was_wrong() -> None:
    given: list[Any] = []

    def write(task: Any) -> Written:
        given.append(task)
        return copies(task)

    answer, requests = run(write=write, coherence=lambda _: Coherence(False, None, (1,)))
    assert names(requests).count("write") == 2
    assert names(requests).count("coherence") == 1, "once"
    assert [task.wrong for task in given] == ["", "Store adrenaline in the dark."]
    assert texts(answer)
    first = iter((True, False))
    second, _ = run(
        write=lambda task: copies(task) if next(first) else Written(Covers.YES, ()),
        coherence=lambda _: Coherence(False, None, (1,)),
    )
    assert texts(second) == ["Give 500 micrograms of adrenaline.", "Store adrenaline in the dark."], "the first stays"


# --- where nothing helps ----------------------------------------------------------------------------------------------


def test_own_knowledge_only_where_the_site_allows_it_and_the_model_is_certain() -> None:
    answer, requests = run(relevance=helps())
    assert (answer.status, texts(answer)) == (AnswerStatus.UNVERIFIED, ["It is 500 micrograms."])
    assert OWN in answer.notes
    assert {one.origin for one in answer.statements} == {Origin.UNVERIFIED}
    assert "decomposition" not in names(requests)
    for changes in (
        {"plan": replace(PLAN, own_knowledge=False)},
        {"self_knowledge": lambda _: False},
        {"self_knowledge": lambda _: Rejected("agents.nothing_said")},
        {"own_answer": lambda _: Rejected("agents.nothing_said")},
        {"off": ("self_knowledge",)},
    ):
        other, requests = run(**{"relevance": helps(), **changes})  # type: ignore[arg-type]
        assert other.status is not AnswerStatus.UNVERIFIED, changes
        assert "decomposition" in names(requests), changes


def in_parts(question: str) -> tuple[Any, ...]:
    """The whole finds nothing of use; each part its own."""
    return {"What is the dose?": (DOSE,), "How is it kept?": (STORE, FOOD)}.get(question, (FOOD,))


ALONE = replace(PLAN, own_knowledge=False)


def test_sub_questions_are_searched_once_each_and_their_sections_answer() -> None:
    answer, requests = run(plan=ALONE, found=in_parts)
    assert [one.question for one in requests if one.name == "find"] == [  # type: ignore[union-attr]
        QUESTION, "What is the dose?", "How is it kept?",
    ]  # fmt: skip
    assert titles(answer) == ["Anaphylaxis", "Storage"]
    assert texts(answer) == ["Give 500 micrograms of adrenaline.", "Store adrenaline in the dark."]
    markers = [piece.marker for piece in answer.evidence]
    assert len(markers) == len(set(markers))
    _, requests = run(plan=ALONE, found=in_parts, decomposition=lambda _: tuple(f"Part {n}?" for n in range(9)))
    assert names(requests).count("find") == 1 + asking.SUB_QUESTIONS
    assert names(requests).count("decomposition") == 1, "at depth one"


@pytest.mark.parametrize("how", ["no part helps", "off", "rejected"])
def test_where_no_part_helps_the_sections_stay_and_that_is_told(how: str) -> None:
    ways: dict[str, dict[str, Any]] = {
        "no part helps": {},
        "off": {"off": ("decomposition",)},
        "rejected": {"decomposition": lambda _: Rejected("agents.nothing_said")},
    }
    answer, requests = run(plan=ALONE, relevance=helps(), **ways[how])
    assert (answer.status, answer.statements) == (AnswerStatus.SECTIONS, ())
    assert titles(answer) == ["Anaphylaxis", "Storage", "Canteen"]
    assert NONE_HELPS in answer.notes
    assert "write" not in names(requests)


# --- roles that are off or of no use ----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["relevance", "coherence", "badge", "check"])
@pytest.mark.parametrize("how", ["off", "rejected"])
def test_a_role_that_is_not_served_leaves_the_others_at_work(role: str, how: str) -> None:
    changes: dict[str, Any] = {"off": (role,)} if how == "off" else {role: lambda _: Rejected("agents.nothing_said")}
    if role == "badge" and how == "off":
        changes["plan"] = replace(PLAN, jury=())
    answer, _ = run(**changes)
    named = ["Anaphylaxis", "Storage", *(["Canteen"] if role == "relevance" else [])]
    assert titles(answer) == named
    assert len(texts(answer)) == len(named)


@pytest.mark.parametrize("how", ["off", "rejected"])
def test_without_a_writer_the_sections_are_the_answer(how: str) -> None:
    changes: dict[str, Any] = {"off": ("write",)} if how == "off" else {"write": lambda _: Rejected("agents.x")}
    answer, _ = run(**changes)
    assert (answer.status, answer.statements) == (AnswerStatus.SECTIONS, ())
    assert titles(answer)


def test_a_follow_up_becomes_a_question_that_stands_alone() -> None:
    alone = "How is adrenaline kept?"
    answer, requests = run(earlier=("What is adrenaline?",), self_contained=lambda _: alone)
    assert answer.question == alone
    assert requests[1].question == alone  # type: ignore[union-attr]
    kept, _ = run(earlier=("What is adrenaline?",), self_contained=lambda _: Rejected("agents.new_medicine"))
    assert kept.question == QUESTION


def test_what_the_library_lacks_is_told() -> None:
    answer, _ = run(plan=replace(PLAN, tiers=(Tier(("ward",), ("book",)),)))
    assert message("workflow.skipped", names=(message("source.kind.book"),)) in answer.notes


def test_somebody_in_danger_gets_the_sites_message() -> None:
    answer, requests = run(earlier=("I want to kill myself.",))
    assert (answer.status, requests) == (AnswerStatus.SAFETY, [])
    assert answer.notes == (message("safety.message", line=""),)
