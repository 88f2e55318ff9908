"""The self-test of a chat model: a competent one passes, a weak one is left the roles that it can do."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from localmed.answering import self_test
from localmed.answering.chat import ChatRoles
from localmed.answering.check import CHECK
from localmed.answering.role_table import ROLES, role_table
from localmed.answering.roles import Role
from localmed.answering.self_test import LIKE, Case, all_cases, failed, questions
from localmed.domain.ports import ChatIdentity, Message, Stance
from localmed.models.registry import tested
from tests.scripted import ScriptedChat
from tests.standin import role_of

JUDGED = tuple(Case(case.role, case.tasks, all) for case in all_cases())  # a reply is right if it is true
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


def test_a_model_that_says_the_same_of_everything_serves_no_role() -> None:
    def reply(messages: Sequence[Message]) -> Any:
        language = "en" if messages[0].content.isascii() else "zh"
        return WEAK.get(role_of(messages), {}).get(language, "")

    unfit = failed(ChatRoles(ScriptedChat(reply)))
    assert {case.role.name for case in all_cases()} <= unfit
    assert "write" in unfit


def test_a_model_that_puts_an_order_into_plain_words_as_told_passes() -> None:
    said = {
        "Aspirin 75 mg PO bd": "The order says: take aspirin 75 mg by mouth twice a day.",
        "Do not give ibuprofen": "The order says: do not give ibuprofen.",
        "阿司匹林 100 mg po qd": "医嘱写明：阿司匹林100毫克，口服，每日一次。",
        "暂停布洛芬": "医嘱写明：暂停布洛芬。",
    }

    def reply(messages: Sequence[Message]) -> Any:
        return {"lines": [plain for line, plain in said.items() if line in messages[-1].content]}

    plain = [case for case in all_cases() if case.role.name == "plain_order"]
    assert len(plain) == 2
    assert failed(ChatRoles(ScriptedChat(reply)), cases=plain) == frozenset()


class Checker:
    """Gives each statement what ``says`` tells of it; passes everything else."""

    def __init__(self, says: Callable[[str, str], float]) -> None:
        self._says = says

    def perform(self, role: Role, task: Any) -> Any:
        given = [self._says(*pair) for pair in task.pairs]
        return tuple(Stance(value, 1 - value, 0.0) for value in given)


CHECKING = tuple(case for case in all_cases() if case.role is CHECK)
PAIRS = tomllib.loads(self_test.PAIRS.read_text("utf-8"))
RIGHT = {row["right"] for language in ("en", "zh") for row in PAIRS[language]}


def test_a_checker_is_measured_on_sixty_pairs_half_of_them_right_in_each_language() -> None:
    pairs = [pair for case in CHECKING for task in case.tasks for pair in task.pairs]
    assert len(pairs) == len(set(pairs)) == 60
    assert sum(text in RIGHT for _, text in pairs) == 30
    assert [sum(len(task.pairs) for task in case.tasks) for case in CHECKING] == [30, 30]


@pytest.mark.parametrize(
    ("says", "fit"),
    [
        (lambda _, text: 0.9 if text in RIGHT else 0.1, True),
        (lambda _, text: 0.3 if text in RIGHT else 0.2, False),  # nothing would ever pass
        (lambda _, text: 0.9 if text in RIGHT else 0.6, False),  # everything would
        (lambda _, text: 1.0, False),
        (lambda _, text: 0.1 if text in RIGHT else 0.9, False),
        (lambda text, _: 1.0 if text.isascii() else 0.0, False),
        # knows the languages apart, or one only
        (lambda _, text: float(text in RIGHT) if text.isascii() else 0.5, False),
        (lambda text, statement: len({*text} & {*statement}) / len({*statement}), False),  # counts letters
    ],
)
def test_a_model_checks_answers_only_where_it_tells_right_from_wrong(
    says: Callable[[str, str], float], fit: bool
) -> None:
    assert ("check" not in failed(Checker(says), cases=CHECKING)) is fit


def test_every_role_with_cases_is_tested_in_both_languages() -> None:
    languages: dict[str, set[str]] = {}
    for case in all_cases():
        languages.setdefault(case.role.name, set()).add(case.tasks[0].language)
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
