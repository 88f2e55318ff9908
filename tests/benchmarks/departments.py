"""The departments workflow on its written cases: the held-back half, on the starter profile.

The complaints are ours (tests/workflows/cases): lay words, the departments of the starter guide that fit. Top-1 and
top-3 count a case as right if any of these is named first, or named.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer
from localmed.domain.parts import DepartmentPart
from localmed.ingest import manifest
from localmed.operations import importing
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
CASES = Path(__file__).parents[1] / "workflows" / "cases"
LANGUAGES = (("en", "English"), ("zh", "Chinese"))


def _departments(answer: Answer) -> list[str]:
    return [part.name for part in answer.parts if isinstance(part, DepartmentPart)]


def run(place: Place) -> list[Row]:
    """Ask all held-back complaints over the starter guide."""
    cases = _cases("departments_held_back")
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [CORPORA / "starter" / "local"], manifest.load(CORPORA / "starter-local.toml"))
        named = [_departments(session.departments(case["complaint"])) for case in cases]
    rows = []
    for language, name in LANGUAGES:
        pairs = [
            (case["departments"], names)
            for case, names in zip(cases, named, strict=True)
            if case["language"] == language
        ]
        first = sum(names[:1] != [] and names[0] in expected for expected, names in pairs) / len(pairs)
        three = sum(bool(set(names) & set(expected)) for expected, names in pairs) / len(pairs)
        measured = f"top-1 {first:.3f}, top-3 {three:.3f}"
        met = "yes" if first >= 0.75 and three >= 0.92 else "no"
        how = f"{len(pairs)} held-back complaints, written after the rules by the same hand; starter, no model"
        rows.append(Row(f"departments, {name}", "top-1 >= 0.75, top-3 >= 0.92", measured, met, how))
    return rows


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]
    return cases
