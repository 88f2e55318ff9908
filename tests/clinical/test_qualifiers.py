"""Whom and what a question is about, against what a passage says it is about."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from localmed.clinical.qualifiers import differing, qualifiers
from tests.values import passage

TYPE_2 = "Type 2 diabetes in adults"


@pytest.mark.parametrize(
    ("question", "title", "headings", "text", "words"),
    [
        ("HbA1c target in gestational diabetes?", TYPE_2, ("Targets",), "Below 7.0 %.", ("gestational",)),
        ("HbA1c target in type 1 diabetes?", TYPE_2, ("Targets",), "Below 7.0 %.", ("type 1 diabetes",)),
        ("HbA1c target in type 2 diabetes?", TYPE_2, ("Targets",), "Below 7.0 %.", ()),
        ("How long is hospital-acquired pneumonia treated?", "Community-acquired pneumonia", (), "Five days.",
         ("hospital acquired",)),
        ("What dose of enoxaparin treats a thrombosis?", "Prevention of thrombosis", (), "40 mg a day.", ("treats",)),
        ("What dose of enoxaparin treats a thrombosis?", "Thrombosis", ("Prophylaxis and treatment",),
         "For treatment 1 mg/kg.", ()),
        ("What dose of enoxaparin prevents a thrombosis?", "Prevention of thrombosis", (), "40 mg once a day.", ()),
        ("What dose of enoxaparin prevents a thrombosis?", "Thrombosis", ("Treatment",), "1 mg/kg.", ("prevents",)),
        ("Can my baby have ibuprofen?", "Fever in children", (), "Ibuprofen may be given.", ()),
        ("Can a newborn have ibuprofen?", "Fever in children", (), "Ibuprofen may be given.", ("newborn",)),
        ("妊娠期高血压的降压目标是多少？", "成人高血压诊疗指南", ("降压目标",), "低于140/90 mmHg。", ("妊娠",)),
        ("儿童发热怎么办？", "孩子发热", (), "多喝水。", ()),
    ],
)  # fmt: skip
def test_a_passage_must_name_what_the_question_is_narrowed_to(
    question: str, title: str, headings: tuple[str, ...], text: str, words: tuple[str, ...]
) -> None:
    assert differing(question, replace(passage(text, title), headings=(title, *headings))) == words


def test_every_name_of_the_table_is_found() -> None:
    assert set(qualifiers("a pregnant woman on dialysis with pulmonary hypertension and a newborn")) == {
        "pregnancy", "dialysis", "pulmonary_hypertension", "newborn", "child",
    }  # fmt: skip


def test_a_long_text_is_read_in_linear_time() -> None:
    began = time.process_time()
    qualifiers("type 1 pregnant 儿童 " * 5000)
    assert time.process_time() - began < 3
