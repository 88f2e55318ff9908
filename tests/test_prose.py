"""Prose is made in ``messages``, ``presentation`` and prompts only: no sentence of ours elsewhere, in no language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "localmed"

# What is free of prose; a folder, or a file.
DONE = ("domain",)
WORDS = re.compile(r"[A-Za-z][a-z'’-]*")
PROSE_WORDS, PROSE_HAN = 3, 4  # in a row, blanks between: from that many on it is a phrase
PHRASE = re.compile(
    rf"(?:^|[\s\"'(])[A-Za-z][a-z'’-]*,?(?: (?:[A-Za-z][a-z'’-]*|\{{\w*\}}|\d+)[,;:.]?){{{PROSE_WORDS - 1},}}"
)
HAN = re.compile(rf"[\u4e00-\u9fff]{{{PROSE_HAN},}}")
SQL = re.compile(r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|ALTER|DROP|WITH|ATTACH|VACUUM|REPLACE)\b")
REGEX = re.compile(r"\\[bswdSWD]|\(\?|\[\^|\|\b|\.\*|\]\*|\]\+|\)\?|\$$")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)).startswith(DONE))


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a module that are no docstrings, with their lines; of f-strings the parts that are written."""
    passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


def prose(text: str) -> bool:
    if SQL.match(text) or REGEX.search(text):
        return False
    return bool(PHRASE.search(text) or HAN.search(text))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_prose_is_made(path: Path) -> None:
    found = [f"{line}: {text}" for line, text in literals(ast.parse(path.read_text("utf-8"))) if prose(text)]
    assert not found
