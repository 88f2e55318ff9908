"""Which row of a table a number of a question falls into."""

from __future__ import annotations

import pytest

from localmed.text.measures import by_name, falls_in, falls_in_sentence, misses_target, outside_reference


@pytest.mark.parametrize(
    ("question", "header", "cell", "held"),
    [
        ("clearance 29", "Clearance", "15 to 29 mL/min", True),
        ("clearance 30", "Clearance", "15mL/min-29mL/min", False),
        ("clearance 30", "Clearance", "30 mL/min or more", True),
        ("clearance 1,030", "Clearance", "30 mL/min或以上", True),
        ("clearance 15", "Clearance", "Below 15", False),
        ("clearance 15", "Clearance", "≤ 15", True),
        ("clearance 90", "Clearance", "≥90 mL/min/1.73 m²", True),
        ("score 1000", "Score", "> 1,000", False),
        ("64岁", "组别", "65岁以上", False),
        ("66岁", "组别", "65岁以上", True),
        ("82 year old, CrCl 22", "CrCl", "> 50", False),  # an age is no clearance
        ("eGFR 22", "CrCl", "15 to 29 mL/min", True),  # one kind, kidney function
        ("eGFR 22", "CrCl", "30 mL/min or more", False),
        ("CURB 65 score 3", "CURB-65 score", "3 to 5", True),
        ("NEWS 2 score 6", "NEWS2 score", "0 to 4", False),  # a name's number is no score
        ("score 1", "Severity", "Low (0 to 1)", True),
        ("165/95", "舒张压（mmHg）", "90至99", True),
        ("12/11", "舒张压（mmHg）", "≤ 99", False),  # a date
        ("3 yr old weighing 14kg", "Age", "12–18 years", False),
        ("3 yr old weighing 14kg", "Weight group", "10–15 kg", True),
        ("3 yr old", "Age (years)", "1–5", True),
        ("7 month old", "年龄（岁）", "6–9", False),
        ("8 year old", "Age", "6 months to 12 years", False),  # of two units none is taken
        ("score 3, 8 mg", "Score", "3 to 5", True),
        ("no number", "Score", "3 to 5", False),
        ("45 kg", "Weight", "45 kg", None),  # no range
        ("2", "Day", "Day 1 to 3", None),
        ("1", "Medicine", "Enoxaparin", None),
    ],
)
def test_whether_a_number_falls_into_the_range_of_a_row(
    question: str, header: str, cell: str, held: bool | None
) -> None:
    assert falls_in(question, header, cell) is held


def test_a_number_by_itself_is_a_range_where_the_table_has_others() -> None:
    assert falls_in("score 2", "Score", "2") is None
    assert [falls_in("score 2", "Score", cell, lone=True) for cell in ("2", "3")] == [True, False]


SYSTOLIC, DIASTOLIC = map(by_name, ("systolic blood pressure", "diastolic blood pressure"))


@pytest.mark.parametrize(
    ("text", "systolic", "diastolic", "missed"),
    [
        ("If blood pressure is 180/120 mmHg or more, refer.", True, False, False),
        ("blood pressure above 140/90", True, True, False),
        ("血压≥180/110 mmHg时转诊", True, True, False),
        ("Do not treat if BP is below 220/120", True, True, False),
        ("If blood pressure is not above 140/90, do not treat.", False, False, False),
        ("血压不高于200/120 mmHg时停用氨氯地平。", False, False, False),
        ("Lower the dose if blood pressure drops to below 100/60.", False, False, False),
        ("血压控制不佳（收缩压>180 mmHg）者禁用阿替普酶", False, False, False),
        ("Blood pressure more than 20/10 mmHg above goal", False, False, False),
        ("Record blood pressure over 24/48 hours.", False, False, False),
        ("Blood pressure should be below 180/100 mmHg", False, False, True),
        ("Lower BP to below 185/110 before alteplase", False, False, True),
        ("应将血压控制在180/100 mmHg以下", False, False, True),
        ("应立即测血压，收缩压低于90者补液", False, False, False),
        ("blood pressure 150/90 was measured", False, False, False),
    ],
)
def test_ranges_and_targets_of_two_pressures(text: str, systolic: bool, diastolic: bool, missed: bool) -> None:
    found = [falls_in_sentence(text, SYSTOLIC, 196), falls_in_sentence(text, DIASTOLIC, 112)]
    assert [*found, misses_target(text, SYSTOLIC, 196)] == [systolic, diastolic, missed]


def test_of_two_ranges_either_holds_a_value() -> None:
    text = "Phone at once when potassium is 6.5 mmol/L or higher, or 2.5 mmol/L or lower."
    found = [falls_in_sentence(text, by_name("potassium"), value) for value in (2.2, 4.0, 6.8)]
    assert found == [True, False, True]


def test_a_value_outside_a_reference_range() -> None:
    text = "The reference range of serum potassium in adults is 3.5 to 5.0 mmol/L."
    assert [outside_reference(text, by_name("potassium"), value) for value in (3.1, 4.2, 5.9)] == [True, False, True]
    assert not outside_reference("Call if potassium is 3.5 to 5.0 mmol/L.", by_name("potassium"), 5.9)
    assert misses_target("The oxygen saturation target is 94 to 98 %.", by_name("oxygen saturation"), 91)
    assert misses_target("The HbA1c target for most adults is below 7.0 %.", by_name("HbA1c"), 8.1)


@pytest.mark.parametrize(
    ("text", "value", "held", "missed"),
    [
        ("If eGFR is above 30 and below 45, halve metformin.", 90, False, False),
        ("If eGFR is above 30 and below 45, halve metformin.", 40, True, False),
        ("eGFR between 30 and 45: halve the dose.", 40, True, False),
        ("The eGFR should be above 30.", 25, False, True),
        ("If the target is not reached and eGFR is above 30, add it.", 25, False, False),
        ("Keep the dose if eGFR is above 30.", 25, False, False),
        ("If the patient takes it, eGFR should be above 30.", 40, False, False),  # neither range nor sure target
    ],
)
def test_ranges_in_two_halves_and_conditions(text: str, value: float, held: bool, missed: bool) -> None:
    egfr = by_name("eGFR")
    assert (falls_in_sentence(text, egfr, value), misses_target(text, egfr, value)) == (held, missed)


@pytest.mark.parametrize(
    ("value", "text", "held"),
    [
        (28, "When glucose is above 4.0 mmol/L, give a biscuit", False),
        (5, "When glucose is above 4.0 mmol/L, give a biscuit", True),
        (28, "If glucose is above 14 mmol/L, measure ketones", True),
        (2.9, "If glucose is below 20 mmol/L, wait", False),
        (2.9, "If glucose is below 4.0 mmol/L, treat", True),
    ],
)
def test_a_range_with_an_ordinary_value_says_nothing_of_a_dangerous_one(value: float, text: str, held: bool) -> None:
    assert falls_in_sentence(text, by_name("glucose"), value) is held
