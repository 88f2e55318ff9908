"""A short self-test of a chat model, run when it is chosen: in which roles it does at least what the rules do.

A weak model loses answers that rules give: one called sentences copied word for word conflicts, and let children's
doses answer for adults. Each role has a few cases with a right answer (``self_test.toml``); one failed case leaves the
role to the rules. A role without cases of its own goes with the one it is most like (``LIKE``). Passing is no proof
that a model is good, and the cases are few: they keep out what is certainly worse than rules.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from localmed.agents import asking, decomposing, guidance, judging, orders, practice, safety
from localmed.agents.prompts import LANGUAGES, words
from localmed.agents.role_table import ROLES
from localmed.agents.roles import Choosing, Performer, Role
from localmed.answering import check, write
from localmed.domain import Evidence, Origin, Passage, Statement, Status, digest
from localmed.errors import Rejected
from localmed.language import detect

Passes = Callable[[Any], bool]
FILE = Path(__file__).with_name("self_test.toml")

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
    """One thing asked of a role, and whether the reply is right."""

    role: Role
    task: Any
    passes: Passes


def failed(
    performer: Performer,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
    cases: Sequence[Case] = (),
) -> frozenset[str]:
    """The names of the roles that ``performer`` fails in, of ``cases`` (all there are); raise what the model raises."""
    unfit: set[str] = set()
    cases = cases or all_cases()
    for number, case in enumerate(cases, 1):
        if case.role.name not in unfit and not _passed(performer, case):
            unfit.add(case.role.name)
        progress(number, len(cases))
    return frozenset(unfit | {name for name, like in LIKE.items() if like in unfit})


def _passed(performer: Performer, case: Case) -> bool:
    try:
        return case.passes(performer.perform(case.role, case.task))
    except Rejected:
        return False


def all_cases() -> tuple[Case, ...]:
    """The cases, those of one role after another."""
    return tuple(case for case, _ in _cases())


@cache
def questions() -> Mapping[str, str]:
    """Role -> the fingerprint of what a model is asked in it: the cases that it stands or falls by, and its prompt.

    A result of the test is one of these questions and of no others.
    """
    of_role: dict[str, list[object]] = {}
    for case, row in _cases():
        of_role.setdefault(case.role.name, []).append(row)
    own = {name: [_prompt(ROLES[name]), *rows] for name, rows in of_role.items()}
    alike = {name: [_prompt(ROLES[name]), *own[like]] for name, like in LIKE.items()}
    return {name: digest(json.dumps(parts, sort_keys=True)) for name, parts in {**own, **alike}.items()}


def _prompt(role: Role) -> list[object]:
    form = role.form
    names = {language: dict(words("quoted_names", language)) for language in LANGUAGES}
    return [dict(form.instructions) if form else {}, dict(form.labels) if isinstance(form, Choosing) else {}, names]


def _cases() -> Iterator[tuple[Case, Mapping[str, Any]]]:
    table = tomllib.loads(FILE.read_text("utf-8"))
    for name, make in _MAKERS.items():
        yield from ((make(row), row) for row in table[name])
    yield from ((_check(row), row) for row in table["coherence"])


def _relevance(row: Mapping[str, Any]) -> Case:
    passages = tuple(_passage(text, "Guideline") for text in row["passages"])
    right = list(row["helps"])
    task = asking.RelevanceInput(row["question"], passages)
    return Case(asking.RELEVANCE, task, lambda reply: [value >= asking.RELEVANT for value in reply] == right)


def _coherence(row: Mapping[str, Any]) -> Case:
    source = _evidence("1", row["source"])
    statements = tuple(_generated(text, source) for text in row["statements"])
    wrong = tuple(place for place, agrees in enumerate(row["agrees"]) if not agrees)
    task = asking.CoherenceInput(row["source"], statements, (source,))
    return Case(asking.COHERENCE, task, lambda reply: reply.conflicting == wrong)


def _badge(row: Mapping[str, Any]) -> Case:
    source = _evidence("1", row["context"])
    task = judging.JudgingInput(row["question"], (source,), (_generated(row["statement"], source),))
    expected = tuple(row["criteria"])

    def passes(vote: Any) -> bool:
        criteria = vote.criteria
        return (criteria.answers, criteria.related, criteria.grounded) == expected

    return Case(judging.BADGE, task, passes)


def _safety(row: Mapping[str, Any]) -> Case:
    task = safety.SafetyInput(row["text"], "patient")
    return Case(safety.SAFETY, task, lambda screening: bool(screening.concern) is row["danger"])


def _answer(row: Mapping[str, Any]) -> Case:
    evidence = tuple(_evidence(str(number), text) for number, text in enumerate(row["sources"], 1))
    task = write.WriteInput(row["question"], write.of_evidence(evidence), patient=row.get("record", ""))

    def passes(reply: Any) -> bool:
        text = " ".join(one.text for one in reply.drafted)
        return row["holds"] in text and row["lacks"] not in text

    return Case(write.WRITE, task, passes)


def _check(row: Mapping[str, Any]) -> Case:
    """One label each: the statements of ``agrees`` are carried by the source, the others are not."""
    pairs = tuple((row["source"], text) for text in row["statements"])
    right = list(row["agrees"])
    return Case(
        check.CHECK,
        check.SupportInput(row["source"], pairs),
        lambda stances: [stance.entailment >= check.SUPPORTED for stance in stances] == right,
    )


def _department(row: Mapping[str, Any]) -> Case:
    departments = tuple(
        guidance.Department(name, (), (_evidence(str(number), text),))
        for number, (name, text) in enumerate(row["departments"].items(), 1)
    )
    task = guidance.GuidanceInput(row["complaint"], departments, False)
    return Case(
        guidance.DEPARTMENT,
        task,
        lambda reply: [advised.department for advised in reply.advised][:1] == [row["first"]],
    )


def _plain(row: Mapping[str, Any]) -> Case:
    return Case(orders.PLAIN_ORDER, orders.PlainInput(tuple(row["lines"])), all)


def _parts(row: Mapping[str, Any]) -> Case:
    task = asking.QuestionInput(row["question"])
    return Case(decomposing.DECOMPOSITION, task, lambda parts: (len(parts) if len(parts) > 1 else 0) == row["count"])


def _follow_up(row: Mapping[str, Any]) -> Case:
    task = asking.FollowUp(row["question"], (row["earlier"],))
    return Case(asking.SELF_CONTAINED, task, lambda question: row["holds"] in question and question != row["question"])


def _terms(row: Mapping[str, Any]) -> Case:
    task = orders.OrderInput(row["order"])
    return Case(orders.MEDICAL_TERMS, task, lambda terms: row["holds"] in {term.text for term in terms})


def _pico(row: Mapping[str, Any]) -> Case:
    task = practice.PicoInput(row["question"])
    return Case(practice.PICO, task, lambda pico: row["holds"] in pico.intervention)


_MAKERS: Mapping[str, Callable[[Mapping[str, Any]], Case]] = {
    "relevance": _relevance,
    "coherence": _coherence,
    "badge": _badge,
    "safety": _safety,
    "answer": _answer,
    "department": _department,
    "plain": _plain,
    "parts": _parts,
    "follow_up": _follow_up,
    "terms": _terms,
    "pico": _pico,
}


def _generated(text: str, source: Evidence) -> Statement:
    return Statement(text, (source.citation(0, len(source.passage.text)),), Origin.GENERATED)


def _evidence(marker: str, text: str) -> Evidence:
    return Evidence(marker, _passage(text, "Guideline"), "Guideline", "2024", Status.CURRENT, "", "", "", "text/plain")


def _passage(text: str, title: str) -> Passage:
    return Passage(digest(text), digest(title), "self-test", detect(text), "2024", title, (), text, f"0-{len(text)}")
