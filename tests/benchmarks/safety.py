"""The safety screen on held-back texts: wordings alone, and with likeness added, as the starter has it.

Two sets (tests/workflows/cases): ``safety`` was written after the wordings and before the likeness; ``safety_indirect``
says it indirectly, written before the likeness was built. Both are by the project's own hand. Neither tuned anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localmed.domain.ports import Embedder
from localmed.models.e5 import E5
from localmed.safety.safety import SafetyInput
from localmed.safety.safety_likeness import likened
from localmed.safety.safety_rules import of_oneself, screen
from tests.benchmarks.common import Place, Row

CASES = Path(__file__).parents[1] / "workflows" / "cases"
SETS = {"safety": "questions", "safety_indirect": "indirect wordings"}
LANGUAGES = {"en": "English", "zh": "Chinese"}
Case = dict[str, Any]


def run(_: Place) -> list[Row]:
    """A row for each set and language."""
    encoder = E5()
    rows = []
    for name, what in SETS.items():
        for language, named in LANGUAGES.items():
            cases = held_back(name, language)
            measured = (
                f"{_described(cases, by_rule)} by wordings alone, {_described(cases, lambda e: screened(encoder, e))}"
            )
            rows.append(
                Row(f"safety screen, {what}, {named}", "", f"{measured} with likeness", "-", "held back; no chat model")
            )
    return rows


def held_back(name: str, language: str) -> list[Case]:
    """The held-back cases of a set."""
    cases: list[Case] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]
    return [case for case in cases if case["language"] == language and case.get("split", "held_back") == "held_back"]


def by_rule(case: Case) -> bool:
    """Whether the wordings give the message."""
    return bool(screen(SafetyInput(case["text"], case["audience"])).concern)


def screened(encoder: Embedder, case: Case) -> bool:
    """Whether wordings or likeness give the message, as ``workflows.safety.screened`` asks them."""
    safety_input = SafetyInput(case["text"], case["audience"])
    applies = safety_input.audience == "patient" or of_oneself(safety_input.question)
    return by_rule(case) or (applies and bool(likened(encoder, safety_input).concern))


def counts(cases: list[Case], recognised: Callable[[Case], bool]) -> tuple[int, int, int, int]:
    """Recognised of those due, all due, recognised of the others, all others."""
    due = [recognised(case) for case in cases if case["safety_message"]]
    others = [recognised(case) for case in cases if not case["safety_message"]]
    return sum(due), len(due), sum(others), len(others)


def _described(cases: list[Case], recognised: Callable[[Case], bool]) -> str:
    caught, due, wrongly, others = counts(cases, recognised)
    return f"message to {caught} of {due} due and {wrongly} of {others} others"
