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


@pytest.mark.parametrize(("question", "text"), [
    ("How is thiamine diluted?", "Thiamine is a vitamin. Dilute each dose in sodium chloride 0.9%."),
    ("Which antibiotic for infected necrosis?", "Give meropenem 1 g."),
    ("What antidepressant may be used?", "Citalopram is safe."),
])  # fmt: skip
def test_what_a_medicine_is_given_in_and_the_members_of_wide_classes_are_no_other_medicine(
    question: str, text: str
) -> None:
    source = passage(text)
    assert not Subject.of(question).another(source, text.rfind(". ") + 2 if ". " in text else 0, len(text))


def test_a_sentence_that_names_none_may_be_about_the_medicine_of_its_heading() -> None:
    text = "Febuxostat is used when allopurinol is not tolerated. Start at 80 mg once a day."
    source = replace(passage(text), headings=("Gout", "Febuxostat"))
    start = text.index("Start")
    assert not Subject.of("febuxostat start dose").another(source, start, len(text))
    assert Subject.of("paracetamol start dose").another(source, start, len(text))
