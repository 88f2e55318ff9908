"""The departments workflow on written cases, on the starter profile without a chat model.

The complaints and emergencies of ``departments_held`` are by another author than the guide's and the rules'. A
complaint is right if one of its departments is named, apart from the Emergency Department, which comes first where a
text is worded like an emergency. An emergency is right if that department comes first or the site's safety message is
given, which names it. The complaints of tests/workflows/cases are ours.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from localmed.answering.guidance import SHOWN
from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus
from localmed.domain.parts import DepartmentPart
from localmed.ingest import manifest
from localmed.retrieval.guide import is_emergency
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
OURS = HERE.parent / "workflows" / "cases" / "departments_held_back.toml"
LANGUAGES = (("en", "English"), ("zh", "Chinese"))
OWN = "held-back complaints, written after the rules by the same hand; starter, no model"
OTHER = "by another author, seen once before the order of the search took the place of rules; starter, no model"

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
    own, other = cases(OURS, language), cases(HERE / "departments_held" / "complaints.toml", language)
    emergencies = cases(HERE / "departments_held" / "emergencies.toml", language)
    ordinary = [(case["departments"], session.departments(case["text"])) for case in other]
    return [
        _accuracy(f"departments, {name}", [
            (case["departments"], _departments(session.departments(case["complaint"]))) for case in own], OWN),
        _accuracy(f"departments of another author's complaints, {name}", [
            (right, _departments(answer)) for right, answer in ordinary], OTHER),
        _rate(f"emergencies sent to Emergency first, {name}", 0.98, [*map(urgent, map(session.departments, (
            case["text"] for case in emergencies)))]),
        _rate(f"ordinary complaints with Emergency first, {name}", 0.10, [
            urgent(answer) for _, answer in ordinary], most=True),
    ]  # fmt: skip


def _accuracy(what: str, pairs: list[Pair], how: str) -> Row:
    places = [(right, [one for one in names if not is_emergency(one)]) for right, names in pairs]
    first, named = (sum(bool({*names[:most]} & {*right}) for right, names in places) for most in (1, SHOWN))
    measured = f"first {first}, among {SHOWN} {named} of {len(pairs)}"
    met = "yes" if named >= 0.75 * len(pairs) else "no"
    return Row(what, f"among {SHOWN} >= 0.75", measured, met, f"{len(pairs)} {how}")


def _rate(what: str, bound: float, outcomes: list[bool], most: bool = False) -> Row:
    share = sum(outcomes) / len(outcomes)
    met = "yes" if (share <= bound if most else share >= bound) else "no"
    sign = "<=" if most else ">="
    return Row(what, f"{sign} {bound:.2f}", f"{sum(outcomes)} of {len(outcomes)} ({share:.3f})", met, OTHER)


def cases(path: Path, language: str) -> list[dict[str, Any]]:
    """The cases of a file in one language."""
    lists: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text("utf-8"))
    return [case for entries in lists.values() for case in entries if case["language"] == language]
