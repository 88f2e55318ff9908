"""A model that fails is not asked again in that run; the others are."""

from __future__ import annotations

from typing import Any

import pytest

from localmed.answering.asking import RELEVANCE
from localmed.answering.planning import PLAN
from localmed.answering.role_table import RoleTable
from localmed.answering.roles import Role
from localmed.domain.errors import Busy, LocalmedError, ModelError
from localmed.domain.ports import NOT_JUDGED
from localmed.workflows.flow import Driver, Judge, Perform, Step
from tests.fakes import services

RULES = {role.name: lambda _: "rules" for role in (PLAN, RELEVANCE)}


class Model:
    """Says its name, or fails; counts how often it was asked."""

    def __init__(self, name: str, error: LocalmedError | None = None) -> None:
        self.name, self.error, self.asked = name, error, 0

    def perform(self, role: Role, task: Any) -> Any:
        self.asked += 1
        if self.error:
            raise self.error
        return self.name


def table(chat: Model, planner: Model) -> RoleTable:
    serves: dict[str, Any] = {PLAN.name: "chat", RELEVANCE.name: "chat"}
    return RoleTable({PLAN.name: PLAN, RELEVANCE.name: RELEVANCE}, serves, RULES, chat, {PLAN.name: planner})


def asked() -> Step[list[Any]]:
    replies: list[Any] = []
    for role in (PLAN, RELEVANCE, PLAN, RELEVANCE):
        replies.append((yield Perform(role, 1)))
    return [*replies, *(yield Judge((("premise", "hypothesis"),)))]


@pytest.mark.parametrize("error", [ModelError("chat.stopped"), Busy("model.waiting", waiting=1)])
def test_a_planner_that_fails_leaves_the_chat_model(error: LocalmedError) -> None:
    chat, planner = Model("chat"), Model("planner", error)
    replies = Driver(services(table(chat, planner), judge=lambda pairs: ["judged"])).part(asked())
    assert replies == ["rules", "chat", "rules", "chat", "judged"]
    assert planner.asked == 1


def test_a_judge_that_fails_leaves_both() -> None:
    def judge(_: Any) -> Any:
        raise ModelError("chat.stopped")

    replies = Driver(services(table(Model("chat"), Model("planner")), judge=judge)).part(asked())
    assert replies == ["planner", "chat", "planner", "chat", NOT_JUDGED]
