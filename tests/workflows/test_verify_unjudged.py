"""Verify where no model judges, or one study does, or the answer's own sources do not carry it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from localmed.answering.answer_file import VerifyInput
from localmed.domain import Answer, Badge, Support
from localmed.domain.parts import AlertPart, ClaimPart, Label, ResponsePart, StudiesPart, SupportPart
from tests.values import PROVENANCE
from tests.words import phrase, said
from tests.workflows.verifying import (
    AGAINST,
    ANSWER,
    FOR,
    JURY,
    PLAN,
    QUESTION,
    UNJUDGED,
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
    inputs = (VerifyInput(QUESTION, text), UNJUDGED, PLAN, PROVENANCE)
    return drive("verify", inputs, (FOR, AGAINST), arguments.get("known", {}))[0]


def test_without_a_judge_a_claim_stands_beside_the_nearest_sentences() -> None:
    answer = unjudged(f"# On aspirin\n\nAs follows:\n\n{ANSWER}")
    (claim,) = [one for one in answer.parts if isinstance(one, ClaimPart)]
    assert (claim.claim, claim.label, claim.votes) == (ANSWER, Label.NOT_JUDGED, (0, 0, 0)), "headings claim nothing"
    assert [statement.text for statement in claim.statements] == ["Aspirin prevents stroke."]
    assert {citation.marker for citation in claim.statements[0].citations} <= {one.marker for one in answer.evidence}
    assert not any(isinstance(one, (ResponsePart, StudiesPart)) for one in answer.parts), "nothing is voted"
    assert answer.verification.badge is Badge.NONE
    assert "verify.no_judge" in codes(answer)
    assert phrase("verify.nearest") in shown(answer, "Claim")


def test_without_a_judge_only_word_for_word_is_support() -> None:
    text = "Aspirin prevents stroke [1]. Aspirin prevents most strokes [1]."
    answer = unjudged(text, known={"1": FOR})
    verdicts = [statement.verdict for statement in part(answer, SupportPart).statements]
    assert [verdict.support for verdict in verdicts] == [Support.SUPPORTED, Support.UNCHECKED]
    assert verdicts[1].reason.code == "support.not_judged"


def test_without_a_judge_a_retracted_study_is_told_all_the_same() -> None:
    retracted = replace(FOR, document=replace(FOR.document, publication_types=("Retracted Publication",)))
    alerts = part(unjudged("Aspirin prevents stroke [1].", known={"1": retracted}), AlertPart)
    assert [title.title for _, title in alerts.alerts] == ["A review of aspirin"]


def test_one_study_disagrees_with_nobody() -> None:
    assert "Cochran" not in shown(verify(retrieved=(FOR,)), "Claim")
    assert "异质性" not in shown(verify(retrieved=(FOR,)), "论断", "zh")


def test_no_answer_is_correct_that_its_own_sources_do_not_carry() -> None:
    """Studies support every claim, but a sentence names another medicine than its source."""
    answer = verify("Aspirin prevents stroke. Ibuprofen prevents stroke [1].", (FOR,), {"1": FOR}, bounds=JURY)
    assert set(claims(answer)) == {Label.SUPPORTED}
    assert answer.verification.badge is Badge.RED
    assert response(answer) == Label.NOT_ENOUGH
    assert said("verify.not_carried") in shown(answer, "Response")


def test_what_a_study_says_word_for_word_it_never_contradicts() -> None:
    """The judge of these tests takes every "causes" for a contradiction."""
    quoted = verify("Aspirin causes stroke.", (AGAINST,), question="")
    assert claims(quoted) == [Label.SUPPORTED]
    assert claims(verify("Aspirin prevents stroke.", (AGAINST,), question="")) == [Label.CONTRADICTED]
