from __future__ import annotations

import pytest

from localmed.text.amounts import amounts


def read(text: str) -> list[tuple[float, float, str]]:
    return [(round(amount.low, 9), round(amount.high, 9), amount.kind) for amount in amounts(text)]


@pytest.mark.parametrize(
    "text",
    ["0.5 g", "500 mg", "500mg", "500 milligrams", "500,000 micrograms", "500000 mcg", "500000 µg", "500000 μg",
     "５００ｍｇ", "500毫克", "0.5克", "500 MG", "0.5 g/day", "500 mg per day", "500 mg/d", "每日500毫克",
     "500毫克/日"],
)  # fmt: skip
def test_one_amount_however_it_is_written(text: str) -> None:
    assert read(text) == [(500.0, 500.0, "mg")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5-10 mg", (5, 10, "mg")),
        ("5 mg to 10 mg", (5, 10, "mg")),
        ("500 mg to 1 g", (500, 1000, "mg")),
        ("5～10毫克", (5, 10, "mg")),
        ("15 mg/kg", (15, 15, "mg/kg")),
        ("15 mg/kg/day", (15, 15, "mg/kg")),
        ("below 130/80 mmHg", (80, 130, "mmHg pair")),
        ("7.0 %", (7, 7, "%")),
        ("10 units/hour", (10, 10, "units")),
        ("10 单位", (10, 10, "units")),
        ("120 μmol/L", (0.12, 0.12, "mmol/L")),
        ("18 g/dL", (18000, 18000, "mg/dL")),
        ("1,000 mL", (1000, 1000, "mL")),
        ("53 mmol/mol", (53, 53, "mmol/mol")),
        ("5\u2009000 units", (5000, 5000, "units")),
        ("5 000-10 000 units", (5000, 10_000, "units")),
        ("1·5 mg", (1.5, 1.5, "mg")),
        ("0,25 mg", (0.25, 0.25, "mg")),
    ],
)
def test_units_ranges_and_pairs(text: str, expected: tuple[float, float, str]) -> None:
    assert read(text) == [expected]
    assert read(f"Give {text}, then wait.") == [expected]


@pytest.mark.parametrize(
    "text",
    ["under 50 kg", "for 3 days", "aged 12 years", "COVID-19 g", "B12 mg", "page 4", "4", "", "mg", "1 in 1000",
     "14:00", "2024-05-01", "5 gm2x", "5 grapes", "血压140升高", "每天3次", "体重50公斤", "500克拉霉素", "24小时",
     # a number that cannot be read has no tail
     "1,5 mg", "5,10 mg", "1,5000 mg", "1.234,5 mg", "12 34 mg", "5 0000 units", "1·2·5 mg", "·5 mg",
     "1-2 500 mg tablets", "2 500 mg tablets", "5 to 1,5 mg", "5-1,50 mg"],
)  # fmt: skip
def test_what_is_no_amount(text: str) -> None:
    assert read(text) == []


def test_a_ratio_is_shown_whole() -> None:
    assert [amount.written for amount in amounts("HbA1c 53 mmol/mol")] == ["53 mmol/mol"]
    assert [amount.written for amount in amounts("Give 5 mg,10 mg or 2 g")] == ["5 mg", "10 mg", "2 g"]


def test_several_in_order() -> None:
    stated = amounts("Start with 500 mg; the maximum is 2 g, or 1.5 g if frail.")
    assert [amount.written for amount in stated] == ["500 mg", "2 g", "1.5 g"]
    assert [amount.written for amount in amounts("4克，儿童15毫克/公斤，5 ML，130/80 mmhg")] == [
        "4克", "15毫克/公斤", "5 mL", "130/80 mmHg",
    ]  # fmt: skip
