"""The fourteen reproductions name tests that there are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.benchmarks.reproductions import REPRODUCTIONS

TESTS = Path(__file__).parent


def test_they_are_fourteen() -> None:
    assert list(REPRODUCTIONS) == list(range(1, 15))


@pytest.mark.parametrize("number", REPRODUCTIONS)
def test_each_has_its_tests(number: int) -> None:
    assert REPRODUCTIONS[number].tests
    for named in REPRODUCTIONS[number].tests:
        file, _, name = named.partition("::")
        tree = ast.parse((TESTS / file).read_text("utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert (name in names) if name else any(one.startswith("test_") for one in names), named
