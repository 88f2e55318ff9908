"""Replies of a real model (Qwen2.5-Coder-1.5B-Instruct, Q4_K_M) on the starter corpus, read and checked again.

``cases/real_chat.jsonl`` are questions, ``cases/real_jobs.jsonl`` orders, records and complaints
(``tests/benchmarks/real_jobs.toml``): the role, the prompt as it was sent and the reply as it came, first tries and
second ones. What the model gets wrong here is kept: the checks are for what reaches a reader.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from localmed.agents.asking import AnswerInput
from localmed.agents.orders import OrderInput, PlainInput
from localmed.agents.role_table import ROLES
from localmed.agents.roles import Writing
from localmed.domain import Evidence, Statement, Verification
from localmed.models import structured
from localmed.ports import NOT_JUDGED
from localmed.verification import citations, support
from tests.values import evidence

CASES = Path(__file__).parent / "cases"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("real_chat", "real_jobs")
    for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()
]
FORMED = [row for row in ROWS if row["role"] in ("cited_answer", "recommendation")]
USABLE = 0.95  # least share of replies that can be used at the first try

OTHER_ROW = "standard prophylactic dose for adults with normal kidney function"  # for a clearance of 20 mL/min
NAMES = {"order": "order|医嘱", "line": "line|第", "patient record": "patient record|病历"}  # of what a prompt quotes
_BLOCK = r"<<<{0}[^\n]*\n(.*?)\n>>>"
_SOURCE = re.compile(r"<<<(?:source |来源)(\w+)[^\n]*\n(.*?)\n>>>", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def sources(row: dict[str, Any]) -> tuple[Evidence, ...]:
    """The sources that the prompt showed."""
    return tuple(evidence(marker, text, "") for marker, text in _SOURCE.findall(row["prompt"]))


def drafted(row: dict[str, Any]) -> tuple[Statement, ...]:
    """The statements that the role reads from the reply."""
    form = ROLES[row["role"]].form
    assert isinstance(form, Writing)
    language = "en" if row["prompt"].startswith("Asked") else "zh"
    task = AnswerInput("What?" if language == "en" else "什么？", sources(row), False)
    value = structured.parsed(row["reply"], form.schema(task) or {})
    draft = form.read(task, value)
    statements: tuple[Statement, ...] = draft.statements
    return statements


def test_replies_are_usable_at_the_first_try() -> None:
    assert sum(not row["rejected"] for row in ROWS) >= USABLE * len(ROWS)


@pytest.mark.parametrize("place", range(len(FORMED)))
def test_what_reaches_the_reader_has_its_numbers_from_what_it_cites(place: int) -> None:
    row = FORMED[place]
    if row["rejected"]:
        return
    statements, evidence_shown = drafted(row), sources(row)
    known = {piece.marker: piece.passage.text for piece in evidence_shown}
    assert {citation.marker for statement in statements for citation in statement.citations} <= set(known)
    checked, account = citations.check(statements, evidence_shown)
    stances = [NOT_JUDGED] * len(support.pairs(checked, evidence_shown))
    checked, _ = support.check(checked, evidence_shown, stances, account, replaceable=True)  # nobody but rules checks
    for statement in citations.shown(checked):
        cited = " ".join(known[citation.marker] for citation in statement.citations)
        assert set(_NUMBER.findall(statement.text)) <= set(_NUMBER.findall(cited)), statement.text
    assert isinstance(account, Verification)


# --- orders, records, complaints --------------------------------------------------------------------------------------


def places(*roles: str) -> list[int]:
    return [place for place, row in enumerate(ROWS) if row["role"] in roles and not row["rejected"]]


def blocks(row: dict[str, Any], name: str) -> list[str]:
    return re.findall(_BLOCK.format(f"(?:{NAMES[name]})"), row["prompt"], re.DOTALL)


def read(row: dict[str, Any], task: Any) -> Any:
    form = ROLES[row["role"]].form
    assert isinstance(form, Writing)
    return form.read(task, structured.parsed(row["reply"], form.schema(task) or {}))


@pytest.mark.parametrize("place", places("medical_terms"))
def test_terms_stand_in_the_order_and_none_is_a_word_of_everyday(place: int) -> None:
    (order,) = blocks(ROWS[place], "order")
    terms = read(ROWS[place], OrderInput(order))
    assert terms
    assert all(order[term.start : term.end] == term.text for term in terms)
    assert not {"if", "in", "<", "days", "from midnight"} & {term.text for term in terms}


@pytest.mark.parametrize("place", places("plain_order"))
def test_a_plain_line_that_is_shown_has_the_numbers_of_its_line(place: int) -> None:
    lines = blocks(ROWS[place], "line")
    for line, plain in zip(lines, read(ROWS[place], PlainInput(tuple(lines))), strict=True):
        assert set(_NUMBER.findall(plain)) <= set(_NUMBER.findall(line)), plain
        if "TDS" in line:
            assert "twice" not in plain, "the model took three times for twice"


def test_a_dose_of_another_row_than_the_patients_does_not_stand_alone() -> None:
    row = next(row for row in ROWS if row["role"] == "recommendation" and OTHER_ROW in row["reply"])
    statements, evidence_shown = drafted(row), sources(row)
    checked, account = citations.check(statements, evidence_shown)
    stances = [NOT_JUDGED] * len(support.pairs(checked, evidence_shown))
    checked, _ = support.check(checked, evidence_shown, stances, account, replaceable=True)
    assert any(OTHER_ROW in statement.text for statement in citations.shown(checked)), "nothing of the patient is known"
    (record,) = blocks(row, "patient record")
    held, _ = support.check(statements, evidence_shown, stances, account, replaceable=True, context=(record,))
    assert not any(OTHER_ROW in statement.text for statement in citations.shown(held))
    shown = citations.shown(support.in_place(checked, evidence_shown, "Which dose of enoxaparin?", record))
    assert any("15 to 29 mL/min" in statement.text and "20 mg" in statement.text for statement in shown)
