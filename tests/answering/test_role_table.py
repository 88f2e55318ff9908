"""Who serves which role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from localmed.answering.asking import COHERENCE, RELEVANCE, ROLES, SELF_KNOWLEDGE
from localmed.answering.role_table import ROLES as EVERY
from localmed.answering.role_table import By, RoleTable, role_table
from localmed.answering.roles import Role
from localmed.domain.errors import BadSettings, UsageError

KNOWN = {role.name: role for role in ROLES}
RULES = {role.name: (lambda task: ("rules", task)) for role in ROLES if role is not SELF_KNOWLEDGE}


class Model:
    def perform(self, role: Role, task: Any) -> Any:
        return ("chat", task)


def chosen(usual: By, settings: Mapping[str, str] | None = None, model: Model | None = None) -> RoleTable:
    return role_table(KNOWN, usual, settings or {}, RULES, model)


@pytest.mark.parametrize("role", ["medical_terms", "retrieval_question"])
def test_what_tables_know_costs_no_call_unless_the_settings_say_so(role: str) -> None:
    rules = {role: lambda _: "by rules"}
    only = {role: EVERY[role]}
    assert role_table(only, "chat", {}, rules, Model()).by(EVERY[role]) == "rules"
    assert role_table(only, "chat", {role: "chat"}, rules, Model()).by(EVERY[role]) == "chat"


def test_what_costs_a_call_a_study_is_off_unless_the_settings_say_so() -> None:
    only = {"appraisal": EVERY["appraisal"]}
    assert role_table(only, "chat", {}, {}, Model()).by(EVERY["appraisal"]) == "off"
    assert role_table(only, "chat", {"appraisal": "chat"}, {}, Model()).by(EVERY["appraisal"]) == "chat"


def test_a_model_serves_what_it_is_set_to() -> None:
    served = chosen("chat", {"coherence": "rules"}, Model())
    assert served.perform(RELEVANCE, 1) == ("chat", 1)
    assert served.perform(COHERENCE, 1) == ("rules", 1)
    assert served.without_chat().perform(RELEVANCE, 1) == ("rules", 1)
    assert chosen("rules", {"relevance": "chat"}, Model()).by(RELEVANCE) == "chat"
    assert chosen("rules", {}, Model()).by(COHERENCE) == "rules"


def test_a_role_that_is_off_is_not_performed() -> None:
    served = chosen("rules", {"relevance": "off"})
    assert "relevance" not in served.on
    assert "coherence" in served.on
    with pytest.raises(UsageError, match="relevance"):
        served.perform(RELEVANCE, 1)


@pytest.mark.parametrize(
    "settings", [{"poetry": "rules"}, {"relevance": "magic"}, {"self_knowledge": "rules"}], ids=str
)
def test_settings_that_ask_for_what_there_is_not(settings: dict[str, str]) -> None:
    with pytest.raises(BadSettings):
        chosen("rules", settings)


def test_a_role_with_a_model_of_its_own_is_served_by_it() -> None:
    class Tuned:
        def perform(self, role: Role, task: Any) -> Any:
            return ("tuned", task)

    own = {RELEVANCE.name: Tuned()}
    for usual in ("rules", "chat"):
        served = role_table(KNOWN, usual, {}, RULES, None, {RELEVANCE.name}, own)
        assert served.by(RELEVANCE) == "chat"
        assert served.perform(RELEVANCE, 1) == ("tuned", 1)
        assert served.perform(COHERENCE, 1) == ("rules", 1), "the others are served as before"
        assert served.without_chat().perform(RELEVANCE, 1) == ("rules", 1), "what it writes may be unusable"
    assert role_table(KNOWN, "chat", {"relevance": "rules"}, RULES, Model(), (), own).by(RELEVANCE) == "rules"
