"""What a reader sees of a verification, in both languages; no part shows a code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.answering.reliability import ASPECTS, DOUBTED, NOTICE, PLANTED, RETRACTED
from localmed.domain import Origin, Statement, Support, Verdict, message
from localmed.domain.parts import (
    AlertPart,
    CitationsPart,
    CitedReference,
    ClaimPart,
    EvidenceQualityPart,
    Label,
    Quality,
    ResponsePart,
    StudiesPart,
    StudyRow,
    SupportPart,
    Titled,
)
from localmed.presentation.answer import part_view
from localmed.presentation.verify import votes
from localmed.presentation.views import PartView
from tests.words import said

STUDY = Titled("A review", "2023", from_answer=True)
SENTENCE = Statement(
    "Aspirin helps.", (), Origin.SUBMITTED, Verdict(Support.UNCHECKED, message("support.judge.rules"),
                                                    message("support.not_judged")),
)  # fmt: skip
PARTS = (
    *(ResponsePart(label, ((Label.SUPPORTED, 1), (Label.NOT_JUDGED, 2)), False) for label in Label),
    AlertPart(tuple((code, STUDY) for code in (RETRACTED, NOTICE, PLANTED, DOUBTED, "withdrawn", "superseded"))),
    *(ClaimPart("Aspirin helps.", label, (1, 1, 0), 0.5, 2.0, 1.0, 2, 1, (STUDY,), (STUDY,)) for label in Label),
    *(EvidenceQualityPart(quality) for quality in Quality),
    StudiesPart((StudyRow(STUDY, 7.0, 7, 1.0, (), ()), StudyRow(STUDY, 1.0, 2, 0.0, ASPECTS, (1, 0, -1)))),
    CitationsPart((CitedReference("1", STUDY), CitedReference("2"), CitedReference("3", STUDY, ("2016",)))),
    SupportPart((SENTENCE,)),
)


def lines(seen: PartView) -> str:
    texts = [seen.title, *(f"{row.label} {row.text} {row.detail}" for row in seen.rows)]
    return "\n".join([*texts, *(f"{one.text} {one.verdict} {one.origin}" for one in seen.statements)])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_no_code_and_no_brace_is_shown(part: object, language: str) -> None:
    seen = lines(part_view(part, language))
    assert not any(sign in seen for sign in ("verify.", "links.", "support.", "{", "_"))
    assert language == "zh" or seen.isascii()


def test_a_persons_sentence_is_nobody_elses() -> None:
    seen = lines(part_view(SupportPart((SENTENCE,)), "en"))
    assert "no model checked it" in seen
    assert "model from the source" not in seen
    statement = replace(
        SENTENCE, verdict=Verdict(Support.VERBATIM, message("support.judge.rules"), message("support.said"))
    )
    assert said("answer.verdict.verbatim") in lines(part_view(SupportPart((statement,)), "en"))


def test_votes_stand_under_the_claims_that_were_judged() -> None:
    judged, unjudged = (ClaimPart(text, label, (1, 0, 0), 7.0) for text, label in
                        (("It helps.", Label.SUPPORTED), ("It harms.", Label.NOT_JUDGED)))  # fmt: skip
    rows = (StudyRow(STUDY, 7.0, 7, 0.0, (), (1, -1)), StudyRow(STUDY, 2.0, 2, 0.0, (), (0, 1)))
    table = votes((unjudged, judged, judged, StudiesPart(rows)), "en")
    assert table is not None
    assert [claim for claim, _ in table.claims] == ["It harms.", "It helps.", "It helps."]
    assert [(reliability, signs) for _, reliability, signs in table.studies] == [
        ("7.0", ("–", "+", "-")),
        ("2.0", ("–", "0", "+")),
    ]
    assert votes((unjudged,), "en") is None
