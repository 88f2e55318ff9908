"""Verify where no model judges, or one study does, or the answer's own sources do not carry it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localmed.domain import Answer, AnswerStatus, Badge, Support
from localmed.domain.parts import ClaimPart, Label, StudiesPart, SupportPart
from localmed.verification.answer_file import VerifyInput
from tests.values import PROVENANCE
from tests.workflows.verifying import (
    AGAINST,
    ANSWER,
    BOUNDS,
    FOR,
    QUESTION,
    claims,
    codes,
    drive,
    part,
    response,
    shown,
    verify,
)


def unjudged(text: str = ANSWER, **arguments: Any) -> Answer:
    """Verified where no model judges entailment."""
    inputs = (VerifyInput(QUESTION, text), replace(BOUNDS, judged=False), PROVENANCE)
    return drive("verify", inputs, (FOR, AGAINST), arguments.get("known", {}), nobody=True)[0]


def test_without_a_judge_studies_are_shown_and_nothing_is_voted() -> None:
    answer = unjudged()
    assert response(answer) == Label.NOT_JUDGED
    assert set(claims(answer)) == {Label.NOT_JUDGED}
    assert answer.status is AnswerStatus.ABSTAINED
    claim = part(answer, ClaimPart)
    assert [statement.text for statement in claim.statements] == ["Aspirin prevents stroke."], (
        "what holds most of its words"
    )
    assert (claim.votes[:2], claim.main, claim.dropped) == ((0, 0), (), ())
    assert all(row.votes == () for row in part(answer, StudiesPart).studies)
    assert "verify.no_judge" in codes(answer)
    assert "verify.judged_by" not in codes(answer)
    rows = shown(answer, "Claim")
    assert "label: not judged" in rows
    assert "votes" not in rows + shown(answer, "Studies")
    assert "Cochran" not in rows


def test_without_a_judge_only_word_for_word_is_support() -> None:
    text = "Aspirin prevents stroke [1]. Aspirin prevents most strokes [1]."
    answer = unjudged(text, known={"1": FOR})
    verdicts = [statement.verdict for statement in part(answer, SupportPart).statements]
    assert [verdict.support for verdict in verdicts] == [Support.VERBATIM, Support.UNCHECKED]
    assert verdicts[1].reason.code == "support.not_judged"
    assert response(answer) == Label.NOT_JUDGED


def test_one_study_disagrees_with_nobody() -> None:
    assert "Cochran" not in shown(verify(retrieved=(FOR,)), "Claim")
    assert "异质性" not in shown(verify(retrieved=(FOR,)), "论断", "zh")


def test_no_answer_is_correct_that_its_own_sources_do_not_carry() -> None:
    """Studies support every claim, but a sentence names another medicine than its source."""
    bounds = replace(BOUNDS, jury=("badge",))
    answer = verify("Aspirin prevents stroke. Ibuprofen prevents stroke [1].", (FOR,), {"1": FOR}, bounds=bounds)
    assert set(claims(answer)) == {Label.SUPPORTED}
    assert answer.verification.badge is Badge.RED
    assert response(answer) == Label.NOT_ENOUGH
    assert "not carried by what it cites" in shown(answer, "Response")


def test_what_a_study_says_word_for_word_it_never_contradicts() -> None:
    """The judge of these tests takes every "causes" for a contradiction."""
    quoted = verify("Aspirin causes stroke.", (AGAINST,), question="")
    assert claims(quoted) == [Label.SUPPORTED]
    assert claims(verify("Aspirin prevents stroke.", (AGAINST,), question="")) == [Label.CONTRADICTED]
