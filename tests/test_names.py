"""A variable's name has its noun: ``hit``, ``statement`` or ``matches``, not a participle that leaves open of what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OPEN = {"each", "found", "given", "wanted", "asked", "said", "told", "gone", "heard", "got", "meant", "things", "stuff"}


def modules() -> list[Path]:
    return sorted(path for top in ("localmed", "tests", "corpora") for path in (ROOT / top).rglob("*.py"))


def bound(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a module gives to variables, parameters, fields and functions, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_names_have_their_noun(path: Path) -> None:
    assert not [
        f"{line}: {name}" for line, name in bound(ast.parse(path.read_text("utf-8"))) if name.strip("_") in OPEN
    ]


def test_an_open_name_is_seen() -> None:
    assert [name for _, name in bound(ast.parse("for each in hits: pass")) if name in OPEN] == ["each"]
