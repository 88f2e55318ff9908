"""Recordings: every value comes back, a replay comes to the identical answer, and what was changed shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localmed.agents.asking import CITED_ANSWER, KEYWORDS, RELEVANCE, Draft, Keywords, Relevance
from localmed.agents.role_table import role_table
from localmed.agents.roles import Rules
from localmed.domain import Answer, AnswerStatus, Kind, SearchFilter
from localmed.errors import InputError, Rejected
from localmed.hooks import Hooks
from localmed.ports import Stance
from localmed.retrieval.tiers import Tier
from localmed.workflows.ask import ask
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver
from localmed.workflows.recording import Recording, codec, replay
from tests.fakes import services
from tests.values import PROVENANCE, in_words, quotation
from tests.workflows.test_ask import ENOUGH, PLAN, QUESTION, SOURCE, Finder, search_result

ROLES = {role.name: role for role in (KEYWORDS, RELEVANCE, CITED_ANSWER)}
GIVEN = (QUESTION, SearchFilter(), Plan(PLAN.tiers, 8, 4), PROVENANCE, ())


class Rejecting:
    """A chat model whose replies cannot be used."""

    def perform(self, role: Any, task: Any) -> Any:
        raise Rejected("agents.nothing_said")


def recorded() -> tuple[str, Answer]:
    """A run in which a model's reply was rejected once."""
    rules: Rules = {
        KEYWORDS.name: lambda _: Keywords(("dose",)),
        RELEVANCE.name: lambda _: ENOUGH,
        CITED_ANSWER.name: lambda _: Draft((quotation(SOURCE, 0, 19),)),
    }
    recording = Recording()
    recording.begin("ask", GIVEN)
    served = role_table(ROLES, "rules", {"cited_answer": "chat"}, rules, Rejecting())
    answering = services(served, search=Finder().search, cite=lambda *_: (SOURCE,))
    driver = Driver(answering, Hooks(recorder=recording))
    answer = driver.run(ask(*GIVEN))
    return recording.finish(answer), answer


def test_a_replay_comes_to_the_identical_answer() -> None:
    text, answer = recorded()
    again, same = replay(text)
    assert same
    assert again == answer
    assert answer.status is AnswerStatus.ANSWERED
    assert any("could not be used" in in_words(note) for note in answer.notes)


def test_a_changed_result_shows() -> None:
    text, _ = recorded()
    kept = json.loads(text)
    draft = next(step for step in kept["steps"] if step["request"] == "cited_answer" and "result" in step)
    draft["result"]["statements"] = []
    again, same = replay(json.dumps(kept))
    assert not same
    assert again.status is AnswerStatus.ABSTAINED


def test_a_flow_that_asks_for_something_else_is_told() -> None:
    text, _ = recorded()
    kept = json.loads(text)
    kept["arguments"][0] = "Another question?"
    with pytest.raises(InputError, match="asks for something else"):
        replay(json.dumps(kept))
    kept = json.loads(text)
    del kept["steps"][2:]
    with pytest.raises(InputError):
        replay(json.dumps(kept))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"format": "localmed recording 5"}', "[" * 100_000, '{"format": 1, "workflow": "x"}'],
    ids=lambda text: text[:20],
)
def test_what_is_no_recording_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        replay(text)


def test_a_recording_of_another_version_is_refused_by_its_name() -> None:
    with pytest.raises(InputError, match=r"localmed recording 2\); this one reads localmed recording 5"):
        replay('{"format": "localmed recording 2", "workflow": "ask", "steps": []}')


@pytest.mark.parametrize("name", ["Path", "Role", "Recording", "__import__", "Rejected"])
def test_a_file_makes_no_value_of_another_class(name: str) -> None:
    with pytest.raises(ValueError, match="no value is called"):
        codec().decode({"type": name})


@pytest.mark.parametrize(
    "value",
    [
        search_result(),
        SOURCE,
        Relevance((0.1, 0.9), 0.5, ("x",)),
        Stance(0.1, 0.2, 0.7),
        Plan((Tier(("a",)),), 3, roles=frozenset({"b", "a"})),
        Kind.GUIDELINE,
        (1, "一", None, True, 0.25),
        {"a": (1, 2)},
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back(value: Any) -> None:
    assert codec().decode(json.loads(json.dumps(codec().encode(value)))) == value


def test_only_known_values_are_recorded() -> None:
    with pytest.raises(TypeError):
        codec().encode(object())
