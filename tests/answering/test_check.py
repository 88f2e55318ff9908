"""The veto on a model's sentences, and what the verdicts come to: only rules that hold on text by any author."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.answering import check
from localmed.answering.check import ARITHMETIC, MEDICINE, NEGATION, veto
from localmed.answering.write import Covers, Written
from localmed.domain import Badge, Evidence, Hit, Origin, Statement, Support, Verdict
from localmed.domain.ports import Stance
from localmed.text.language import sentences
from tests.values import cited, evidence, passage, quotation

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


@pytest.mark.parametrize("told", ["She weighs 42 kg", "gent dose, wt 42", "42kg, which dose"])
def test_what_the_question_gives_may_be_repeated_with_its_unit_or_without(told: str) -> None:
    assert veto("At 42 kg the dose is 5 mg/kg once a day.", SOURCE, SOURCE, told) is None
    assert veto("At 42 kg the dose is 5 mg/kg once a day.", SOURCE, SOURCE) is not None


@pytest.mark.parametrize(
    ("text", "source", "why"),
    [
        ("At 90 kg give 480 micrograms once a day.", "300 micrograms daily (480 micrograms if over 90 kg).", None),
        ("Give 480 micrograms twice a day.", "480 micrograms daily.", "support.number"),
        ("每输1单位红细胞前给呋塞米20毫克。", "红细胞输注，每单位前给呋塞米20毫克静推。", None),
        ("With a K of 6.0 record an ECG.", "Potassium: 6.0 to 6.4 mmol/L; ECG within 30 minutes", None),
        ("From 37 weeks deliver.", "Weeks of pregnancy: 37 and over; Plan: Deliver", None),
        ("界值为171 μmol/L。", "小时龄：24小时；中危（μmol/L）：171", None),
        ("界值为171 mmol/L。", "小时龄：24小时；中危：171 μmol/L", "support.unit"),
        ("Aim for 10 to 20 mg per litre.", "The target is 10–20 mg/L.", None),
        ("Aim for 10 to 25 mg per litre.", "The target is 10–20 mg/L.", "support.number"),
    ],
)
def test_a_number_without_a_unit_is_compared_as_it_is_written(text: str, source: str, why: str | None) -> None:
    found = veto(text, source, source)
    assert (found.code if found else None) == why


@pytest.mark.parametrize(
    ("text", "source", "turned"),
    [
        ("Do not give oxygen.", "Give oxygen.", True),
        ("Give oxygen.", "Do not give oxygen.", True),
        ("Give oxygen.", "Give oxygen. Do not use a nasal cannula.", False),
        ("不要使用胰岛素。", "使用胰岛素。", True),
        ("使用胰岛素。", "禁止使用胰岛素。", True),
        ("可继续进食。", "患者可继续进食。", False),
        ("The fit does not have to be treated.", "The fit needs no treatment.", False),
        ("一到两周长好，也不会留疤。", "通常1～2周愈合，不留瘢痕。", False),
        ("Once nebulisers have not worked a consultant may start it.", "Started when nebulisers have failed.", False),
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


def verdict(statement: Statement, pieces: tuple[Evidence, ...], stance: Stance | None) -> Verdict:
    return check.settled(statement, pieces, "") or check.verdict(stance, check.MODEL)


def written(text: str, quote: str = SOURCE) -> tuple[Statement, tuple[Evidence, ...]]:
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
    assert verdict(statement, pieces, stance).support is support


def test_what_rests_on_two_sources_is_judged_against_both_together_in_their_order() -> None:
    first = passage("Gentamicin is given once a day. The dose is 5 mg/kg. Levels are measured.", "Gentamicin")
    second = passage("Stop it if hearing is worse. Ring the pharmacist.", "Side effects")
    pieces = cited((Hit(first, 1.0), Hit(second, 1.0)))
    begins = ("Stop it", "The dose", "Gentamicin is")
    known = [(piece, piece.passage.text) for piece in pieces]
    citations = []
    for begin in begins:
        piece, text = next((piece, text) for piece, text in known if begin in text)
        start = text.index(begin)
        citations.append(piece.citation(start, text.index(".", start) + 1))
    one = Statement("Gentamicin 5 mg/kg once a day is stopped if hearing is worse.", tuple(citations), Origin.GENERATED)
    ((premise, _),) = check.pairs([one], pieces)
    sentences = [line for line in premise.splitlines() if line.endswith(".")]
    assert sentences == ["Gentamicin is given once a day.", "The dose is 5 mg/kg.", "Stop it if hearing is worse."]
    assert check.settled(one, pieces, "") is None, "neither source alone carries it, and no rule says otherwise"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Give 5 mins of oxygen if he won the game.", "Give 5 minutes of oxygen."),  # words that no source has
        ("50 kg 的成人每次 50 mL。", "50 公斤的成人每次 50 mL。"),
        ("Vits and obs as usual.", "Vital signs are measured as usual."),
        ("If the eGFR is under 30 metformin is stopped.", "Do not give metformin if eGFR is below 30."),
    ],
)
def test_words_that_the_source_does_not_have_are_the_judges_affair(text: str, source: str) -> None:
    assert check.veto(text, source, source) is None


def test_what_nobody_judged_gives_way_to_the_sentences_it_cites_and_to_nothing_else() -> None:
    statement, pieces = written("Gentamicin 5 mg/kg is given once a day.")
    for stance, texts in ((None, [SOURCE]), (UNSAID, []), (CARRIED, [statement.text])):
        done = replace(statement, verdict=verdict(statement, pieces, stance))
        shown = check.shown_statements([done], pieces)
        assert [one.text for one in shown if not one.withheld] == texts
        assert all(one.origin is Origin.EXTRACTIVE for one in shown if one.text == SOURCE)


def judged(*stances: Stance | None) -> list[Statement]:
    made = []
    for stance in stances:
        statement, pieces = written("Gentamicin 5 mg/kg is given once a day.")
        made.append(replace(statement, verdict=verdict(statement, pieces, stance)))
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


FOR_WHOM = (
    "It is for adults.\nIt does not cover:\n- people under 18 (see theirs);\n- gastrostomies.\nUse a tube of 8 Fr."
)


@pytest.mark.parametrize(
    ("text", "source", "shown"),
    [
        ("Use an 8 Fr tube.", "Use a tube of 8 Fr.", False),
        ("Use a tube of 8 Fr, 18 cm long.", "- people under 18", False),
        ("It is not for people under 18.", "- people under 18", True),
        ("Ring the children's unit on 5100.", "- people under 18", True),
        ("Ring the children's unit.", "Use a tube of 8 Fr.", True),
    ],
)
def test_a_number_stands_for_a_patient_who_is_excluded_only_with_whom_the_source_is_for(
    text: str, source: str, shown: bool
) -> None:
    piece = evidence("1", FOR_WHOM)
    (start, end) = next(it for it in sentences(FOR_WHOM) if FOR_WHOM[slice(*it)].startswith(source))
    said = replace(quotation(piece, start, end), text=text, verdict=Verdict(Support.SUPPORTED, check.MODEL))
    verdict = check.for_others(said, (piece,)).verdict
    assert verdict is not None
    assert (verdict.support is Support.SUPPORTED) is shown


def test_a_sentence_that_cites_nothing_is_never_asked_of_a_judge() -> None:
    verdict = check.settled(Statement("Rest helps.", (), Origin.GENERATED), (), "")
    assert verdict is not None
    assert verdict.support is Support.UNSUPPORTED
