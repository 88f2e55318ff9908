"""A short self-test of a newly chosen chat model: the roles in which it is at least as good as the rules.

A weak model loses answers that rules give: one called verbatim sentences conflicts and used children's doses for
adults. Each role has a few cases (``self_test.toml``); one failed case leaves the role to the rules. A role without
cases follows a similar one (``LIKE``). The check of answers is measured on 30 labelled pairs in each language
(``pairs.toml``): the area under the ROC curve of the model's probabilities must reach ``LEAST``, and at the limit in
force at most ``AT_LIMIT`` may pass or be stopped wrongly. Passing is no proof of quality: the few cases only exclude
models that are certainly worse than rules.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from localmed.answering import asking, check, guidance, judging, orders, practice, write
from localmed.answering.role_table import ROLES
from localmed.answering.roles import LANGUAGES, Choosing, Performer, Role, words
from localmed.domain import Evidence, Origin, Passage, Statement, Status, Support, digest
from localmed.domain.errors import Rejected
from localmed.domain.ports import Stance
from localmed.domain.roc import area_under_roc
from localmed.safety import safety
from localmed.text.language import detect

Passes = Callable[[Any], bool]
FILE = Path(__file__).with_name("self_test.toml")
PAIRS = Path(__file__).with_name("pairs.toml")
LEAST = 0.85  # area under the ROC curve of the check, in each language; chance comes to it once in 2,000 tests
AT_LIMIT = (1, 3)  # of 15 wrong statements that pass, and of 15 right ones that are stopped, in each language
KINDS = ("right", "wrong")

# Roles that stand or fall with another, whose work theirs resembles most.
LIKE: Mapping[str, str] = {
    "final_check": "coherence",
    "appraisal": "badge",
    "badge_strict": "badge",
    "graph_terms": "medical_terms",
    "retrieval_question": "self_contained",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A role's tasks, and whether the replies are right."""

    role: Role
    tasks: tuple[Any, ...]
    passes: Passes  # of all replies, in the tasks' order


def failed(
    performer: Performer,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
    cases: Sequence[Case] = (),
) -> frozenset[str]:
    """The names of the roles that ``performer`` fails in; the model's exceptions pass through."""
    unfit: set[str] = set()
    cases = cases or all_cases()
    for number, case in enumerate(cases, 1):
        if case.role.name not in unfit and not _passed(performer, case):
            unfit.add(case.role.name)
        progress(number, len(cases))
    return frozenset(unfit | {name for name, like in LIKE.items() if like in unfit})


def _passed(performer: Performer, case: Case) -> bool:
    try:
        return case.passes([performer.perform(case.role, task) for task in case.tasks])
    except Rejected:
        return False


def all_cases() -> tuple[Case, ...]:
    """All cases, grouped by role."""
    return tuple(case for case, _ in _cases())


@cache
def questions() -> Mapping[str, str]:
    """The fingerprint of each role's cases and prompt, for which a stored result is valid."""
    of_role: dict[str, list[object]] = {}
    for case, row in _cases():
        of_role.setdefault(case.role.name, []).append(row)
    own = {name: [_prompt(ROLES[name]), *rows] for name, rows in of_role.items()}
    alike = {name: [_prompt(ROLES[name]), *own[like]] for name, like in LIKE.items()}
    return {name: digest(json.dumps(parts, sort_keys=True)) for name, parts in {**own, **alike}.items()}


def _prompt(role: Role) -> list[object]:
    form = role.form
    names = {language: dict(words("quoted_names", language)) for language in LANGUAGES}
    return [dict(role.instructions) if form else {}, dict(form.labels) if isinstance(form, Choosing) else {}, names]


def _cases() -> Iterator[tuple[Case, Mapping[str, Any]]]:
    table = tomllib.loads(FILE.read_text("utf-8"))
    for name, make in _MAKERS.items():
        yield from ((make(row), row) for row in table[name])
    pairs = tomllib.loads(PAIRS.read_text("utf-8"))
    yield from ((_check(language, pairs[language]), {"pairs": pairs[language]}) for language in LANGUAGES)


def _one(role: Role, task: Any, passes: Passes) -> Case:
    """A case of one task."""
    return Case(role, (task,), lambda replies: passes(replies[0]))


def _relevance(row: Mapping[str, Any]) -> Case:
    task = asking.RelevanceInput(row["question"], tuple(map(_passage, row["passages"])))
    return _one(
        asking.RELEVANCE, task, lambda reply: [value >= asking.RELEVANT for value in reply] == list(row["helps"])
    )


