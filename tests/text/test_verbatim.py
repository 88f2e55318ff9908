"""What a text says word for word: whole sentences, whatever their punctuation; nothing that a sentence denies."""

from __future__ import annotations

import pytest

from localmed.text.verbatim import find_verbatim, holds

TEXT = """Do not give ramipril in pregnancy. Avoid macrolides in patients with
a prolonged QT interval. Give 1,000 mg, i.e. 1 g, in two doses.

Do not:

- give aspirin to children.
- use codeine in children.

Is aspirin safe for children? Take 5-10 mg for ≥ 3 days. Treat for five days if stable.
不推荐酒精擦浴。18岁以下不要使用阿司匹林退热。"""


@pytest.mark.parametrize(
    "statement",
    [
        "Do not give ramipril in pregnancy.",
        "do not give Ramipril in pregnancy",
        "Avoid macrolides in patients with a prolonged QT interval.",
        "Give 1000 mg (i.e. 1 g) in 2 doses",
        "Take 5–10 mg for ≥3 days.",
        "Treat for 5 days, if stable.",
        "Do not give ramipril in pregnancy. Avoid macrolides in patients with a prolonged QT interval.",
        "不推荐酒精擦浴",
        "18岁以下不要使用阿司匹林退热。",
    ],
)
def test_whole_sentences_are_said_whatever_their_punctuation(statement: str) -> None:
    place = find_verbatim(TEXT, statement)
    assert place
    assert holds(TEXT, statement)
    assert TEXT[slice(*place)][0] in statement or TEXT[slice(*place)][0].lower() in statement


@pytest.mark.parametrize(
    "statement",
    [
        "Give ramipril in pregnancy.",  # denied
        "Give aspirin to children.",  # an item of a list of what not to do
        "Use codeine in children.",
        "A prolonged QT interval.",  # the second line of a sentence
        "Treat for five days.",  # its condition is left out
        "Treat for six days if stable.",
        "Is aspirin safe for children.",  # a question
        "Take 5 10 mg for ≥ 3 days.",
        "Take 5-10 mg for 3 days.",  # a sign
        "Take 5-10 mcg for ≥ 3 days.",
        "推荐酒精擦浴。",
        "Pregnancy.",
        "",
    ],
)
def test_nothing_less_and_nothing_else(statement: str) -> None:
    assert find_verbatim(TEXT, statement) is None


def test_an_item_of_a_list_is_no_sentence_of_its_own() -> None:
    assert find_verbatim("Do not:\n\n1. Give aspirin to children.", "Give aspirin to children.") is None


def test_rows_of_a_table_are_sentences() -> None:
    rows = "Step: 1; Action: Measure blood lactate\nStep: 2; Action: Take blood cultures"
    assert find_verbatim(rows, "Step: 2; Action: Take blood cultures", rows=True) == (39, 75)
    assert find_verbatim(rows, "Action: Take blood cultures", rows=True) is None


@pytest.mark.parametrize(
    ("text", "statement", "held"),
    [
        ("Give 15 mg daily.", "5 mg", False),
        ("Give 0.5 mg daily.", "5 mg", False),
        ("Give 5 mg daily.", "give 5  mg", True),
        ("孩子抽搐时让孩子侧卧，不要按压。", "让孩子侧卧", True),
        ("", "", False),
        ("any", "...", False),
    ],
)
def test_holds_asks_for_the_words_anywhere(text: str, statement: str, held: bool) -> None:
    assert holds(text, statement) is held
