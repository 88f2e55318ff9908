"""What a judge of entailment changes, what stands in place of what is withheld, and what a badge says of a gap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.agents.evidence import citation
from localmed.domain import Evidence, Origin, Statement, Support, Verdict, Verification, message
from localmed.ports import Stance
from localmed.presentation.statements import statement_view
from localmed.verification import support
from localmed.verification.comparison import MORE
from localmed.workflows.gate import lost_by_withholding
from tests.values import evidence

SOURCE = evidence(
    "1",
    "Naproxen 750 mg is given once. Avoid naproxen in heart failure. Serious rashes are rare in the first weeks.",
    "Gout",
)
FOR, OPEN, NEITHER = Stance(0.9, 0.05, 0.05), Stance(0.5, 0.45, 0.05), Stance(0.05, 0.9, 0.05)


def judged(text: str, stance: Stance, judge: str = "checker", source: Evidence = SOURCE) -> Statement:
    statement = Statement(text, (citation(source, text),), Origin.GENERATED)
    (checked,), _ = support.check((statement,), (source,), (stance,), Verification(1, 0), "withhold", judge)
    return checked


@pytest.mark.parametrize(
    ("text", "stance", "expected"),
    [
        ("With a failing pump, leave naproxen out.", FOR, Support.SUPPORTED),  # few shared words
        ("With a failing pump, leave naproxen out.", NEITHER, Support.UNSUPPORTED),
        ("Naproxen is avoided in heart failure.", NEITHER, Support.UNSUPPORTED),  # not said
        ("Naproxen is avoided in heart failure.", OPEN, Support.UNCHECKED),
        ("Naproxen 500 mg is given once.", FOR, Support.UNSUPPORTED),  # a number
        ("Colchicine is avoided in heart failure.", FOR, Support.UNSUPPORTED),  # a medicine
        ("Naproxen is given in heart failure.", FOR, Support.UNSUPPORTED),  # a negation
        ("Serious rashes are common in the first weeks.", FOR, Support.UNSUPPORTED),  # the opposite
    ],
)
def test_a_judge_overrules_words_and_nothing_else(text: str, stance: Stance, expected: Support) -> None:
    statement = judged(text, stance)
    assert statement.verdict is not None
    assert statement.verdict.support is expected


@pytest.mark.parametrize(
    ("plain", "turned"),
    [
        ("躁动时可让患者独处。", "躁动时不让患者独处。"),
        ("术后当天可以进食。", "术后当天不许进食。"),
        ("烧伤创面可以涂牙膏。", "烧伤创面别用牙膏涂抹。"),
    ],
)
def test_a_turned_negation_of_everyday_words_is_seen(plain: str, turned: str) -> None:
    assert judged(turned, FOR, source=evidence("1", plain, "须知")).withheld
    assert judged(plain, FOR, source=evidence("1", turned, "须知")).withheld


def test_the_words_that_a_judge_marked_are_the_reason() -> None:
    text = "Naproxen is avoided in heart failure and in gout."
    start = text.index("and in gout")
    statement = judged(text, Stance(0.1, 0.9, 0.0, marked=((start, start + len("and in gout")),)))
    assert statement.verdict is not None
    assert statement.withheld
    assert statement.verdict.reason == message("support.words_not_said", words=("and in gout",))
    assert "and in gout" not in statement_view(statement, "en").withheld, "a gap shows nothing of what is withheld"
    shown = statement_view(replace(statement, withheld=False), "en")  # as a site that marks shows it
    assert "and in gout" in shown.warning


def test_who_checked_is_named() -> None:
    statement = judged("Naproxen is avoided in heart failure.", FOR)
    assert statement.verdict is not None
    assert statement.verdict.judge == message("support.judge.entailment", name="checker")
    assert "checker" in statement_view(statement, "en").checked
    unchecked = judged("Naproxen is avoided in heart failure.", Stance(0.0, 0.0, 0.0), judge="")
    assert "unchecked" in statement_view(unchecked, "en").checked


def test_the_sources_own_sentence_stands_in_place_of_a_withheld_one() -> None:
    right = judged("Naproxen is avoided in heart failure.", FOR)
    wrong = judged("Serious rashes are common in the first weeks.", FOR)
    shown = support.in_place((right, wrong), (SOURCE,))
    assert [statement.text for statement in shown][2:] == ["Serious rashes are rare in the first weeks."]
    assert support.stands_in(shown[2])
    assert support.in_place((wrong,), (SOURCE,)) == (wrong,), "then the flow quotes what answers"


def test_what_rests_on_its_source_by_meaning_gives_way_to_it() -> None:
    right = judged("Naproxen is avoided in heart failure.", FOR)
    text = "Bad eruptions hardly ever happen early on."
    drafted = Statement(text, (citation(SOURCE, text),), Origin.GENERATED)
    unchecked = replace(drafted, verdict=Verdict(Support.UNCHECKED, support.JUDGE, support.UNSHOWN), withheld=True)
    shown = support.in_place((right, unchecked), (SOURCE,))
    assert len(shown) == 3
    assert support.stands_in(shown[2])
    assert support.gaps(shown, (SOURCE,)) == 1, "few words are shared: nothing is green on that"
    other = replace(unchecked, verdict=Verdict(Support.UNSUPPORTED, support.JUDGE, MORE))
    assert len(support.in_place((right, other), (SOURCE,))) == 2


def test_nothing_is_green_over_a_gap() -> None:
    right = judged("Naproxen is avoided in heart failure.", FOR)
    nowhere = judged("Swimming strengthens the shoulders of older adults.", FOR)
    nowhere = replace(nowhere, withheld=True)
    assert lost_by_withholding("Which patients avoid naproxen?", (right, nowhere), (SOURCE,))
    assert lost_by_withholding("Which patients avoid naproxen?", (right,), (SOURCE,)) is None
    wrong = judged("Serious rashes are common in the first weeks.", FOR)
    shown = support.in_place((right, wrong), (SOURCE,))
    assert lost_by_withholding("Which patients avoid naproxen?", shown, (SOURCE,)) is None


def test_an_exception_counts_only_while_its_sentence_is_shown() -> None:
    source = evidence("1", "Give nitrofurantoin 100 mg twice a day unless eGFR is below 45.", "Urine")
    texts = ("Nitrofurantoin 100 mg is given twice a day.", "Unless eGFR is below 45, nitrofurantoin 900 mg is given.")
    drafted = tuple(Statement(text, (citation(source, text),), Origin.GENERATED) for text in texts)
    checked, _ = support.check(drafted, (source,), (OPEN, OPEN), Verification(2, 0))
    assert [statement.withheld for statement in checked] == [True, True]


BANDS = (
    "Renal function decides. Enoxaparin 40 mg once a day is the standard dose with normal kidney function. "
    "With a creatinine clearance of 30 mL/min or more give enoxaparin 40 mg. "
    "With a creatinine clearance of 15 to 29 mL/min give enoxaparin 20 mg. "
    "With a creatinine clearance of 15 to 29 mL/min avoid naproxen."
)
ROW = "With a creatinine clearance of 15 to 29 mL/min give enoxaparin 20 mg."


@pytest.mark.parametrize(
    ("question", "record", "expected"),
    [
        ("Which dose of enoxaparin?", "Creatinine clearance 20 mL/min. Admitted with heart failure.", [ROW]),
        ("Which dose of enoxaparin with a creatinine clearance of 20 mL/min?", "", [ROW]),
        ("Which dose of enoxaparin?", "", []),
        ("Which dose of enoxaparin?", "Potassium 4.1 mmol/L.", []),
        ("Which dose of enoxaparin?", "Creatinine clearance 9 mL/min.", []),  # no row holds it
    ],
)
def test_the_row_for_a_value_that_was_given_stands_beside_a_models_other_row(
    question: str, record: str, expected: list[str]
) -> None:
    source = evidence("1", BANDS, "Prophylaxis")
    other = judged("Enoxaparin 40 mg once a day is the standard dose with normal kidney function.", FOR, source=source)
    shown = support.in_place((other,), (source,), question, record)
    assert [statement.text for statement in shown[1:]] == expected
    assert all(support.stands_in(statement) for statement in shown[1:])
    assert (lost_by_withholding("Is it given?", shown, (source,)) is not None) is bool(expected), "never green"
    right = judged(ROW, FOR, source=source)
    assert support.in_place((right,), (source,), question, record) == (right,), "a shown one is for it"
    quoted = replace(other, origin=Origin.EXTRACTIVE)
    assert support.in_place((quoted,), (source,), question, record) == (quoted,), "rules chose their rows"


def test_the_row_for_a_value_is_quoted_for_the_purpose_that_was_asked_about_only() -> None:
    source = evidence("1", BANDS, "Prophylaxis of deep vein thrombosis")
    other = judged("Enoxaparin 40 mg once a day is the standard dose with normal kidney function.", FOR, source=source)
    record = "Creatinine clearance 20 mL/min."
    for question, expected in (
        ("Which dose of enoxaparin for the prophylaxis of deep vein thrombosis?", [ROW]),
        ("Which dose of enoxaparin for the treatment of deep vein thrombosis?", []),
    ):
        shown = support.in_place((other,), (source,), question, record)
        assert [statement.text for statement in shown[1:]] == expected, question


def test_what_is_quoted_in_place_is_for_the_patients_values() -> None:
    source = evidence("1", BANDS, "Prophylaxis")
    kept = judged("Renal function decides.", FOR, source=source)
    wrong = judged("With a creatinine clearance of 30 mL/min or more give enoxaparin 60 mg.", FOR, source=source)
    assert wrong.withheld
    without = support.in_place((kept, wrong), (source,), "Which dose?")
    assert any("30 mL/min or more" in statement.text for statement in without[2:])
    shown = support.in_place((kept, wrong), (source,), "Which dose?", "Creatinine clearance 20 mL/min.")
    assert not any("30 mL/min or more" in statement.text for statement in shown[2:])
