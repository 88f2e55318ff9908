"""What questions ask of their subject, and the names of things."""

from __future__ import annotations

import re

import pytest

from localmed.clinical import asking, synonyms
from localmed.clinical.tables import listed, table
from localmed.language import fold


@pytest.mark.parametrize(
    ("question", "slot", "filled", "open_sentence"),
    [
        ("What dose of lorazepam?", "dose", "Give 4 mg.", "Give it slowly."),
        ("How long is it given?", "duration", "For 5 days.", "Give 500 mg."),
        ("What is the phone number of the clinic?", "phone", "Extension 4471.", "Report of 2025."),
        ("What does it cost?", "price", "It costs £5.", "Give 5 mg."),
        ("How many nurses work there?", "count", "12 nurses work there.", "Give 12 mg to patients."),
        ("奥曲肽用多大量？", "dose", "50微克静脉推注", "静脉推注"),
        ("用几天？", "duration", "共3天", "每次50 mg"),
        ("多少钱？", "price", "每次120元", "每次120毫升"),
    ],
)
def test_slots(question: str, slot: str, filled: str, open_sentence: str) -> None:
    (one,) = (one for one in asking.slots(question) if one.name == slot)
    assert one.fills.search(fold(filled))
    assert not one.fills.search(fold(open_sentence))


def test_a_question_without_a_value_has_no_slot() -> None:
    assert asking.slots("Can morphine be given in pancreatitis?") == ()


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What is Marfan syndrome?", "marfan syndrome"),
        ("What does sepsis mean?", "sepsis"),
        ("什么是马凡综合征？", "马凡综合征"),
        ("马凡综合征是什么病？", "马凡综合征"),
        ("How is sepsis treated?", ""),
        ("", ""),
    ],
)
def test_what_is_asked_to_be_defined(question: str, term: str) -> None:
    assert asking.defined(question) == term


def test_things_are_named_under_all_names() -> None:
    fit, keppra = synonyms.named("a fit, Keppra")
    assert {"seizure", "抽搐"} <= set(fit.names)
    assert "levetiracetam" in keppra.names
    (medicines,) = synonyms.named("NSAIDs")
    assert "ibuprofen" in medicines.names, "a class has its members"
    (dose,) = synonyms.named("dose")
    assert dose.asking
    assert not fit.asking


def test_no_name_is_listed_twice_in_a_row_and_chinese_ones_are_words() -> None:
    for section in table("synonyms")["same"].values():
        for line in filter(None, map(str.strip, section.splitlines())):
            names = [name for part in line.split("|") for name in listed(part)]
            assert len(names) == len(set(names)), line
            assert not [name for name in names if re.fullmatch("[\u4e00-\u9fff]", name)], line
