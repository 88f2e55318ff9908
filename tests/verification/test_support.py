"""Whether a model's sentence is carried by what it cites: numbers, units, words, and the judge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.agents.evidence import citation
from localmed.clinical.medicines import ingredients
from localmed.domain import Evidence, Message, Origin, Statement, Support, Verification, message
from localmed.ports import Stance
from localmed.verification import citations, comparison, quantities, support
from localmed.verification.matching import window
from localmed.verification.polarity import turned
from tests.values import evidence, passage, quotation

SOURCE = evidence("1", "Give 0.5 mg of adrenaline into the thigh. Repeat after 5 minutes.", "Anaphylaxis")
FOR, AGAINST, NEITHER = Stance(0.8, 0.1, 0.1), Stance(0.1, 0.2, 0.7), Stance(0.2, 0.6, 0.2)


def judged(text: str, stance: Stance = NEITHER) -> Statement:
    statement = Statement(text, (citation(SOURCE, text),), Origin.GENERATED)
    (checked,), account = support.check((statement,), (SOURCE,), (stance,), Verification(1, 0))
    assert account.statements_withheld == checked.withheld
    return checked


@pytest.mark.parametrize(
    ("text", "stance", "expected"),
    [
        ("Give 0.5 mg of adrenaline.", FOR, Support.SUPPORTED),
        ("Give 500 micrograms of adrenaline.", FOR, Support.SUPPORTED),
        ("Give 0.5 mg of adrenaline.", AGAINST, Support.CONTRADICTED),
        ("Give 0.5 mcg of adrenaline.", FOR, Support.UNSUPPORTED),
        ("Give 500 mg of adrenaline.", FOR, Support.UNSUPPORTED),
        ("Give adrenaline for 3 days.", FOR, Support.UNSUPPORTED),
        ("Repeat adrenaline after 5 minutes.", NEITHER, Support.UNCHECKED),
        ("Antibiotics shorten the stay in hospital.", NEITHER, Support.UNSUPPORTED),
    ],
)
def test_verdicts(text: str, stance: Stance, expected: Support) -> None:
    statement = judged(text, stance)
    assert statement.verdict is not None
    assert statement.verdict.support is expected
    assert statement.withheld is (expected in (Support.UNSUPPORTED, Support.CONTRADICTED))
    assert statement.text == text


def test_quotations_and_withheld_sentences_are_left_alone() -> None:
    quoted = quotation(SOURCE, 0, 41)
    statements, _ = support.check((quoted,), (SOURCE,), (), Verification(1, 0))
    assert statements == (quoted,)
    assert support.pairs((quoted,), (SOURCE,)) == ()


def test_each_cited_passage_is_judged_once() -> None:
    other = evidence("2", "Adrenaline is given into the thigh.", "Notes")
    text = "Give adrenaline into the thigh."
    both = (citation(SOURCE, text), citation(other, text), citation(SOURCE, text))
    statement = Statement(text, both, Origin.GENERATED)
    assert [premise for premise, _ in support.pairs((statement,), (SOURCE, other))] == [
        "Anaphylaxis\nGive 0.5 mg of adrenaline into the thigh.",
        "Notes\nAdrenaline is given into the thigh.",
    ]
    (checked,), _ = support.check((statement,), (SOURCE, other), (NEITHER, FOR), Verification(1, 0))
    assert checked.verdict is not None
    assert checked.verdict.support is Support.SUPPORTED


def test_a_translation_is_not_measured_by_its_words() -> None:
    text = "肾上腺素 0.5 mg，肌内注射。"
    assert judged(text).verdict is not None
    assert not judged(text).withheld


UNSHOWN = message("support.unshown")
RULES = evidence(
    "1",
    "Start ramipril 2.5 mg by mouth once a day. Do not give ramipril in pregnancy. Check potassium after two weeks.",
    "Heart failure",
)


def reason(text: str, source: Evidence = RULES, policy: support.Policy = "withhold") -> tuple[Message | None, bool]:
    statement = Statement(text, (citation(source, text),), Origin.GENERATED)
    (checked,), _ = support.check((statement,), (source,), (NEITHER,), Verification(1, 0), policy)
    assert checked.verdict is not None
    return checked.verdict.reason, checked.withheld


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ramipril is not given in pregnancy.", UNSHOWN),
        ("Potassium is checked two weeks later.", UNSHOWN),
        ("Check potassium after 14 days.", UNSHOWN),
        ("Potassium is checked two months later.", quantities.UNIT),
        ("Start ramipril 2.5 g by mouth once a day.", quantities.UNIT),
        ("Start ramipril 5 mg by mouth once a day.", quantities.NUMBER),
        ("Start bisoprolol 2.5 mg by mouth once a day.", comparison.MEDICINE),
        ("Start ramipril 2.5 mg intravenously once a day.", comparison.MANNER),
        ("Start ramipril 2.5 mg by mouth three times a day.", quantities.NUMBER),
        ("Give ramipril in pregnancy.", comparison.NEGATION),
        ("Do not check potassium after two weeks.", comparison.NEGATION),
        ("Start ramipril 2.5 mg by mouth once a day.", support.QUOTED),
        ("Start ramipril 2.5 mg by mouth once a day, but not in pregnancy.", UNSHOWN),
        ("Children improve most in winter.", comparison.MORE),
    ],
)  # fmt: skip
def test_what_the_rules_find(text: str, expected: Message) -> None:
    assert reason(text)[0] == expected


def test_a_fault_is_withheld_or_marked_as_the_site_says() -> None:
    assert reason("Start ramipril 5 mg by mouth once a day.") == (quantities.NUMBER, True)
    assert reason("Start ramipril 5 mg by mouth once a day.", policy="mark") == (quantities.NUMBER, False)


def test_an_exception_that_another_sentence_says_is_not_omitted() -> None:
    texts = ("Start ramipril 2.5 mg by mouth once a day.", "Ramipril is not given in pregnancy.")
    statements = tuple(Statement(text, (citation(RULES, text),), Origin.GENERATED) for text in texts)
    checked, _ = support.check(statements, (RULES,), (NEITHER, NEITHER), Verification(2, 0))
    assert not any(statement.withheld for statement in checked)


def test_a_quotation_brings_the_sentence_that_limits_it() -> None:
    quoted = quotation(RULES, 0, 42)
    shown = support.with_exceptions((quoted,), (RULES,))
    assert [statement.text for statement in shown] == [quoted.text, "Do not give ramipril in pregnancy."]
    checked, _ = citations.check(shown, (RULES,))
    assert [statement.verdict and statement.verdict.support for statement in checked] == [Support.VERBATIM] * 2
    assert support.with_exceptions(shown, (RULES,)) == shown, "nothing is said twice"


def test_no_citations_unknown_markers_and_evidence_in_another_language() -> None:
    bare = Statement("Start ramipril.", (), Origin.EXTRACTIVE)
    assert support.with_exceptions((bare, quotation(SOURCE, 0, 41)), ()) == (bare, quotation(SOURCE, 0, 41))
    checked, account = citations.check((replace(bare, origin=Origin.GENERATED),), ())
    assert support.pairs(checked, ()) == ()
    assert support.check(checked, (), (), account)[0] == checked
    chinese = evidence("1", "雷米普利起始剂量为2.5毫克，每日一次。妊娠期禁用。", "心力衰竭")
    assert reason("Ramipril starts at 2.5 mg once a day.", chinese)[1] is False
    assert reason("Ramipril starts at 2.5 g once a day.", chinese) == (quantities.UNIT, True)
    assert reason("Bisoprolol starts at 2.5 mg once a day.", chinese) == (comparison.MEDICINE, True)


def test_two_hundred_statements() -> None:
    text = "Potassium is checked after two weeks."
    many = tuple(Statement(text, (citation(RULES, text),), Origin.GENERATED) for _ in range(200))
    checked, account = support.check(many, (RULES,), (FOR,) * 200, Verification(200, 0))
    assert account.statements_withheld == 0
    assert {statement.verdict.support for statement in checked if statement.verdict} == {Support.SUPPORTED}


@pytest.mark.parametrize(
    ("text", "likeness", "expected"),
    [
        ("Pregnant women do not get ramipril.", 0.8, UNSHOWN),
        ("Pregnant women do not get ramipril.", 0.4, comparison.MORE),
        ("Serum electrolytes deserve another look later.", 0.75, comparison.MORE),  # not one word of the source
    ],
)
def test_meaning_counts_beside_words_where_a_judge_compared_it(text: str, likeness: float, expected: Message) -> None:
    statement = Statement(text, (citation(RULES, text),), Origin.GENERATED)
    stance = Stance(0.2, 0.6, 0.2, likeness)
    (checked,), _ = support.check((statement,), (RULES,), (stance,), Verification(1, 0))
    assert checked.verdict is not None
    assert checked.verdict.reason == expected


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("It is infused over a quarter of an hour.", "Infuse over 15 minutes."),
        ("Check glucose half-hourly.", "Check glucose every 30 minutes."),
        ("Repeat the test in a fortnight.", "Repeat the test after two weeks."),
        ("Ipratropium is given six-hourly.", "Give ipratropium every six hours."),
        ("Scan the kidneys within a day.", "Scan the kidneys within 24 hours."),
        ("一次100毫克，一天两次。", "100毫克，每日2次。"),
        ("另一种办法是每年输注一次。", "每年输注1次。"),
        ("以每小时0.1单位/公斤泵入。", "以每小时每公斤体重0.1单位泵入。"),
        ("半小时后复查。", "30分钟后复查。"),
    ],
)
def test_times_and_doses_in_other_wordings_are_held(text: str, source: str) -> None:
    assert quantities.missing(text, source) is None


def test_other_times_than_the_source_are_not_held() -> None:
    assert quantities.missing("Infused over half an hour.", "Infuse over 15 minutes.")
    assert quantities.missing("Given four-hourly.", "Give every six hours.")
    assert quantities.missing("一天三次。", "每日2次。")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Give trimethoprim 200 mg.", "Give pivmecillinam 200 mg."),
        ("Give lorazepam first.", "Give midazolam first."),
        ("Give senna.", "Give macrogol."),
        ("改用羟考酮。", "改用纳洛酮。"),
        ("首选磷霉素。", "首选呋喃妥因。"),
    ],
)
def test_medicines_without_a_telling_ending_are_known(text: str, source: str) -> None:
    mine, theirs = ingredients(text), ingredients(source)
    assert mine
    assert theirs
    assert not mine & theirs


def test_too_few_is_no_denial() -> None:
    assert not turned("血钾不到3.3时先补钾。", "血钾低于3.3时应先补钾。")
    assert turned("血钾低于3.3时不应补钾。", "血钾低于3.3时应先补钾。")


def test_six_hourly_is_every_six_hours_and_a_class_is_named_by_its_passage() -> None:
    source = evidence(
        "1", "Antibiotics are given early. Doxycycline 100 mg every six hours is the first choice.", "Lungs"
    )
    assert reason("The preferred antibiotic is doxycycline 100 mg, six-hourly.", source)[0] == UNSHOWN
    assert reason("The preferred antibiotic is doxycycline 100 mg, four-hourly.", source)[0] != UNSHOWN


@pytest.mark.parametrize(
    ("statement", "source", "expected"),
    [
        ("病毒性咽炎患儿常规应用抗菌药。", "咽炎患儿大多为病毒感染，不用抗菌药。", True),
        ("病毒性咽炎患儿不用抗菌药。", "咽炎患儿大多为病毒感染，不用抗菌药。", False),
        ("备皮时可以不剃毛。", "备皮时不剃毛。", False),
        ("术前不可以不禁食。", "术前无需禁食。", True),
        ("术前必须禁食。", "术前不可不禁食。", False),
        ("There is not no routine place for a mouthwash.", "A mouthwash is not used routinely.", True),
        (
            "Put things in the mouth while the jaw is tight.",
            "Do not put anything in the mouth while the jaw is tight.",
            True,
        ),
        ("有溃疡时用抗菌药。", "除非有溃疡，不用抗菌药。", False),
    ],
)
def test_two_denials_affirm_and_a_denial_cannot_be_left_out(statement: str, source: str, expected: bool) -> None:
    assert turned(statement, source) is expected


def test_names_of_one_class_are_the_same_whichever_comes_first() -> None:
    text = "Sodium and anticonvulsant levels are sent."
    source = passage("Send blood for sodium and antiseizure levels.", "Seizures")
    assert comparison.fault(text, window(text, [source]), 0.9) is None
