"""What narrows a question, against what a quotation speaks of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Evidence
from localmed.verification.scope import lacking
from tests.values import evidence, quotation

STATUS = "Convulsive status epilepticus in adults"
PANCREAS = "Acute pancreatitis in adults"


def source(text: str, title: str, heading: str = "", table: bool = False) -> Evidence:
    piece = evidence("1", text, title)
    headings = (title, heading) if heading else (title,)
    return replace(piece, passage=replace(piece.passage, headings=headings, table=table))


@pytest.mark.parametrize(
    ("question", "title", "heading", "text", "words"),
    [
        ("What dose of lorazepam is given in status?", STATUS, "", "Give lorazepam 4 mg.", ()),
        ("What dose of lorazepam is given to a child in status?", STATUS, "", "Give lorazepam 4 mg.", ("child",)),
        ("How is pain managed in chronic pancreatitis?", PANCREAS, "Pain", "Give morphine 2 mg.", ("chronic",)),
        ("How is pain managed in pancreatitis?", PANCREAS, "Pain", "Give morphine 2 mg.", ()),
        ("How is status treated in a 70 year old?", STATUS, "", "Give lorazepam 4 mg.", ()),
        ("How is status treated in a 7 year old?", STATUS, "", "Give lorazepam 4 mg.", ("7 year old",)),
        ("How is a hip fracture fixed in a 25 year old?", "Hip fracture", "", "Patients aged 60 and over need screws.",
         ("25 year old",)),
        ("How is autoimmune pancreatitis treated?", PANCREAS, "", "Give fluids.", ("autoimmune",)),
        ("How is eclampsia treated?", STATUS, "Scope", "This guideline does not cover eclampsia.", ("eclampsia",)),
        ("儿童奥美拉唑用多大剂量？", "成人上消化道出血", "", "奥美拉唑80 mg静脉推注。", ("儿童",)),
        ("下消化道出血怎么处理？", "成人上消化道出血", "", "先快速补液。", ("下消化道",)),
        ("上消化道出血奥美拉唑怎么用？", "成人上消化道出血", "", "奥美拉唑80 mg静脉推注。", ()),
    ],
)  # fmt: skip
def test_what_a_quotation_does_not_speak_of(
    question: str, title: str, heading: str, text: str, words: tuple[str, ...]
) -> None:
    piece = source(text, title, heading)
    assert lacking(question, (quotation(piece, 0, len(text)),), (piece,)) == words


def test_a_row_of_a_table_speaks_for_itself() -> None:
    rows = "Drug: Lorazepam; Route: intravenous; Dose: 4 mg\nDrug: Diazepam; Route: rectal; Dose: 10 mg"
    piece = source(rows, STATUS, table=True)
    diazepam = quotation(piece, rows.index("Drug: Diazepam"), len(rows))
    assert lacking("How much intravenous diazepam is given?", (diazepam,), (piece,)) == ("intravenous",)
    assert lacking("How much rectal diazepam is given?", (diazepam,), (piece,)) == ()


def test_more_than_half_of_what_is_quoted_must_speak_of_it() -> None:
    pieces = [replace(source(text, title), marker=str(number)) for number, (text, title) in enumerate(
        (("Look for gallstones.", PANCREAS), ("Look for gallstones.", "Autoimmune pancreatitis"), ("Rest.", "Rest")), 1
    )]  # fmt: skip
    quotations = [quotation(piece, 0, len(piece.passage.text)) for piece in pieces]
    question = "How is autoimmune pancreatitis treated?"
    assert lacking(question, quotations, pieces) == ("autoimmune",)
    assert lacking(question, quotations[1:2], pieces) == ()
