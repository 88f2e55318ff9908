"""The veto on a model's sentences, and what the verdicts come to: only rules that hold on text by any author."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.answering import check
from localmed.answering.check import ARITHMETIC, MEDICINE, NEGATION, veto
from localmed.answering.write import Covers, Written
from localmed.domain import Badge, Origin, Statement, Support
from localmed.ports import Stance
from tests.values import evidence

SOURCE = "Give gentamicin 5 mg/kg once a day. Do not give it where the creatinine is above 200 micromol/L."
CARRIED, OTHERWISE, UNSAID = Stance(0.9, 0.05, 0.05), Stance(0.05, 0.05, 0.9), Stance(0.1, 0.8, 0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gentamicin is given at 5 mg/kg once a day.", None),
        ("Gentamicin is given at 7 mg/kg once a day.", "support.number"),
        ("Gentamicin is given at 5 g/kg once a day.", "support.unit"),
        ("Amikacin is given at 5 mg/kg once a day.", MEDICINE.code),
    ],
)
def test_numbers_units_and_medicines_must_stand_in_the_source(text: str, expected: str | None) -> None:
    why = veto(text, SOURCE, SOURCE)
    assert (why.code if why else None) == expected


def test_what_the_question_gives_may_be_repeated() -> None:
    assert veto("At 42 kg the dose is 5 mg/kg once a day.", SOURCE, SOURCE, "She weighs 42 kg") is None
    assert veto("At 42 kg the dose is 5 mg/kg once a day.", SOURCE, SOURCE) is not None


@pytest.mark.parametrize(
    ("text", "source", "turned"),
    [
        ("Do not give oxygen.", "Give oxygen.", True),
        ("Give oxygen.", "Do not give oxygen.", True),
        ("Give oxygen.", "Give oxygen. Do not use a nasal cannula.", False),
        ("不要使用胰岛素。", "使用胰岛素。", True),
        ("使用胰岛素。", "禁止使用胰岛素。", True),
        ("可继续进食。", "患者可继续进食。", False),
    ],
)
def test_a_negation_may_be_neither_made_up_nor_lost(text: str, source: str, turned: bool) -> None:
    assert (veto(text, source, source) == NEGATION) is turned


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Give 84 mL (2 mL/kg x 42 kg = 84 mL).", None),
        ("Give 94 mL (2 mL/kg x 42 kg = 94 mL).", ARITHMETIC.code),
        ("Give 84 mL (3 mL/kg x 28 kg = 84 mL).", ARITHMETIC.code),
        ("Give 84 mL.", "support.number"),
    ],
)
def test_a_calculation_counts_if_it_is_shown_right_and_its_parts_are_known(text: str, why: str | None) -> None:
    found = veto(text, "Give 2 mL/kg of 3% saline over 20 minutes.", "", "42 kg, what volume?")
    assert (found.code if found else None) == why


def written(text: str, quote: str = SOURCE) -> tuple[Statement, tuple[object, ...]]:
    piece = evidence("1", quote)
    return Statement(text, (piece.citation(0, len(quote)),), Origin.GENERATED), (piece,)


@pytest.mark.parametrize(
    ("text", "stance", "support"),
    [
        ("Gentamicin 5 mg/kg is given once a day.", CARRIED, Support.SUPPORTED),
        ("Gentamicin 5 mg/kg is given once a day.", OTHERWISE, Support.CONTRADICTED),
        ("Gentamicin 5 mg/kg is given once a day.", UNSAID, Support.UNSUPPORTED),
        ("Gentamicin 5 mg/kg is given once a day.", None, Support.UNCHECKED),
        ("Gentamicin 9 mg/kg is given once a day.", CARRIED, Support.UNSUPPORTED),
        (SOURCE, None, Support.SUPPORTED),
    ],
)
def test_a_verdict_is_the_veto_then_the_judge_and_unjudged_is_unjudged(
    text: str, stance: Stance | None, support: Support
) -> None:
    statement, pieces = written(text)
    assert check.verdict(statement, pieces, "", stance, check.MODEL).support is support  # type: ignore[arg-type]


def test_what_nobody_judged_gives_way_to_the_sentences_it_cites_and_to_nothing_else() -> None:
    statement, pieces = written("Gentamicin 5 mg/kg is given once a day.")
    for stance, texts in ((None, [SOURCE]), (UNSAID, []), (CARRIED, [statement.text])):
        done = replace(statement, verdict=check.verdict(statement, pieces, "", stance, check.MODEL))  # type: ignore[arg-type]
        shown = check.shown_statements([done], pieces)  # type: ignore[arg-type]
        assert [one.text for one in shown if not one.withheld] == texts
        assert all(one.origin is Origin.EXTRACTIVE for one in shown if one.text == SOURCE)


def judged(*stances: Stance | None) -> list[Statement]:
    made = []
    for stance in stances:
        statement, pieces = written("Gentamicin 5 mg/kg is given once a day.")
        made.append(replace(statement, verdict=check.verdict(statement, pieces, "", stance, check.MODEL)))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("stances", "covers", "missing", "badge"),
    [
        ((CARRIED, CARRIED), Covers.YES, (), Badge.GREEN),
        ((CARRIED,), Covers.NOT_SAID, (), Badge.GREEN),
        ((CARRIED,), Covers.NO, (), Badge.YELLOW),
        ((CARRIED,), Covers.YES, ("the price",), Badge.YELLOW),
        ((CARRIED, UNSAID), Covers.YES, (), Badge.YELLOW),
        ((CARRIED, OTHERWISE), Covers.YES, (), Badge.RED),
        ((None, None), Covers.YES, (), Badge.NONE),
        ((), Covers.YES, (), Badge.NONE),
    ],
)
def test_the_badge_follows_from_verdicts_and_coverage_alone(
    stances: tuple[Stance | None, ...], covers: Covers, missing: tuple[str, ...], badge: Badge
) -> None:
    account = check.account(judged(*stances), Written(covers, (), missing), ())
    assert account.badge is badge
    assert account.statements_withheld == sum(one is not CARRIED for one in stances)
