"""Recordings: every value comes back, a replay comes to the identical answer, and what was changed shows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from localmed.answering.check import CHECK
from localmed.answering.role_table import role_table
from localmed.answering.write import WRITE, Covers, Drafted, Written
from localmed.domain import Answer, AnswerStatus, Kind, SearchFilter, message
from localmed.domain.errors import InputError, Rejected
from localmed.domain.ports import Stance
from localmed.process.hooks import Hooks
from localmed.retrieval.tiers import Tier
from localmed.workflows.ask import ask
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver
from localmed.workflows.recording import FORMAT, Recording, codec, replay
from tests.fakes import services
from tests.values import PROVENANCE, evidence, finding
from tests.words import pattern

QUESTION = "What is the dose of adrenaline?"

SOURCE = evidence("1", "Give 500 micrograms of adrenaline. Repeat it.", "Anaphylaxis")
FINDING = finding(SOURCE.passage, question=QUESTION)
WROTE = Written(Covers.YES, (Drafted("Adrenaline: 500 micrograms.", (1,)),))
ROLES = {role.name: role for role in (WRITE, CHECK)}
PLAN = Plan((Tier(("ward",), whole=True),), 8, roles=frozenset(ROLES), chat=frozenset(ROLES))
GIVEN = (QUESTION, SearchFilter(), PLAN, PROVENANCE, ())


class Performing:
    """A chat model that writes, and whose check cannot be used."""

    def perform(self, role: Any, task: Any) -> Any:
        if role is CHECK:
            raise Rejected("agents.nothing_said")
        return WROTE


def recorded() -> tuple[str, Answer]:
    """A run in which a model's reply was rejected once."""
    recording = Recording()
    recording.begin("ask", GIVEN)
    served = role_table(ROLES, "chat", {}, {}, Performing())
    answering = services(served, find=lambda *_: FINDING, cite=lambda *_: (SOURCE,))
    answer = Driver(answering, Hooks(recorder=recording)).run(ask(*GIVEN))
    return recording.finish(answer), answer


def test_a_replay_comes_to_the_identical_answer() -> None:
    text, answer = recorded()
    again, same = replay(text)
    assert same
    assert again == answer
    assert answer.status is AnswerStatus.ANSWERED
    assert ("check", (("rejected", "agents.nothing_said"), ("by", "chat"))) in [
        (step.name, step.detail) for step in answer.trace
    ]


def test_a_changed_result_shows() -> None:
    text, _ = recorded()
    kept = json.loads(text)
    reply = next(step for step in kept["steps"] if step["request"] == "write")
    reply["result"] = codec().encode(replace(WROTE, drafted=()))
    del kept["steps"][kept["steps"].index(reply) + 1 :]
    again, same = replay(json.dumps(kept))
    assert not same
    assert again.status is AnswerStatus.SECTIONS


def test_a_flow_that_asks_for_something_else_is_told() -> None:
    text, _ = recorded()
    kept = json.loads(text)
    kept["arguments"][0] = "Another question?"
    with pytest.raises(InputError, match=pattern("recording.other_request")):
        replay(json.dumps(kept))
    kept = json.loads(text)
    del kept["steps"][2:]
    with pytest.raises(InputError):
        replay(json.dumps(kept))


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", json.dumps({"format": FORMAT}), "[" * 100_000, '{"format": 1, "workflow": "x"}'],
    ids=lambda text: text[:20],
)
def test_what_is_no_recording_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        replay(text)


def test_a_recording_of_another_version_is_refused_by_its_name() -> None:
    with pytest.raises(InputError) as refused:
        replay('{"format": "localmed recording 2", "workflow": "ask", "steps": []}')
    assert refused.value.message == message("recording.other_format", format="localmed recording 2", readable=FORMAT)


@pytest.mark.parametrize("name", ["Path", "Role", "Recording", "__import__", "Rejected"])
def test_a_file_makes_no_value_of_another_class(name: str) -> None:
    with pytest.raises(ValueError, match="no value is called"):
        codec().decode({"type": name})


@pytest.mark.parametrize(
    "value",
    [
        FINDING,
        SOURCE,
        WROTE,
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
