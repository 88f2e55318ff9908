"""Which case a statement is for: bands of values, grades, opposites, what is absent, exceptions."""

from __future__ import annotations

import pytest

from localmed.verification import cases

OTHER = [
    ("Sodium 118, what fluid?", "If the sodium is between 125 and 130 mmol/L, restrict fluids."),
    ("K 6.2, she takes candesartan", "Between 5.5 and 5.9 mmol/L, halve the dose."),
    ("轻度有机磷中毒，氯解磷定首剂给多少？", "药物与分级：氯解磷定，中度；首剂：1.0~2.0 g；途径：肌内注射"),
    ("Dose in moderate asthma?", "Severe: give 50 mg once a day."),
    ("What do we give for a grade III ulcer?", "Grade II: hydrocolloid dressing."),
    ("IIb级的病变怎么处理", "分级：IIa；处理：观察"),
    ("Dose for an 8 year old?", "Adults aged 18 years and over take 10 mg."),
    ("慢性期怎么用药", "急性期每日两次。"),
    ("没有心脏病的病人输血阈值", "有冠心病的患者，阈值为80 g/L。"),
    ("The sedation score is 9, which band?", "Band: Moderate; Score: 3 to 7; Place: ward"),
]
SAME = [
    ("The sedation score is 9, which band?", "Band: Severe; Score: 8 to 11; Place: bay A"),
    ("What dose for the 2 year old?", "Dose: 5 to 10 mg; Age: 2 to 5 years"),
    ("Sodium 128, what fluid?", "If the sodium is between 125 and 130 mmol/L, restrict fluids."),
    ("K 6.2, she takes candesartan", "Stop it when the potassium is 6.0 mmol/L or more."),
    ("K 6.2 for 3 days", "Treat for 5 to 7 days."),
    ("哪一级需要手术", "三级患者需要手术。"),
    ("脑梗死溶栓的时间窗", "静脉溶栓在4.5小时内，前提是CT排除脑出血。"),
    ("没有心脏病的病人输血阈值", "一般患者阈值为70 g/L。"),
    ("Metformin when ill and not eating?", "A patient who cannot eat should stop metformin until eating again."),
]


@pytest.mark.parametrize(("question", "text"), OTHER)
def test_a_statement_for_another_case_is_known(question: str, text: str) -> None:
    assert cases.other(question, text)


@pytest.mark.parametrize(("question", "text"), SAME)
def test_a_statement_for_the_case_or_for_any_is_not_another_ones(question: str, text: str) -> None:
    assert not cases.other(question, text)


def test_an_exception_is_restricted_to_those_that_the_question_does_not_speak_of() -> None:
    text = "Limit the dose to 10 mg in patients with ischaemic heart disease."
    assert cases.restricted("What dose of salbutamol?", text)
    assert not cases.restricted("What dose of salbutamol in heart disease?", text)
    assert cases.restricted("静脉溶栓的时间窗", "未接受溶栓的患者，48小时内服用阿司匹林。")


def test_what_stands_beside_a_statement_may_be_for_another_case() -> None:
    first = "服用阿司匹林作二级预防的患者，3天内恢复。"
    assert cases.beside("服用阿司匹林作一级预防的患者，停药。", first)
    assert not cases.beside("不要同时服用布洛芬。", first)


def test_the_row_that_a_question_names_is_told_from_the_others() -> None:
    rows = ["Severity: Severe; Place: bay A", "Severity: Mild; Place: home"]
    assert cases.rows_of("Where do we put severe ones?", rows) == {rows[0]}
    assert not cases.rows_of("Where do we put them?", rows)


def test_the_values_outside_a_document_are_told_as_written() -> None:
    scope = "This guideline is for adults aged 18 years and over with a serum potassium of 5.5 mmol/L or more."
    assert cases.outside("Potassium is 2.8, what now?", scope) == ("potassium is 2.8",)
    assert cases.outside("a 4 year old", scope) == ("4 year old",)
    assert not cases.outside("Potassium is 5.8, what now?", scope)


@pytest.mark.parametrize(("question", "text", "other"), [
    ("enoxaparin for a 131 kg patient", "Body weight: 85 to 94 kg; Dose: 135 mg once daily", True),
    ("enoxaparin for a 90 kg patient", "Body weight: 85 to 94 kg; Dose: 135 mg once daily", False),
    ("enoxaparin for a 131 kg patient", "For anyone under 40 kg or over 104 kg, ask the pharmacist.", False),
    ("72kg man, enoxaparin?", "For anyone under 40 kg or over 104 kg, ask the pharmacist.", True),
    ("孩子18公斤，阿托品多少", "体重：10至15公斤；剂量：0.3 mg", True),
    ("孩子12公斤，阿托品多少", "体重：10至15公斤；剂量：0.3 mg", False),
    ("15 mg/kg or 30 mg/kg?", "Body weight: 85 to 94 kg; Dose: 135 mg", False),
    ("enoxaparin for a 131 kg patient", "Give 1 mg/kg twice a day.", False),
])  # fmt: skip
def test_the_row_of_another_body_weight_is_for_another_case(question: str, text: str, other: bool) -> None:
    assert cases.other(question, text) == other


def test_a_row_of_two_measures_is_the_patients_by_either() -> None:
    values = cases.given_values("三次测血压均为168/98 mmHg")
    assert len(values) == 2
    assert not cases.for_another(
        values, "分级：2级；收缩压（mmHg）：160至179；关系：和（或）；舒张压（mmHg）：100至109"
    )
    assert cases.for_another(values, "分级：3级；收缩压（mmHg）：≥180；关系：和（或）；舒张压（mmHg）：≥110")
