"""Ranges in the cells of a table."""

from __future__ import annotations

import pytest

from localmed.text.measures import ANY, within


@pytest.mark.parametrize(
    ("cell", "value", "held"),
    [
        ("15 to 29 mL/min", 29, True),
        ("15mL/min-29mL/min", 30, False),
        ("30 mL/min or more", 30, True),
        ("30 mL/min或以上", 1030, True),
        ("Below 15", 15, False),
        ("≤ 15", 15, True),
        ("≥90 mL/min/1.73 m²", 90, True),
        ("65岁以上", 64, False),
        ("> 1,000", 1000, False),
        ("45 kg", 45, None),  # no range
        ("Day 1 to 3", 2, None),
        ("Enoxaparin", 1, None),
    ],
)
def test_whether_a_cell_is_a_range_that_holds_a_value(cell: str, value: float, held: bool | None) -> None:
    holds = within(ANY, "", cell)
    assert (holds and holds(value)) is held
