"""The hazard log and the evidence cards are complete; ``tests/lint.py`` checks that the tests they name exist."""

from __future__ import annotations

from localmed.upkeep import evidence

LOG = evidence.hazards()
FIELDS = {"id", "hazard", "cause", "control", "severity", "likelihood", "remains", "tests"}


def test_each_hazard_has_a_control_with_tests_and_a_rating() -> None:
    for entry in LOG["hazards"]:
        assert set(entry) == FIELDS, entry["id"]
        assert all(entry.values()), entry["id"]
        assert {entry["severity"], entry["likelihood"]} <= set(range(1, 6)), entry["id"]
    ids = [entry["id"] for entry in LOG["hazards"]]
    assert len(ids) == len(set(ids))
    assert any("not a medical device" in claim for claim in LOG["not_claimed"])


def test_every_source_attribute_is_answered() -> None:
    attributes = evidence.cards()["attributes"]
    sections = [row["place"].split(")")[0][1:] for row in attributes]
    assert [sections.count(str(number)) for number in range(1, 10)] == [4, 4, 2, 4, 2, 4, 5, 4, 2]  # 31 in all
    assert len({row["place"] for row in attributes}) == 31
    assert all(row["name"] and row["value"] for row in attributes)
