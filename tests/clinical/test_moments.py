"""On which side of a moment a question and a text are."""

from __future__ import annotations

import pytest

from localmed.clinical.moments import agreed, opposed


@pytest.mark.parametrize(("question", "text"), [
    ("What is done in the first hour of sepsis?", "After the first hour"),
    ("When is apixaban restarted after surgery?", "Stop it before surgery."),
    ("What is done before the operation?", "After the operation"),
    ("术前禁食多久？", "手术后6小时可进食。"),
])  # fmt: skip
def test_the_other_side(question: str, text: str) -> None:
    assert opposed(question, text)
    assert not agreed(question, text)


@pytest.mark.parametrize(("question", "text"), [
    ("What is done in the first hour of sepsis?", "Actions in the first hour"),
    ("When is apixaban restarted after surgery?", "Stop it before surgery and start again 2 days after surgery."),
    ("术后多久可以进食？", "手术后6小时可进食。"),
])  # fmt: skip
def test_the_same_side(question: str, text: str) -> None:
    assert agreed(question, text)
    assert not opposed(question, text)


def test_other_moments_are_on_no_side() -> None:
    assert not opposed("When to eat after surgery?", "Nothing by mouth from 2 hours before anaesthesia.")
    assert not opposed("24小时内做什么？", "24小时后复查。")
