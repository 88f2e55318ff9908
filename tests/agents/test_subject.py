"""Whether a sentence or a table row is about another medicine than the question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.agents.subject import Subject
from tests.values import passage

ROW = "Medicine: Clarithromycin; Dose: 500 mg; Notes: Do not give with simvastatin"


@pytest.mark.parametrize(
    ("question", "text", "table", "another"),
    [
        ("What is the maximum dose of simvastatin?", ROW, True, True),
        ("What is the maximum dose of clarithromycin?", ROW, True, False),
        ("What is the maximum dose of ramipril?", "Give paracetamol 4 g a day.", False, True),
        ("What is the maximum dose of paracetamol?", "Give paracetamol 4 g a day.", False, False),
        ("What is the blood pressure target?", "Give paracetamol 4 g a day.", False, False),
    ],
)
def test_a_sentence_about_another_medicine_is_told(question: str, text: str, table: bool, another: bool) -> None:
    source = replace(passage(text), table=table)
    assert Subject.of(question).another(source, 0, len(text)) is another
