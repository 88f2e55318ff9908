"""Whether a model's sentence is carried by what it cites: numbers, units, words, and the judge."""

from __future__ import annotations

import pytest

from localmed.agents.evidence import citation
from localmed.domain import Origin, Statement, Support, Verification
from localmed.ports import Stance
from localmed.verification import support
from tests.values import evidence, quotation

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
        SOURCE.passage.in_context,
        other.passage.in_context,
    ]
    (checked,), _ = support.check((statement,), (SOURCE, other), (NEITHER, FOR), Verification(1, 0))
    assert checked.verdict is not None
    assert checked.verdict.support is Support.SUPPORTED


def test_a_translation_is_not_measured_by_its_words() -> None:
    text = "肾上腺素 0.5 mg，肌内注射。"
    assert judged(text).verdict is not None
    assert not judged(text).withheld
