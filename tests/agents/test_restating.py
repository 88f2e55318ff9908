"""Orders of our own in plain words: no number, dose or negation lost, and no line merely pasted."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from localmed.agents.order_abbreviations import is_direction, usual_meaning
from localmed.agents.order_terms import terms
from localmed.agents.restating import LINE_CHARACTERS, lines, plain_line, quoted
from localmed.verification import survival

CASES = tomllib.loads((Path(__file__).parent / "cases" / "orders.toml").read_text("utf-8"))
ORDERS = [(language, case) for language in ("en", "zh") for case in CASES[language]]


def told(order: str, language: str) -> str:
    return " ".join(plain_line(order[start:end], language) for start, end in lines(order))


def test_there_are_enough_orders() -> None:
    assert len(CASES["en"]) >= 40
    assert len(CASES["zh"]) >= 20
    assert len({case["order"] for _, case in ORDERS}) == len(ORDERS)


@pytest.mark.parametrize(("language", "case"), ORDERS, ids=[case["order"] for _, case in ORDERS])
def test_nothing_of_an_order_is_lost_in_its_plain_words(language: str, case: dict[str, list[str]]) -> None:
    order = str(case["order"])
    said = told(order, language)
    assert survival.lost(order, said) == []
    assert [each for each in case["keeps"] if each.lower() not in said.lower()] == [], said  # read by a person
    assert order not in said, "the order is pasted, not said"


@pytest.mark.parametrize(("language", "case"), ORDERS, ids=[case["order"] for _, case in ORDERS])
def test_terms_are_found_exactly_as_written(language: str, case: dict[str, list[str]]) -> None:
    order = str(case["order"])
    found = terms(order)
    assert all(order[each.start : each.end] == each.text for each in found)
    assert all(one.end <= other.start for one, other in pairwise(found)), "in order, apart"
    assert [each for each in case["terms"] if each not in [term.text for term in found]] == []


def test_a_line_that_cannot_be_said_more_plainly_is_quoted() -> None:
    assert plain_line("Regular for age", "en") == ""
    assert quoted("Regular for age", "en") == "The order's own words: “Regular for age”"
    assert plain_line("x 7 days " * LINE_CHARACTERS, "en") == ""
    assert plain_line("Take 5 mg daily", "zh") == "", "another language than the order's"


def test_lines_leave_list_markers_out_and_keep_their_place() -> None:
    order = "Plan:\n1. Take 5 mg daily. Avoid milk.\n2) CBC\n- rest\n\n3、禁食\n"
    assert [order[start:end] for start, end in lines(order)] == [
        "Plan:",
        "Take 5 mg daily.",
        "Avoid milk.",
        "CBC",
        "rest",
        "禁食",
    ]


def test_a_dose_at_the_beginning_is_no_list_marker() -> None:
    order = "2.5 mg warfarin daily"
    assert [order[start:end] for start, end in lines(order)] == [order]


def test_negated_and_stopped_terms_say_so() -> None:
    found = {
        each.text: each.negation for each in terms("Stop aspirin. No penicillin. Hold if INR > 4. Take ibuprofen.")
    }
    assert found == {"aspirin": "stop", "penicillin": "no", "INR": "", "ibuprofen": ""}
    assert {each.text: each.negation for each in terms("停用阿司匹林，不要服用布洛芬")} == {
        "阿司匹林": "停用",
        "布洛芬": "不要",
    }


def test_usual_meanings() -> None:
    assert usual_meaning("B.I.D.", "en") == "twice a day"
    assert usual_meaning("q4-6h", "en") == "every 4 to 6 hours"
    assert usual_meaning("q8h", "zh") == "每8小时一次"
    assert usual_meaning("皮试", "en") == "a skin test for allergy first"
    assert usual_meaning("qqq", "en") == ""
    assert is_direction("prn")
    assert not is_direction("CBC")


def test_english_words_that_look_like_abbreviations_are_none() -> None:
    assert [each.text for each in terms("She is on the top of it, or in the ED or on IV fluids")] == ["ED", "IV fluids"]


@pytest.mark.parametrize(
    ("line", "never"),
    [
        ("D/C home today", "stop"),
        ("Stage IV cancer", "vein"),
        ("INH 300 mg daily", "breathed"),
        ("Robitussin DM 10 mL q4h", "diabetes"),
        ("24 HR urine", "heart rate"),
        ("MS 4 mg IV", "sclerosis"),
        ("HOLD ON TO RAIL", "pause"),
        ("AC joint injection", "meals"),
        ("No known drug allergies", "there is to be"),
    ],
)
def test_a_mark_that_may_mean_something_else_is_left_as_written(line: str, never: str) -> None:
    assert never not in plain_line(line, "en")
