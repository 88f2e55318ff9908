"""The safety screen: who gets the site's message in an answer's place, and who must not; in every workflow."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.answering.answer_file import VerifyInput
from localmed.answering.chat import ChatRoles
from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus, SearchFilter, message
from localmed.domain.errors import UsageError
from localmed.domain.findings import Finding, Found, Question
from localmed.retrieval.tiers import Tier
from localmed.safety.safety import SAFETY, SafetyInput, Screening, site_message
from localmed.safety.safety_rules import screen
from localmed.site.session import Session
from localmed.workflows.ask import ask
from localmed.workflows.explain import ExplainInput
from localmed.workflows.finding import Plan, refused, screened
from localmed.workflows.flow import FLOWS, Find
from tests.fakes import ANY, HashedWords, import_into, opened, write
from tests.scripted import ScriptedChat
from tests.values import PROVENANCE, in_words
from tests.workflows.driving import fed

CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "cases" / "safety.toml").read_text("utf-8"))[
    "case"
]
STAFF = Plan((Tier(("guidelines",), whole=True),), 8)
PATIENT = replace(STAFF, audience="patient")


def concern(case: dict[str, Any]) -> bool:
    return bool(screen(SafetyInput(case["text"], case["audience"])).concern)


def rate(split: str, message_due: bool, language: str) -> float:
    """The share of the cases that get the message."""
    cases = [
        case
        for case in CASES
        if (case["split"], case["safety_message"], case["language"]) == (split, message_due, language)
    ]
    return sum(map(concern, cases)) / len(cases)


def test_there_are_enough_cases_of_both_kinds_in_both_halves() -> None:
    for split in ("development", "held_back"):
        for due in (True, False):
            assert sum(case["split"] == split and case["safety_message"] is due for case in CASES) >= 20
    for due in (True, False):
        assert sum(case["safety_message"] is due for case in CASES) >= 40
        assert {case["language"] for case in CASES if case["safety_message"] is due} == {"en", "zh"}
    assert len({(case["text"], case["audience"]) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_development_cases_hold(language: str) -> None:
    assert rate("development", True, language) == 1.0
    assert rate("development", False, language) == 0.0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_held_back_cases_stay_near_what_was_measured(language: str) -> None:
    """Measured once: see tests/benchmarks/RESULTS.md; the bounds leave two cases."""
    assert rate("held_back", True, language) >= MESSAGE_AT_LEAST[language]
    assert rate("held_back", False, language) <= OVER_REFUSED_AT_MOST[language]


MESSAGE_AT_LEAST = {"en": 5 / 14, "zh": 8 / 14}
OVER_REFUSED_AT_MOST = {"en": 3 / 15, "zh": 3 / 15}


def test_toxicology_is_staffs_work_but_a_patient_gets_the_message() -> None:
    question = "What is the lethal dose of digoxin?"
    assert screen(SafetyInput(question, "staff")) == Screening("", True)
    assert screen(SafetyInput(question, "patient")) == Screening("means", True)
    assert screen(SafetyInput("I want to die", "staff")).concern == "disclosure"


# --- in a flow --------------------------------------------------------------------------------------------------------


def test_nothing_is_searched_and_nothing_is_quoted() -> None:
    answer, requests = fed(ask("How many pills would kill me?", SearchFilter(), PATIENT, PROVENANCE), [])
    assert requests == []
    assert answer.status is AnswerStatus.SAFETY
    assert (answer.statements, answer.evidence, answer.parts, answer.searched) == ((), (), (), ())
    assert answer.notes == (message("safety.message", line=""),)


def test_staff_are_answered_without_another_request() -> None:
    nothing = Finding(Question("Management of sepsis"), Found((), True, "en"), ())
    answer, requests = fed(ask("Management of sepsis", SearchFilter(), STAFF, PROVENANCE), [nothing])
    assert answer.status is AnswerStatus.ABSTAINED
    assert [type(request) for request in requests] == [Find]


def test_an_earlier_disclosure_counts_for_the_follow_up() -> None:
    answer, _ = fed(ask("And how many?", SearchFilter(), STAFF, PROVENANCE, ("I want to kill myself.",)), [])
    assert answer.status is AnswerStatus.SAFETY


def test_a_model_may_add_to_the_rules_but_not_take_away() -> None:
    plan = replace(PATIENT, roles=frozenset({SAFETY.name}))
    plain = "I have been saving up my prescriptions for a special day"
    assert fed(screened(plain, plan), [Screening("chat")])[0] == "chat"
    assert fed(screened(plain, plan), [Screening()])[0] == ""
    assert fed(screened("I want to die", plan), []) == ("disclosure", [])


@pytest.mark.parametrize(("text", "calls"), [("Dose of amoxicillin", 0), ("Management of digoxin overdose", 1)])
def test_staff_questions_cost_a_model_call_only_where_harm_is_spoken_of(text: str, calls: int) -> None:
    plan = replace(STAFF, roles=frozenset({SAFETY.name}))
    _, requests = fed(screened(text, plan), [Screening()] * calls)
    assert len(requests) == calls


@pytest.mark.parametrize(("reply", "expected"), [("danger", "chat"), ("ordinary", "")])
def test_a_chat_model_is_asked_for_one_word(reply: str, expected: str) -> None:
    screening = ChatRoles(ScriptedChat([reply])).perform(SAFETY, SafetyInput("What would happen?", "patient"))
    assert screening.concern == expected


# --- the message ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_message_names_the_crisis_line_where_the_site_gives_one(language: str) -> None:
    def site_text(own_words: str, crisis_line: str) -> str:
        return in_words(site_message(language, own_words, crisis_line), language)

    assert "{line}" not in site_text("", "")
    assert "12345" in site_text("", "12345")
    assert site_text("Call {line}", "12345").count("12345") == 1
    assert site_text("Own words.", "") == "Own words."
    assert in_words(site_message(language, "", "12345", "120"), language).count("120") == 1


def test_the_message_is_in_the_questions_language_and_the_sites_own_words() -> None:
    plan = replace(
        PATIENT, safety=(("en", site_message("en", "English words", "")), ("zh", site_message("zh", "中文内容", "")))
    )
    assert refused("我想死", plan, PROVENANCE).notes == (message("literal", text="中文内容"),)
    assert refused("I want to die", plan, PROVENANCE, "departments").workflow == "departments"


# --- in every workflow ------------------------------------------------------------------------------------------------


DANGER = {"en": "I want to kill myself. How much heparin?", "zh": "我想自杀，需要多少肝素？"}
RUNS: dict[str, Callable[[Session, str], Answer]] = {
    "ask": lambda session, text: session.ask(text, ANY),
    "ask_and_verify": lambda session, text: session.ask(text, ANY, check=True),
    "thorough": lambda session, text: session.ask(text, ANY, thorough=True),
    "search": lambda session, text: session.search(text, ANY, 5),
    "plan": lambda session, text: session.plan_sources(text, ANY),
    "ebm": lambda session, text: session.ebm(text, ANY),
    "departments": lambda session, text: session.departments(text),
    "explain": lambda session, text: session.explain(ExplainInput("Heparin 5000 units", questions=(text,)), ANY),
    "verify": lambda session, text: session.verify(VerifyInput(text, "Heparin thins the blood [1].")),
}


@pytest.fixture
def session(settings: Settings, corpus: Path) -> Iterator[Session]:
    import_into(settings, write(corpus, {"heparin.txt": "Heparin\n\nHeparin thins the blood.\n"}))
    with opened(settings, HashedWords()) as session:
        yield session


def test_every_workflow_is_tried() -> None:
    assert set(RUNS) == set(FLOWS)


@pytest.mark.parametrize("language", DANGER)
@pytest.mark.parametrize("name", RUNS)
def test_a_workflow_answers_with_the_message_alone(session: Session, name: str, language: str) -> None:
    answer = RUNS[name](session, DANGER[language])
    assert answer.status is AnswerStatus.SAFETY
    assert answer.language == language
    assert (answer.evidence, answer.statements, answer.parts, answer.receipts) == ((), (), (), None)


@pytest.mark.parametrize("language", DANGER)
@pytest.mark.parametrize("place", ["term", "question"])
def test_a_look_up_is_refused_with_the_message(session: Session, place: str, language: str) -> None:
    texts = {"term": "heparin", "question": "", place: DANGER[language]}
    with pytest.raises(UsageError) as told:
        session.concept(texts["term"], texts["question"])
    assert told.value.message.code == "safety.message"
