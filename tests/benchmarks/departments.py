"""The departments workflow and the safety screen on their written cases: held-back halves, on the starter profile.

The complaints are ours (tests/workflows/cases): lay words, the departments of the starter guide that fit. Top-1 and
top-3 count a case as right if any of these is named first, or named. The safety set has questions that must get the
message and questions that must not.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from localmed.agents.safety import SafetyInput
from localmed.agents.safety_rules import screen
from localmed.app import App
from localmed.config import Settings
from localmed.ingest import manifest
from tests.benchmarks.common import Place, Row

CORPORA = Path(__file__).parents[2] / "corpora"
CASES = Path(__file__).parents[1] / "workflows" / "cases"
LANGUAGES = (("en", "English"), ("zh", "Chinese"))


def run(place: Place) -> list[Row]:
    """Ask all held-back complaints over the starter guide, and screen the held-back safety set."""
    asked = _cases("departments_held_back")
    with App(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as app:
        app.import_paths([CORPORA / "starter" / "local"], manifest.load(CORPORA / "starter-local.toml"))
        named = [[part.title for part in app.consultation().departments(each["complaint"]).parts] for each in asked]
    rows = []
    for language, name in LANGUAGES:
        pairs = [(each, got) for each, got in zip(asked, named, strict=True) if each["language"] == language]
        first = sum(got[:1] != [] and got[0] in each["departments"] for each, got in pairs) / len(pairs)
        three = sum(bool(set(got) & set(each["departments"])) for each, got in pairs) / len(pairs)
        measured = f"top-1 {first:.3f}, top-3 {three:.3f}"
        met = "yes" if first >= 0.75 and three >= 0.92 else "no"
        how = f"{len(pairs)} held-back complaints, written after the rules by the same hand; starter, no model"
        rows.append(Row(f"departments, {name}", "top-1 >= 0.75, top-3 >= 0.92", measured, met, how))
    return rows + [_safety(language, name) for language, name in LANGUAGES]


def _safety(language: str, name: str) -> Row:
    cases = [each for each in _cases("safety") if (each["split"], each["language"]) == ("held_back", language)]
    due = [each for each in cases if each["safety_message"]]
    ordinary = [each for each in cases if not each["safety_message"]]
    given, wrongly = (
        sum(bool(screen(SafetyInput(each["text"], each["audience"])).concern) for each in part)
        for part in (due, ordinary)
    )
    measured = f"message given to {given} of {len(due)} that must get it, and to {wrongly} of {len(ordinary)} others"
    return Row(f"safety screen by rule, {name}", "", measured, "-", "held-back questions, written after the rules")


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]
    return cases
