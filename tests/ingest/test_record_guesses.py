"""Records in prose: what only looks like an entry, or like a list that has nothing in it."""

from __future__ import annotations

import pytest

from localmed.domain.patient import PatientRecord
from localmed.ingest.records import read


def text(written: str) -> PatientRecord:
    return read(written.encode())


@pytest.mark.parametrize(
    ("written", "kind", "texts"),
    [
        ("Background: migraine with aura since 15yo, 4/month.", "age", ()),
        ("Background: migraine with aura since 15yo, 4/month.", "problem", ("migraine with aura since 15yo",)),
        ("Switch oral morphine MR to a syringe driver", "sex", ()),
        ("Had MS since 2010", "sex", ()),
        ("Mr Jones attended", "sex", ("male",)),
        ("青链霉素过敏（自诉）", "allergy", ("青链霉素",)),
        ("Bro is allergic to latex. Patient none.", "allergy", ()),
        ("Mum has a history of asthma.", "problem", ()),
        ("患者外甥女对头孢过敏", "allergy", ()),
        ("既往：高血压、脑梗（2020），无冠心病。", "problem", ("高血压", "脑梗（2020）")),
    ],
)
def test_what_only_looks_like_an_entry(written: str, kind: str, texts: tuple[str, ...]) -> None:
    assert tuple(entry.text for entry in text(written).entries if entry.kind == kind) == texts


@pytest.mark.parametrize(
    ("written", "none"),
    [
        ("Allergies: none known.", True),
        ("Allergies: NKDA", True),
        ("过敏史：否认药物及食物过敏史。", True),
        ("sumatriptan gave chest tightness -> not allergy\nPropranolol no (asthma as a teen).", False),
        ("过敏：左氧本次不算。碘造影剂休克", False),
        ("Allergies: not asked.", False),
    ],
)
def test_only_a_list_that_says_so_has_nothing_in_it(written: str, none: bool) -> None:
    assert ("allergies" in text(written).none_of) is none


def test_a_number_without_a_unit_is_not_given_one_that_cannot_be() -> None:
    (note,) = (note for note in text("HbA1c 41.").notes if note.code == "record.implausible")
    assert dict(note.parameters)["written"] == "41"
