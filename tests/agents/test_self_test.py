"""The self-test of a chat model: a competent one passes, a weak one is left the roles that it can do."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from localmed.agents import self_test
from localmed.agents.chat import ChatRoles
from localmed.agents.role_table import ROLES, role_table
from localmed.agents.roles import Choosing, Role
from localmed.agents.self_test import LIKE, Case, all_cases, failed, questions
from localmed.models.registry import tested
from localmed.ports import ChatIdentity, Message
from tests.scripted import ScriptedChat
from tests.standin import role_of

JUDGED = tuple(Case(case.role, case.task, bool) for case in all_cases())  # a reply is right if it is true
WEAK = {
    "coherence": {"en": "conflicts", "zh": "矛盾"},
    "check": {"en": "contradicted", "zh": "矛盾"},
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
    assert "write" in unfit


def test_every_role_with_cases_is_tested_in_both_languages() -> None:
    languages: dict[str, set[str]] = {}
    for case in all_cases():
        languages.setdefault(case.role.name, set()).add(case.task.language)
    assert all(read == {"en", "zh"} for read in languages.values()), languages
    assert set(LIKE.values()) <= set(languages)
    assert set(LIKE) | set(languages) <= set(ROLES)


def test_rules_serve_what_a_model_is_unfit_for() -> None:
    roles = {name: ROLES[name] for name in ("department", "plain_order", "plan")}
    rules = {"department": lambda _: "by rules", "plan": lambda _: "by rules"}
    table = role_table(roles, "chat", {"plan": "chat"}, rules, Weak(), list(roles))
    assert {name: table.by(role) for name, role in roles.items()} == {
        "department": "rules",
        "plain_order": "off",
        "plan": "chat",
    }, "the settings have the last word"


def test_a_result_counts_for_what_was_asked_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, before = ChatIdentity("m", "sha", 0), dict(questions())
    tested.keep(tmp_path, model, ["safety"], before)
    assert tested.unfit(tested.read(tmp_path), model, questions()) == frozenset({"safety"})
    changed = tmp_path / "self_test.toml"
    changed.write_text(self_test.FILE.read_text("utf-8").replace("The canteen opens at noon", "Lunch is at noon"))
    monkeypatch.setattr(self_test, "FILE", changed)
    questions.cache_clear()
    try:
        assert tested.unfit(tested.read(tmp_path), model, questions()) == frozenset({"safety", "relevance"})
    finally:
        questions.cache_clear()
    tested.keep(tmp_path, model, [], None)
    assert tested.unfit(tested.read(tmp_path), model, {}) == frozenset(), (
        "who trusts a model trusts it whatever is asked"
    )


def test_a_result_that_does_not_say_what_was_asked_is_none(tmp_path: Path) -> None:
    (tmp_path / tested.FILE).write_text('{"model": "m sha", "unfit": []}')
    assert tested.unfit(tested.read(tmp_path), ChatIdentity("m", "sha", 0), questions()) == frozenset(questions())


def test_what_is_asked_holds_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(questions())
    other = dataclasses.replace(ROLES["pico"], form=ROLES["relevance"].form)
    monkeypatch.setattr(self_test, "ROLES", {**ROLES, "pico": other})
    questions.cache_clear()
    try:
        assert {name for name, now in questions().items() if before[name] != now} == {"pico"}
    finally:
        questions.cache_clear()


def test_a_result_is_of_the_very_model_that_was_tested(tmp_path: Path) -> None:
    tested.keep(tmp_path, ChatIdentity("m", "sha", 0), [], questions())
    assert tested.unfit(tested.read(tmp_path), ChatIdentity("m", "sha", 0), questions()) == frozenset()
    for other in (ChatIdentity("m", "other", 0), ChatIdentity("n", "sha", 0), ChatIdentity("m", "", 0)):
        assert tested.unfit(tested.read(tmp_path), other, questions()) is None, "it was not tested"


def test_what_is_asked_holds_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    before, form = dict(questions()), ROLES["relevance"].form
    assert isinstance(form, Choosing)
    labels = {**form.labels, "zh": ("相关", "不相关")}
    other = dataclasses.replace(ROLES["relevance"], form=dataclasses.replace(form, labels=labels))
    monkeypatch.setattr(self_test, "ROLES", {**ROLES, "relevance": other})
    questions.cache_clear()
    try:
        assert {name for name, now in questions().items() if before[name] != now} >= {"relevance"}
    finally:
        questions.cache_clear()
