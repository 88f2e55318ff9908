"""Records as colleagues type them, met on notes that nobody tuned to: allergies in prose, weight, headings of lists."""

from __future__ import annotations

import pytest

from localmed.domain.patient import EntryKind, PatientRecord
from localmed.ingest.records import read


def record_of(text: str) -> PatientRecord:
    return read(text.encode())


@pytest.mark.parametrize(
    ("text", "allergy"),
    [
        ("72 year old man. Gets a rash with penicillin.", "penicillin"),
        ("She came out in hives after co-amoxiclav last year.", "co-amoxiclav"),
        ("Anaphylaxis to penicillin in 2010.", "penicillin"),
        ("NSAIDs: bronchospasm.", "NSAIDs"),
        ("Penicillin - rash. Otherwise well.", "Penicillin"),
        ("Allopurinol caused a widespread itchy rash.", "Allopurinol"),
        ("72M, AF, rash with penicillin, CrCl 25", "penicillin"),
        ("Allergic reactions: trimethoprim (rash).", "trimethoprim (rash)"),
        ("患者女，68岁。吃青霉素起皮疹。", "青霉素"),
        ("用青霉素后出现皮疹。", "青霉素"),
    ],
)
def test_an_allergy_told_in_prose_is_read_with_its_words(text: str, allergy: str) -> None:
    (entry,) = [entry for entry in record_of(text).entries if entry.kind is EntryKind.ALLERGY]
    assert entry.text == allergy
    assert entry.words.rstrip(".。") in text


@pytest.mark.parametrize(
    "text",
    [
        "Hydrocortisone cream for a rash.",
        "Given cetirizine for hives.",
        "Rash settled after prednisolone.",
        "Leg swelling with amlodipine.",
        "No rash with amoxicillin.",
        "Mother had a rash with penicillin.",
        "Stop lamotrigine if rash.",
        "Rash on trunk, started flucloxacillin 500 mg qds.",
        "Tolerates cephalexin, had a rash with dust.",
        "口服氯雷他定后荨麻疹好转。",
        "母亲用青霉素后出现皮疹。",
        "因荨麻疹口服氯雷他定。",
    ],
)
def test_a_medicine_given_for_a_rash_or_foreseen_or_anothers_is_no_allergy(text: str) -> None:
    assert record_of(text).allergies == ()


@pytest.mark.parametrize("heading", ["Meds: ", "Meds - ", "DH: ", "Drug history: ", "Medicines on admission: "])
def test_lists_are_found_as_they_are_headed(heading: str) -> None:
    assert record_of(f"{heading}warfarin 3 mg daily, ramipril 5 mg").medications == (
        "warfarin 3 mg daily",
        "ramipril 5 mg",
    )


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Wt 82kg.", "weight", 82),
        ("wt: 61 kg", "weight", 61),
        ("She weighs 95 kg.", "weight", 95),
        ("72M, AF, 54 kg", "weight", 54),
        ("CrCl 34", "creatinine clearance", 34),
        ("creat cl 55", "creatinine clearance", 55),
        ("Creatinine cl 55 mL/min", "creatinine clearance", 55),
        ("体重52kg", "weight", 52),
    ],
)
def test_weight_and_creatinine_clearance_are_read(text: str, name: str, value: float) -> None:
    result = record_of(text).result(name)
    assert result is not None
    assert result.value == value


@pytest.mark.parametrize("text", ["Birth weight 3 kg.", "Ideal body weight 60 kg.", "Dry weight 71 kg.", "出生体重3kg"])
def test_another_weight_is_not_the_patients(text: str) -> None:
    assert record_of(text).result("weight") is None


def test_a_weight_of_two_times_is_named_as_not_read() -> None:
    record = record_of("Weight: 70kg (was 74kg in May)")
    assert record.results == ()
    assert [entry.text for entry in record.entries if entry.kind is EntryKind.UNREAD] == ["weight"]
