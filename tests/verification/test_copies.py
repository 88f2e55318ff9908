"""Near copies: two editions of a sentence, and sentences that differ in what matters."""

from __future__ import annotations

import pytest

from localmed.verification.copies import copies

TARGET = "For most adults with high blood pressure the target is below 130/80 mmHg if treatment is well tolerated."


@pytest.mark.parametrize(
    "other", [TARGET, TARGET.replace("For most", "In most"), TARGET.replace("is below", "is: below")]
)
def test_another_edition_of_a_sentence_is_a_copy(other: str) -> None:
    assert copies(TARGET, other)
    assert copies("轻症患者口服补液即可，每日2000毫升。", "轻症患者口服补液即可,每日2000毫升")


@pytest.mark.parametrize("other", [
    TARGET.replace("130", "140"), TARGET.replace("the target is", "the target is not"),
    TARGET.replace("adults", "children"), TARGET.replace("below", "Do not go below"),
])  # fmt: skip
def test_what_differs_in_what_matters_is_no_copy(other: str) -> None:
    assert not copies(TARGET, other)


def test_another_medicine_is_no_copy() -> None:
    text = "The maximum dose of {} in adults with normal kidneys is 40 mg in 24 hours, taken with food."
    assert not copies(text.format("enoxaparin"), text.format("dalteparin"))
