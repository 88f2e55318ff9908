"""Clinical words stand in one list each: only the tables hold medicines, units, negations and publication types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from localmed.text import medicines, units
from localmed.text.tables import listed, table

PACKAGE = Path(__file__).parents[2] / "localmed"
ELSEWHERE = ("text", "messages", "presentation", "prompts")
LIST = 4  # names of one sort in a module's texts from which they are a list

# Modules that hold such words for another purpose, and which.
ALLOWED: dict[str, dict[str, str]] = {
    "medicines": {},
    "units": {},
    "negations": {
        "safety/safety_rules.py": "wordings of wanting to die, each a phrase of its own",
    },
    "publication types": {},
}


def texts(path: Path) -> Iterator[str]:
    """The string constants of a module, without docstrings and without what a chat model is told."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


@cache
def modules() -> dict[str, str]:
    """The constants of every module outside the tables, by its name."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in ELSEWHERE)
    return {str(path.relative_to(PACKAGE)): "\n".join(texts(path)) for path in paths}


def _words(names: list[str], text: str) -> set[str]:
    """Those of ``names`` that ``text`` has as words of their own, as in a list or an alternation."""
    return {name for name in names if re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", text)}


def named_medicines(text: str) -> set[str]:
    return {name for mention in medicines.mentions(text) for name in mention.ingredients if len(name) > 3}


def named_units(text: str) -> set[str]:
    """Units of doses: times and counts are everyday words."""
    doses = [unit for unit in units.units("amounts") if unit.kind in ("mg", "mL")]
    return _words([name for unit in doses for name in unit.written if len(name) > 1], text)


def named_negations(text: str) -> set[str]:
    cues = [cue.rstrip("*") for entry in ("denies", "denied", "record") for language in ("en", "zh")
            for cue in listed(table("negation")[entry][language])]  # fmt: skip
    words = "never neither without denies denied nor avoid 否认 没有 不得 不应 不宜 勿 未见"
    strong = set(re.findall(r"\S+", words))
    return _words([cue for cue in dict.fromkeys(cues) if cue in strong], text)


def named_types(text: str) -> set[str]:
    return _words([name.lower() for name in table("publications")["types"] if " " in name or "-" in name], text.lower())


SORTS = {
    "medicines": named_medicines,
    "units": named_units,
    "negations": named_negations,
    "publication types": named_types,
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.slow
def test_no_other_module_holds_a_list(sort: str) -> None:
    lists = {name: names for name, text in modules().items() if len(names := SORTS[sort](text)) >= LIST}
    assert {name: sorted(names) for name, names in lists.items() if name not in ALLOWED[sort]} == {}
    assert not set(ALLOWED[sort]) - set(lists), "allowed, and needs no allowance"
