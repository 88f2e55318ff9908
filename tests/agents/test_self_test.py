"""The self-test of a chat model: a competent one passes, a weak one is left the roles that it can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localmed.agents.chat import ChatRoles
from localmed.agents.role_table import ROLES, role_table
from localmed.agents.roles import Role
from localmed.agents.self_test import LIKE, Case, all_cases, failed
from localmed.ports import Message
from tests.scripted import ScriptedChat
from tests.standin import role_of

JUDGED = tuple(Case(case.role, case.task, bool) for case in all_cases())  # a reply is right if it is true
WEAK = {
    "coherence": {"en": "conflicts", "zh": "矛盾"},
    "relevance": {"en": "relevant", "zh": "有关"},
    "badge": {"en": "true", "zh": "对"},
    "safety": {"en": "ordinary", "zh": "平常"},
}


class Weak:
    """A performer that fails in the roles it is told to."""

    def __init__(self, *roles: str) -> None:
        self._roles = roles
        self.performed: list[str] = []

    def perform(self, role: Role, task: Any) -> Any:
        """True but for those."""
        self.performed.append(role.name)
        return role.name not in self._roles


def test_a_role_that_fails_takes_those_like_it_along() -> None:
    assert failed(Weak(), cases=JUDGED) == frozenset()
    assert failed(Weak("coherence"), cases=JUDGED) == {"coherence", "final_check"}


def test_a_role_that_failed_once_is_not_asked_again() -> None:
    weak = Weak("relevance")
    failed(weak, cases=JUDGED)
    assert weak.performed.count("relevance") == 1


def test_a_model_that_says_the_same_of_everything_serves_no_role() -> None:
    def reply(messages: Sequence[Message]) -> Any:
        language = "en" if messages[0].content.isascii() else "zh"
        return WEAK.get(role_of(messages), {}).get(language, "")

    unfit = failed(ChatRoles(ScriptedChat(reply)))
    assert {case.role.name for case in all_cases()} <= unfit
    assert "recommendation" in unfit


def test_every_role_with_cases_is_tested_in_both_languages() -> None:
    languages: dict[str, set[str]] = {}
    for case in all_cases():
        languages.setdefault(case.role.name, set()).add(case.task.language)
    assert all(read == {"en", "zh"} for read in languages.values()), languages
    assert set(LIKE.values()) <= set(languages)
    assert set(LIKE) | set(languages) <= set(ROLES)


def test_rules_serve_what_a_model_is_unfit_for() -> None:
    roles = {name: ROLES[name] for name in ("relevance", "plain_order", "cited_answer")}
    rules = {"relevance": lambda _: "by rules", "cited_answer": lambda _: "by rules"}
    table = role_table(
        roles, "chat", {"cited_answer": "chat"}, rules, Weak(), ["relevance", "plain_order", "cited_answer"]
    )
    assert {name: table.by(role) for name, role in roles.items()} == {
        "relevance": "rules",
        "plain_order": "off",
        "cited_answer": "chat",
    }, "the settings have the last word"
