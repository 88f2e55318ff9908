"""The gate: what the site wants done with an unsupported sentence, and the badge before and after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localmed.agents.asking import CITED_ANSWER, RELEVANCE, Coherence, Draft, Relevance
from localmed.agents.judging import BADGE, BADGE_STRICT, JudgingInput
from localmed.agents.role_table import role_table
from localmed.agents.roles import Rules
from localmed.domain import AnswerStatus, Badge, BadgeJudge, Kind, Origin, SearchFilter, Support, Verification, message
from localmed.errors import Rejected
from localmed.hooks import Hooks
from localmed.ports import Stance
from localmed.verification.badge import Criteria, Vote
from localmed.workflows import gate
from localmed.workflows.ask import ask
from localmed.workflows.flow import Driver, Judge, Perform
from localmed.workflows.recording import Recording
from localmed.workflows.recording import replay as replayed
from tests.fakes import services
from tests.values import PROVENANCE, evidence, quotation
from tests.workflows.test_ask import ENOUGH, HITS, PLAN, QUESTION, SOURCE, Finder, replay, search_result
from tests.workflows.test_ask_agents import ALL, FOR, generated

WRONG = "Give 50 mg by mouth."
RULES = BadgeJudge("rules", "MedQuAD", (("answers", 0.13),))
GREEN = Vote(Criteria(True, True, True), RULES)
RED = Vote(Criteria(True, True, False), RULES)
JUDGED = replace(PLAN, roles=PLAN.roles | {"badge"}, jury=("badge",))
QUOTED = Draft((quotation(SOURCE, 0, 19),))


def badges(requests: list[Any]) -> list[JudgingInput]:
    return [
        request.task for request in requests if isinstance(request, Perform) and request.role in (BADGE, BADGE_STRICT)
    ]


# --- what is done with an unsupported sentence ----------------------------------------------------------------------


def test_withheld_by_default_with_a_gap() -> None:
    results = [
        search_result(),
        ENOUGH,
        (SOURCE,),
        Draft((generated(), generated(WRONG))),
        (FOR, FOR),
    ]
    answer, _ = replay(results, plan=ALL)
    assert [statement.withheld for statement in answer.statements] == [False, True]
    assert answer.verification.statements_withheld == 1


def test_marked_where_the_site_wants_that() -> None:
    plan = replace(ALL, unsupported="mark")
    results = [
        search_result(),
        ENOUGH,
        (SOURCE,),
        Draft((generated(), generated(WRONG))),
        (FOR, FOR),
        Coherence(True, "x"),
    ]
    answer, _ = replay(results, plan=plan)
    assert [statement.withheld for statement in answer.statements] == [False, False]
    assert [statement.verdict.support for statement in answer.statements if statement.verdict] == [
        Support.SUPPORTED,
        Support.UNSUPPORTED,
    ]


def test_written_again_once_and_then_withheld() -> None:
    plan = replace(ALL, unsupported="regenerate")
    draft = Draft((generated(WRONG), generated()))
    results = [search_result(), ENOUGH, (SOURCE,), draft, (FOR, FOR), draft, (FOR, FOR)]
    answer, requests = replay(results, plan=plan)
    tasks = [request.task for request in requests if isinstance(request, Perform) and request.role is CITED_ANSWER]
    wrong = message("agents.correct_sentence", number=1, reason=message("support.number"))
    assert [task.conflict for task in tasks] == [(), (wrong,)]
    assert [statement.withheld for statement in answer.statements] == [True, False]
    assert sum(isinstance(request, Judge) for request in requests) == 2


# --- the badge ------------------------------------------------------------------------------------------------------


def test_without_a_jury_there_is_no_badge() -> None:
    answer, requests = replay([search_result(), ENOUGH, (SOURCE,), QUOTED])
    assert answer.verification.badge is Badge.NONE
    assert badges(requests) == []


def test_what_is_shown_gets_one_vote_of_each_judge() -> None:
    answer, requests = replay([search_result(), ENOUGH, (SOURCE,), QUOTED, GREEN], plan=JUDGED)
    (task,) = badges(requests)
    assert (task.question, task.evidence) == (QUESTION, (SOURCE,))
    account = answer.verification
    assert (account.badge, account.badge_before, account.badges) == (Badge.GREEN, Badge.GREEN, ())
    assert account.badge_judges == (RULES,)
    assert account.reason


def test_judged_before_and_after_withholding() -> None:
    plan = replace(ALL, roles=ALL.roles | {"badge"}, jury=("badge",))
    draft = Draft((generated(), generated(WRONG)))
    results = [search_result(), ENOUGH, (SOURCE,), draft, (FOR, FOR), GREEN, RED]
    answer, requests = replay(results, plan=plan)
    assert [len(badge.statements) for badge in badges(requests)] == [1, 2]
    assert (answer.verification.badge, answer.verification.badge_before) == (Badge.GREEN, Badge.RED)


def test_each_kind_of_source_alone() -> None:
    guideline, leaflet = (
        replace(SOURCE, kind=Kind.GUIDELINE),
        replace(evidence("2", "Store it dark."), kind=Kind.LEAFLET),
    )
    draft = Draft((quotation(guideline, 0, 19), quotation(leaflet, 0, 14)))
    both = Relevance((0.9, 0.9), 0.5)
    results = [search_result(hits=HITS * 2), both, (guideline, leaflet), draft, GREEN, GREEN, RED]
    answer, requests = replay(results, plan=JUDGED)
    assert answer.verification.badges == (("guideline", Badge.GREEN), ("leaflet", Badge.RED))
    assert [[piece.marker for piece in badge.evidence] for badge in badges(requests)] == [["1", "2"], ["1"], ["2"]]


def test_a_jury_votes_and_a_judge_that_cannot_be_used_gives_way_to_the_rules() -> None:
    plan = replace(PLAN, roles=PLAN.roles | {"badge", "badge_strict"}, jury=("badge", "badge_strict"))
    rejected = Rejected("agents.nothing_said")
    answer, requests = replay([search_result(), ENOUGH, (SOURCE,), QUOTED, rejected, GREEN, RED], plan=plan)
    assert len(badges(requests)) == 3
    assert answer.verification.badge is Badge.RED, "a tie on grounding is no"


def test_nothing_shown_gets_no_badge() -> None:
    plan = replace(ALL, roles=ALL.roles | {"badge"}, jury=("badge",))
    draft = Draft((generated(WRONG),))
    answer, requests = replay([search_result(), ENOUGH, (SOURCE,), draft, (Stance(0.8, 0.1, 0.1),)], plan=plan)
    assert answer.status is AnswerStatus.ABSTAINED
    assert badges(requests) == []


def test_an_added_exception_is_told() -> None:
    source = evidence("1", "Give ramipril 5 mg by mouth. Do not give ramipril in pregnancy.")
    answer, _ = replay([search_result(), ENOUGH, (source,), Draft((quotation(source, 0, 28),))])
    assert [statement.text for statement in answer.statements] == [
        "Give ramipril 5 mg by mouth.",
        "Do not give ramipril in pregnancy.",
    ]
    assert {statement.origin for statement in answer.statements} == {Origin.EXTRACTIVE}
    assert message("gate.added", count=1) in answer.notes


def test_a_judged_answer_replays_from_its_recording() -> None:
    rules: Rules = {RELEVANCE.name: lambda _: ENOUGH, CITED_ANSWER.name: lambda _: QUOTED, BADGE.name: lambda _: GREEN}
    roles = {role.name: role for role in (RELEVANCE, CITED_ANSWER, BADGE)}
    arguments = (QUESTION, SearchFilter(), JUDGED, PROVENANCE, ())
    recording = Recording()
    recording.begin("ask", arguments)
    served = role_table(roles, "rules", {}, rules, None)
    answering = services(served, search=Finder().search, cite=lambda *_: (SOURCE,))
    driver = Driver(answering, Hooks(recorder=recording))
    answer = driver.run(ask(*arguments))
    again, same = replayed(recording.finish(answer))
    assert same
    assert again.verification.badge is Badge.GREEN


def test_how_the_coherence_check_ended_is_accounted_for() -> None:
    stand = message("gate.departments_stand", count=1, standing=1)
    account = Verification(1, 0, checks=(stand,))
    agreed = gate.with_coherence(account, Coherence(True, "chat"))
    assert agreed.checks == (stand, message("gate.agrees", judge=message("badge.judge.chat")))
    against = gate.with_coherence(account, Coherence(False, "rules", message("agents.sentence_contradicts"))).checks[-1]
    assert against == message("gate.conflicts", judge=message("badge.judge.rules"))
    assert gate.with_coherence(account, Coherence(True, "")) == account, "nobody was asked"
