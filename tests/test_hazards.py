"""The hazard log: every control has a test that shows it, and the test is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from localmed.operations import evidence

ROOT = Path(__file__).parent.parent
LOG = evidence.hazards()
FIELDS = {"id", "hazard", "cause", "control", "severity", "likelihood", "remains", "tests"}


@pytest.mark.parametrize("entry", LOG["hazards"], ids=lambda entry: entry["id"])
def test_each_hazard_is_shown_to_be_controlled(entry: dict[str, object]) -> None:
    assert set(entry) == FIELDS
    assert all(entry.values())
    assert entry["severity"] in range(1, 6)
    assert entry["likelihood"] in range(1, 6)
    tests = entry["tests"]
    assert isinstance(tests, list)
    assert not [name for name in tests if not there(name)]


def there(name: str) -> bool:
    """Whether ``file::function`` is a test of the project."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if not path.exists() or not function.startswith("test_"):
        return False
    tree = ast.parse(path.read_text("utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body)


def test_a_test_that_vanished_is_seen() -> None:
    assert there("tests/test_hazards.py::test_a_test_that_vanished_is_seen")
    assert not there("tests/test_hazards.py::test_that_was_never_written")
    assert not there("tests/test_never.py::test_a_test_that_vanished_is_seen")


def test_the_log_has_no_entry_twice_and_says_what_is_not_claimed() -> None:
    ids = [entry["id"] for entry in LOG["hazards"]]
    assert len(ids) == len(set(ids))
    assert any("not a medical device" in claim for claim in LOG["not_claimed"])


def test_the_log_is_that_of_the_docs() -> None:
    assert (ROOT / "localmed/operations/hazards.toml").resolve() == ROOT / "docs/hazards.toml"


def test_every_source_attribute_is_answered() -> None:
    attributes = evidence.cards()["attributes"]
    sections = [row["place"].split(")")[0][1:] for row in attributes]
    assert [sections.count(str(number)) for number in range(1, 10)] == [4, 4, 2, 4, 2, 4, 5, 4, 2]  # 31 in all
    assert len({row["place"] for row in attributes}) == 31
    assert all(row["name"] and row["value"] for row in attributes)
