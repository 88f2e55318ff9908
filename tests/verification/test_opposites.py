"""What a statement says that its source excludes, and what it turns round; sentences of one answer that disagree."""

from __future__ import annotations

import pytest

from localmed.domain import Message
from localmed.verification import comparison
from localmed.verification.agreement import disagree
from localmed.verification.clauses import of_sentence, of_statement
from localmed.verification.matching import window
from localmed.verification.opposites import opposed
from localmed.verification.relations import reversed_order
from tests.values import passage

RIGHT_AND_WRONG = [
    ("Severe skin reactions are rare.", "Severe skin reactions are uncommon.", "Severe skin reactions are common."),
    ("Most patients need two drugs.", "The majority of patients need two drugs.", "Few patients need two drugs."),
    (
        "Halve the dose of diazepam over 70.",
        "Over 70 reduce the dose of diazepam.",
        "Over 70 double the diazepam dose.",
    ),
    ("Stop metformin when vomiting.", "Metformin is stopped when vomiting.", "Continue metformin when vomiting."),
    ("Do not stop aspirin in a flare.", "Continue aspirin in a flare.", "Aspirin has to be stopped in a flare."),
    (
        "Stop drugs that raise potassium.",
        "Drugs that raise potassium are stopped.",
        "Drugs that raise potassium are continued.",
    ),
    ("Lose weight slowly.", "Weight should be lost slowly.", "Weight should be lost rapidly."),
    ("多数患者需要两种药物。", "大多数患者需要两种药物。", "少数患者需要两种药物。"),
    ("光疗中皮疹较常见。", "光疗中皮疹多见。", "光疗中皮疹很罕见。"),
    ("皮肤呈青铜色时应停止光疗。", "皮肤呈青铜色时暂停光疗。", "皮肤呈青铜色时应加强光疗。"),
]


@pytest.mark.parametrize(("source", "right", "wrong"), RIGHT_AND_WRONG)
def test_the_opposite_of_the_source(source: str, right: str, wrong: str) -> None:
    assert not opposed(of_statement(right), of_sentence(source))
    assert opposed(of_statement(wrong), of_sentence(source))


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("Give thiamine before glucose.", "Glucose is given after thiamine.", "Thiamine is given after glucose."),
        ("Beer raises urate more than wine.", "Beer raises urate more than wine.", "Wine raises urate more than beer"),
        ("A sudden fast can set off a flare.", "A flare can be caused by a fast.", "A flare can set off a fast."),
    ],
)  # fmt: skip
def test_the_order_of_two_things(source: str, right: str, wrong: str) -> None:
    assert not reversed_order(right, source)
    assert reversed_order(wrong, source)


@pytest.mark.parametrize(
    ("source", "wrong", "expected"),
    [
        ("Severe skin reactions are rare.", "Severe skin reactions are common.", comparison.OPPOSED),
        ("光疗中皮疹较常见。", "光疗中皮疹很罕见。", comparison.OPPOSED),
        ("Give thiamine before glucose.", "Thiamine is given after glucose.", comparison.ORDER),
    ],
)
def test_a_sentence_is_compared_by_both(source: str, wrong: str, expected: Message) -> None:
    assert comparison.fault(wrong, window(wrong, [passage(source, "Care")]), 0.9) == expected
    assert comparison.fault(source, window(source, [passage(source, "Care")]), 0.9) is None


def test_sentences_of_one_answer() -> None:
    assert disagree("Metformin is stopped when eGFR is below 30.", "Metformin is continued when eGFR is below 30.")
    assert not disagree("Metformin is stopped when eGFR is below 30.", "Naproxen is avoided in heart failure.")
