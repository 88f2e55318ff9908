"""Which document a reference means by its title: words alone, editions apart, never one of two."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Document, Status
from localmed.domain import digest as named
from localmed.retrieval.titles import named_by


def document(title: str, edition: str = "", status: Status = Status.CURRENT) -> Document:
    name = named(title, edition)
    return Document(name, "c", title, title, "en", "f", "0" * 64, name, "text/plain", edition, status)


MALARIA = document("WHO guidelines for malaria", "2023-10-16")
ANTENATAL = document("WHO recommendations on antenatal care for a positive pregnancy experience", "2016")
HYPERTENSION = document("Hypertension in adults: diagnosis and treatment", "2024-03-01")
EARLIER = document("Hypertension in adults: diagnosis and treatment (2019)", "2019-05-01", Status.SUPERSEDED)
TYPE_1 = document("Type 1 diabetes in adults: diagnosis and management")
TYPE_2 = document("Type 2 diabetes in adults: diagnosis and management")
INHALED = document("Asthma in children: inhaled treatment")
ORAL = document("Asthma in children: oral treatment")
ASTHMA = document("Asthma")
CHINESE = document("中国2型糖尿病防治指南（2020年版）", "2021-04")
ALL = (MALARIA, ANTENATAL, HYPERTENSION, EARLIER, TYPE_1, TYPE_2, INHALED, ORAL, ASTHMA, CHINESE)


@pytest.mark.parametrize(
    ("reference", "document"),
    [
        ("WHO recommendations on antenatal care for a positive pregnancy experience, WHO 2016", ANTENATAL),
        ("Recommendations on Antenatal Care for a Positive Pregnancy Experience. Geneva: World Health Organization; "
         "2016.", ANTENATAL),
        ("Hypertension in adults: diagnosis and treatment", HYPERTENSION),  # without a year the one in force
        ("Malaria", None), ("Hypertension in adults - diagnosis and treatment, 2019", EARLIER),
        ("Hypertension in adults: diagnosis and treatment (2024 edition)", HYPERTENSION),
        ("Hypertension in adults: diagnosis and treatment, 2011", None), ("Type 1 diabetes in adults", TYPE_1),
        ("Diabetes in adults: diagnosis and management", None),
        ("Lee K. Asthma in children: oral treatment. Thorax 2020;1:2", ORAL), ("Asthma, WHO 2016", ASTHMA),
        ("2型糖尿病防治", None), ("中国2型糖尿病防治指南", CHINESE), ("", None)
    ],
)  # fmt: skip
def test_a_reference_names_one_document_or_none(reference: str, document: Document | None) -> None:
    assert named_by(reference, ALL) == document


def test_a_copy_in_another_collection_is_the_same_document() -> None:
    copy = replace(MALARIA, id=named("copy"), collection="other")
    assert named_by("WHO guidelines for malaria", (MALARIA, copy)) == MALARIA
    assert named_by("WHO guidelines for malaria", (MALARIA, replace(copy, content=named("other text")))) is None