def _coherence(row: Mapping[str, Any]) -> Case:
    source = _evidence("1", row["source"])
    statements = tuple(_generated(text, source) for text in row["statements"])
    wrong = tuple(place for place, agrees in enumerate(row["agrees"]) if not agrees)
    task = asking.CoherenceInput(row["source"], statements, (source,))
    return _one(asking.COHERENCE, task, lambda reply: reply.conflicting == wrong)


def _badge(row: Mapping[str, Any]) -> Case:
    source = _evidence("1", row["context"])
    task = judging.JudgingInput(row["question"], (source,), (_generated(row["statement"], source),))
    return _one(judging.BADGE, task, lambda vote: astuple(vote.criteria) == tuple(row["criteria"]))


def _answer(row: Mapping[str, Any]) -> Case:
    evidence = tuple(_evidence(str(number), text) for number, text in enumerate(row["sources"], 1))
    task = write.WriteInput(row["question"], write.of_evidence(evidence), patient=row.get("record", ""))

    def passes(reply: Any) -> bool:
        text = " ".join(one.text for one in reply.drafted)
        return row["holds"] in text and row["lacks"] not in text

    return _one(write.WRITE, task, passes)


def _department(row: Mapping[str, Any]) -> Case:
    departments = tuple(
        guidance.Department(name, (_evidence(str(number), text),))
        for number, (name, text) in enumerate(row["departments"].items(), 1)
    )
    task = guidance.GuidanceInput(row["complaint"], departments)
    return _one(guidance.DEPARTMENT, task, lambda reply: [one.department for one in reply][:1] == [row["first"]])


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Case]] = {
    "relevance": _relevance,
    "coherence": _coherence,
    "badge": _badge,
    "safety": lambda row: _one(
        safety.SAFETY, safety.SafetyInput(row["text"], "patient"), lambda reply: bool(reply.concern) is row["danger"]
    ),
    "answer": _answer,
    "department": _department,
    "plain": lambda row: _one(orders.PLAIN_ORDER, orders.PlainInput(tuple(row["lines"])), all),
    "parts": lambda row: _one(
        asking.DECOMPOSITION,
        asking.QuestionInput(row["question"]),
        lambda parts: (len(parts) if len(parts) > 1 else 0) == row["count"],
    ),
    "follow_up": lambda row: _one(
        asking.SELF_CONTAINED,
        asking.FollowUp(row["question"], (row["earlier"],)),
        lambda question: row["holds"] in question and question != row["question"],
    ),
    "terms": lambda row: _one(
        orders.MEDICAL_TERMS, orders.OrderInput(row["order"]), lambda terms: row["holds"] in {it.text for it in terms}
    ),
    "pico": lambda row: _one(
        practice.PICO, practice.PicoInput(row["question"]), lambda pico: row["holds"] in pico.intervention
    ),
}


def _check(language: str, rows: Sequence[Mapping[str, str]]) -> Case:
    """All pairs of ``language``, which the model must separate, also at the limit in force."""
    pairs = [(row["text"], row[kind]) for row in rows for kind in KINDS]
    tasks = tuple(
        check.SupportInput(check.ALONE[language], tuple(pairs[at : at + check.TOGETHER]))
        for at in range(0, len(pairs), check.TOGETHER)
    )
    return Case(check.CHECK, tasks, lambda replies: area(replies) >= LEAST and _at_limit(replies))


def _at_limit(replies: Sequence[Sequence[Stance]]) -> bool:
    """Whether few wrong statements pass the check and few right ones are stopped."""
    right, wrong = (
        [check.verdict(stance, check.MODEL).support is Support.SUPPORTED for stance in given]
        for given in _given(replies)
    )
    return sum(wrong) <= AT_LIMIT[0] and len(right) - sum(right) <= AT_LIMIT[1]


def _given(replies: Sequence[Sequence[Stance]]) -> tuple[list[Stance], list[Stance]]:
    """The probabilities of right statements, and of wrong ones."""
    given = [stance for reply in replies for stance in reply]
    return given[:: len(KINDS)], given[1 :: len(KINDS)]


def area(replies: Sequence[Sequence[Stance]]) -> float:
    """The area under the ROC curve of right against wrong statements; ties count half."""
    right, wrong = ([stance.entailment for stance in given] for given in _given(replies))
    return area_under_roc(right, wrong) or 0.0


def _generated(text: str, source: Evidence) -> Statement:
    return Statement(text, (source.citation(0, len(source.passage.text)),), Origin.GENERATED)


def _evidence(marker: str, text: str) -> Evidence:
    return Evidence(marker, _passage(text), "Guideline", "2024", Status.CURRENT, "", "", "", "text/plain")


def _passage(text: str, title: str = "Guideline") -> Passage:
    return Passage(digest(text), digest(title), "self-test", detect(text), "2024", title, (), text, f"0-{len(text)}")
