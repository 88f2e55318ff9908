"""The departments workflow on written cases, on the starter profile without a chat model.

The complaints of tests/workflows/cases are ours, written after the rules: a case is right if any of its departments is
named first, or named at all; a second one is named only where the guide names it. The emergencies and ordinary
complaints of tests/safety/cases are by another author: an emergency is right if the Emergency Department comes first or
the site's safety message is given, which names it; an ordinary one is wrong with either. Only held-back sets are
measured here.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus
from localmed.domain.parts import DepartmentPart
from localmed.ingest import manifest
from localmed.retrieval.guide import is_emergency
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
WORKFLOWS = Path(__file__).parents[1] / "workflows" / "cases"
CLINICAL = Path(__file__).parents[1] / "safety" / "cases"
LANGUAGES = (("en", "English"), ("zh", "Chinese"))
OWN = "held-back complaints, written after the rules by the same hand; starter, no model"
SPENT = "by another author than the guide's and the rules'; the likeness to emergencies was fitted on them since"
OTHER = "held-back, by a second author; looked at once when all was fitted; starter, no model"

Pair = tuple[list[str], list[str]]  # the departments that are right, and those that were named


def _departments(answer: Answer) -> list[str]:
    return [part.name for part in answer.parts if isinstance(part, DepartmentPart)]


def urgent(answer: Answer) -> bool:
    """Whether the answer sends to the Emergency Department before all else."""
    named = _departments(answer)
    return answer.status is AnswerStatus.SAFETY or bool(named and is_emergency(named[0]))


def run(place: Place) -> list[Row]:
    """Ask all held-back complaints over the starter guide."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        importing.import_paths(session, [CORPORA / "starter" / "local"], manifest.load(CORPORA / "starter-local.toml"))
        return [row for language, name in LANGUAGES for row in _rows(session, language, name)]


def _rows(session: Session, language: str, name: str) -> list[Row]:
    specialties = tomllib.loads((WORKFLOWS / "specialties.toml").read_text("utf-8"))
    own = cases(WORKFLOWS / "departments_held_back.toml", language)
    emergencies = cases(CLINICAL / "emergencies_last_look.toml", language)
    harmless = cases(CLINICAL / "ordinary_last_look.toml", language)
    ordinary = cases(CLINICAL / "ordinary_held_back.toml", language)
    answers = [session.departments(case["text"]) for case in ordinary]
    own_pairs = [(case["departments"], _departments(session.departments(case["complaint"]))) for case in own]
    pairs = [
        ([place for specialty in case["departments"] for place in specialties.get(specialty, ())], _departments(answer))
        for case, answer in zip(ordinary, answers, strict=True)
    ]
    return [
        _accuracy(f"departments, {name}", own_pairs, OWN),
        _accuracy(f"departments of ordinary complaints, {name}", [pair for pair in pairs if pair[0]], SPENT),
        _rate(f"emergencies sent to Emergency first, {name}", 0.98, [*map(urgent, map(session.departments, (
            case["text"] for case in emergencies)))]),
        _rate(f"ordinary complaints sent there wrongly, {name}", 0.10, [*map(urgent, map(session.departments, (
            case["text"] for case in harmless)))], most=True),
    ]  # fmt: skip


def _accuracy(what: str, pairs: list[Pair], how: str) -> Row:
    first = sum(names[:1] != [] and names[0] in expected for expected, names in pairs) / len(pairs)
    named = sum(bool(set(names) & set(expected)) for expected, names in pairs) / len(pairs)
    second = sum(len(names) > 1 for _, names in pairs)
    measured = f"first {first:.3f}, named at all {named:.3f}; {second} with a second one"
    return Row(what, "first >= 0.75", measured, "yes" if first >= 0.75 else "no", f"{len(pairs)} {how}")


def _rate(what: str, bound: float, outcomes: list[bool], most: bool = False) -> Row:
    share = sum(outcomes) / len(outcomes)
    met = "yes" if (share <= bound if most else share >= bound) else "no"
    sign = "<=" if most else ">="
    return Row(what, f"{sign} {bound:.2f}", f"{sum(outcomes)} of {len(outcomes)} ({share:.3f})", met, OTHER)


def cases(path: Path, language: str) -> list[dict[str, Any]]:
    """The cases of a file in one language."""
    lists: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text("utf-8"))
    return [case for entries in lists.values() for case in entries if case["language"] == language]
