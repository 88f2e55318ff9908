"""The record held against the evidence: limits, allergies, pregnancy, medicines, people, and what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.clinical import measures, medicines
from localmed.clinical.publications import level
from localmed.domain import Evidence, Kind
from localmed.domain.patient import Measured, PatientRecord
from localmed.verification.applicability import Applied, applied, interacting, limits
from tests.values import evidence, quotation

METFORMIN = evidence(
    "1",
    "Metformin depends on the kidneys. If eGFR is below 30, stop metformin. If eGFR is 30 to 44, give metformin less. "
    "Check potassium with metformin.",
    "Diabetes in adults",
)
SAID = (quotation(METFORMIN, 0, 33),)


def record(**known: object) -> PatientRecord:
    return replace(PatientRecord(none_of=frozenset({"allergies", "medications"})), **known)  # type: ignore[arg-type]


def egfr(value: float) -> tuple[Measured, ...]:
    return (Measured("eGFR", value, f"{value:g} mL/min"), Measured("potassium", 4.0, "4 mmol/L"))


def held(known: PatientRecord, *sources: Evidence, language: str = "en") -> Applied:
    """The record against sources that are quoted whole."""
    said = tuple(quotation(each, 0, len(each.passage.text)) for each in sources)
    return applied(known, said, sources, language)


def test_a_limit_that_is_met_in_advice_against_something_is_a_warning() -> None:
    found = applied(record(results=egfr(25)), SAID, (METFORMIN,), "en")
    (warned,) = found.warnings
    assert warned.fact == ("eGFR", "the record has 25 mL/min; source 1 speaks of below 30: this patient is meant")
    assert METFORMIN.passage.text[warned.start : warned.end] == "If eGFR is below 30, stop metformin."
    assert [fact for fact in found.facts if "30 to 44" in fact[1] and fact[1].endswith("is not meant")]


@pytest.mark.parametrize(("value", "warnings"), [(29.9, 1), (30, 0), (44, 0), (90, 0)])
def test_the_edge_of_a_limit(value: float, warnings: int) -> None:
    assert len(applied(record(results=egfr(value)), SAID, (METFORMIN,), "en").warnings) == warnings


def test_what_a_source_asks_for_and_the_record_lacks_is_missing() -> None:
    found = applied(PatientRecord(sex="female", age=30), SAID, (METFORMIN,), "en")
    assert {name for name, _ in found.missing} == {"eGFR", "potassium", "Allergies", "Medicines"}
    assert applied(record(results=egfr(90)), SAID, (METFORMIN,), "en").missing == ()


@pytest.mark.parametrize(
    ("text", "name", "inside", "outside"),
    [
        ("If eGFR is below 30, stop.", "eGFR", 29, 30),
        ("eGFR of 30 or more", "eGFR", 30, 29),
        ("Creatinine clearance: 15 to 29 mL/min; Prophylaxis: 20 mg", "creatinine clearance", 29, 30),
        ("if potassium is above 5.5 mmol/L", "potassium", 6, 5),
        ("when the platelet count is below 75 × 10⁹/L", "platelets", 60, 80),
        ("systolic blood pressure below 90 mmHg", "systolic blood pressure", 80, 95),
        ("HbA1c above 64 mmol/mol", "HbA1c", 9, 7),
        ("people aged 85 years or over", "age", 85, 84),
        ("adults over 50 years", "age", 60, 40),
        ("Children aged 6 to 12 years", "age", 12, 13),
        ("85岁及以上的患者", "age", 85, 84),
        ("血钾高于5.5mmol/L时", "potassium", 6, 5),
        ("肌酐清除率低于30 mL/min者禁用", "creatinine clearance", 20, 40),
    ],
)
def test_limits(text: str, name: str, inside: float, outside: float) -> None:
    (limit,) = limits(text)
    assert limit.measure.name == name
    assert limit.holds(inside)
    assert not limit.holds(outside)


@pytest.mark.parametrize("text", ["eGFR is 30", "Give 40 mg for 5 years", "HbA1c every three months", "血压130/80"])
def test_what_is_no_limit(text: str) -> None:
    assert limits(text) == []


@pytest.mark.parametrize(
    ("allergy", "text", "named"),
    [
        ("penicillin (rash)", "Amoxicillin 500 mg three times a day.", "amoxicillin"),
        ("amoxicillin", "Give cefuroxime.", "cefuroxime"),
        ("aspirin", "Ibuprofen 400 mg.", "ibuprofen"),
        ("sulfa", "Co-trimoxazole twice a day.", "co-trimoxazole"),
        ("对青霉素过敏", "阿莫西林500毫克口服。", "阿莫西林"),
        ("磺胺", "可用复方新诺明。", "复方新诺明"),
    ],
)
def test_an_allergy_to_what_the_answer_speaks_of_is_a_warning(allergy: str, text: str, named: str) -> None:
    (warned,) = held(record(allergies=(allergy,)), evidence("1", text)).warnings
    assert warned.fact[0] == "Allergy"
    assert named in warned.fact[1]
    assert allergy in warned.fact[1]


@pytest.mark.parametrize(
    ("allergy", "text"),
    [("penicillin", "Doxycycline 200 mg."), ("latex", "Amoxicillin."), ("penicillin", "Do not give amoxicillin.")],
)
def test_other_medicines_are_no_allergy(allergy: str, text: str) -> None:
    assert held(record(allergies=(allergy,)), evidence("1", text)).warnings == ()


def test_pregnancy() -> None:
    source = evidence("1", "Do not give ramipril in pregnancy.")
    (warned,) = held(record(pregnant=True, sex="female"), source).warnings
    assert warned.fact[0] == "Pregnancy"
    assert held(record(pregnant=False, sex="female", age=30), source) == Applied()
    assert [name for name, _ in held(record(sex="female", age=30), source).missing] == ["Pregnancy"]
    assert held(record(sex="female", age=80), source).missing == ()


def test_a_medicine_taken_beside_one_that_the_answer_speaks_of() -> None:
    source = evidence("1", "Start ramipril. Do not combine an ACE inhibitor with an ARB.")
    (warned,) = held(record(medications=("losartan 50 mg",)), source).warnings
    assert "losartan 50 mg" in warned.fact[1]
    assert held(record(medications=("metformin",)), source).warnings == ()


def test_people() -> None:
    source = evidence("1", "Children take 10 mg.")
    assert [name for name, _ in held(record(age=40), source).facts] == ["Age"]
    assert held(record(age=8), source).facts == ()


def test_in_chinese() -> None:
    source = evidence("2", "如血钾高于5.5mmol/L，不宜使用螺内酯。")
    found = held(record(results=(Measured("potassium", 5.6, "5.6 mmol/L"),)), source, language="zh")
    assert found.warnings[0].fact == ("血钾", "病历为5.6 mmol/L；来源 2 的条件为“高于5.5mmol/l”：该患者符合")


def test_interactions_from_the_graph() -> None:
    known = record(medications=("Warfarin 3 mg daily", "metformin"))
    (warned,) = interacting(known, "amiodarone", ("warfarin", "amiodarone"), "en")
    assert "Warfarin 3 mg daily" in warned.fact[1]
    assert list(interacting(known, "aspirin", ("ibuprofen",), "en")) == []


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "kind", "expected"),
    [
        (("Journal Article", "Meta-Analysis"), Kind.LITERATURE, ("meta-analysis", "1")),
        (("Randomized Controlled Trial",), Kind.LITERATURE, ("randomised controlled trial", "2")),
        (("Review", "Systematic Review"), Kind.LITERATURE, ("systematic review", "1")),
        (("Case Reports",), Kind.LITERATURE, ("case report", "4")),
        (("Retracted Publication", "Meta-Analysis"), Kind.LITERATURE, ("retracted publication", "")),
        (("Journal Article",), Kind.LITERATURE, ("article, type not stated", "")),
        ((), Kind.GUIDELINE, ("guideline", "1")),
        ((), Kind.BOOK, ("textbook or reference", "5")),
        ((), Kind.OTHER, ("type not stated", "")),
    ],
)
def test_the_level_of_a_source(types: tuple[str, ...], kind: Kind, expected: tuple[str, str]) -> None:
    assert level(replace(METFORMIN, publication_types=types, kind=kind)) == expected


def test_measures_convert_and_refuse() -> None:
    creatinine = measures.by_name("creatinine")
    assert measures.converted(creatinine, "2", "mg/dl") == pytest.approx(176.84)
    assert measures.converted(creatinine, "2", "") is None, "a bare number may be in either unit"
    assert measures.coded("Glucose [Mass/volume] in Urine", "", 5, "mmol/L") is None
    assert measures.coded("", "2345-7", 100, "mg/dL") is not None
    assert list(measures.measured("urine glucose 20 mmol/L")) == []


def test_classes_of_medicines() -> None:
    assert medicines.classes("ramipril and losartan 50 mg") == {
        "ACE inhibitors": "ramipril",
        "angiotensin receptor blockers": "losartan",
    }
    assert medicines.classes("氯沙坦、二甲双胍") == {"angiotensin receptor blockers": "氯沙坦", "metformin": "二甲双胍"}
    assert medicines.classes("Walk daily.") == {}
