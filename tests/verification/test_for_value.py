"""A dose of another row than that of the value that the question or the record gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Evidence, Origin, Passage, Statement, Support
from localmed.ports import NOT_JUDGED
from localmed.verification import citations, for_value, support
from tests.values import evidence

ROWS = {
    "en": "Creatinine clearance: 30 mL/min or more; Prophylaxis: Enoxaparin 40 mg subcutaneously once a day\n"
    "Creatinine clearance: 15 to 29 mL/min; Prophylaxis: Enoxaparin 20 mg subcutaneously once a day\n"
    "Creatinine clearance: Below 15 mL/min; Prophylaxis: Unfractionated heparin; ask the pharmacist",
    "zh": "肌酐清除率：≥30 mL/min；用法：依诺肝素40 mg皮下注射，每日一次\n"
    "肌酐清除率：15至29 mL/min；用法：依诺肝素20 mg皮下注射，每日一次",
}
USUAL = (
    "Enoxaparin 40 mg by subcutaneous injection once a day is the usual dose for adults with normal kidney function."
)


def table(language: str) -> Passage:
    return replace(evidence("1", ROWS[language], "").passage, table=True)


def generated(text: str, source: Evidence) -> Statement:
    return Statement(text, (source.citation(0, len(source.passage.text)),), Origin.GENERATED)


@pytest.mark.parametrize(
    ("language", "context", "statement", "other"),
    [
        ("en", "Which dose with a creatinine clearance of 20 mL/min?", "Enoxaparin 40 mg once a day", True),
        ("en", "Woman, 81. Creatinine clearance 20 mL/min.", "40 mg subcutaneously once a day", True),
        ("en", "Woman, 81. Creatinine clearance 20 mL/min.", "Enoxaparin 20 mg once a day is given.", False),
        ("en", "Woman, 81.", "Enoxaparin 40 mg once a day is given.", False),
        ("en", "", "When creatinine clearance is 20 mL/min the dose of enoxaparin is 40 mg.", True),
        (
            "en",
            "Creatinine clearance 20 mL/min.",
            "With a clearance of 30 mL/min or more give enoxaparin 40 mg.",
            False,
        ),
        ("en", "Which dose with a creatinine clearance below 30 mL/min?", "Enoxaparin 20 mg once a day", False),
        ("zh", "肌酐清除率20 mL/min，依诺肝素用多少？", "依诺肝素40 mg皮下注射，每日一次。", True),
        ("zh", "肌酐清除率20 mL/min，依诺肝素用多少？", "依诺肝素20 mg皮下注射，每日一次。", False),
    ],
)
def test_a_dose_of_another_row(language: str, context: str, statement: str, other: bool) -> None:
    assert for_value.of_another(statement, [context], [table(language)]) is other


def test_the_usual_dose_is_another_rows_where_one_is_for_the_value() -> None:
    passages = [table("en"), evidence("2", USUAL, "").passage]
    assert for_value.of_another(USUAL, ["Creatinine clearance 20 mL/min."], passages)
    assert not for_value.of_another(USUAL, ["Creatinine clearance 20 mL/min."], passages[1:])


@pytest.mark.parametrize("judged", [False, True])
def test_it_is_withheld_also_word_for_word_and_whatever_a_judge_says(judged: bool) -> None:
    source = replace(evidence("1", ROWS["en"], ""), passage=table("en"))
    statements, account = citations.check((generated("Enoxaparin 40 mg subcutaneously once a day", source),), (source,))
    stances = [NOT_JUDGED] * len(support.pairs(statements, (source,)))
    question = "Which dose of enoxaparin with a creatinine clearance of 20 mL/min?"
    (checked,), _ = support.check(
        statements, (source,), stances, account, judge="a judge" if judged else "", context=(question,)
    )
    assert checked.withheld
    assert checked.verdict
    assert checked.verdict.support is Support.UNSUPPORTED
    assert checked.verdict.reason == support.OTHER_ROW
