"""What questions ask to be defined, and the names of things."""

from __future__ import annotations

import re

import pytest

from localmed.text import synonyms
from localmed.text.tables import listed, table
from localmed.workflows.ask import asked_term


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
    assert asked_term(question) == term


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
