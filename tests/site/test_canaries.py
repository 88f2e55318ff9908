"""How an answer stands to what its canary question asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Answer, AnswerStatus, Receipts, ShownLine, ShownSection
from localmed.site.canary_gate import Canary, judged
from tests.values import PROVENANCE, evidence, quotation

PIECES = tuple(
    replace(evidence(str(number), f"Text {number}."), source=f"/d/{number}.txt", document_title=f"Title {number}")
    for number in range(1, 5)
)
SECTIONS = tuple(ShownSection(piece.marker, (ShownLine(piece.marker, 0, 7),)) for piece in PIECES)
FOUND = Answer(
    AnswerStatus.SECTIONS, "Which text?", "en", (), PIECES, (), PROVENANCE, receipts=Receipts(sections=SECTIONS)
)
WRITTEN = replace(FOUND, status=AnswerStatus.ANSWERED, statements=(quotation(PIECES[3], 0, 7),))


@pytest.mark.parametrize(
    ("answer", "documents", "says", "passed"),
    [
        (FOUND, ("3.txt",), ("text  3",), True),
        (FOUND, ("Title 1",), (), True),
        (FOUND, ("4.txt",), (), False),
        (FOUND, ("3.txt",), ("Text 4",), False),
        (WRITTEN, ("4.txt",), ("Text 4",), True),
        (replace(FOUND, receipts=None), ("3.txt",), (), False),
    ],
    ids=["third", "by title", "fourth", "other words", "cited", "nothing"],
)
def test_a_document_is_among_the_first_sections_or_cited(
    answer: Answer, documents: tuple[str, ...], says: tuple[str, ...], passed: bool
) -> None:
    assert judged(Canary("c", "Which text?", "cite", documents, says), answer).passed is passed


def test_what_must_not_be_answered_fails_only_where_something_is_claimed() -> None:
    canary = Canary("c", "Which text?", "abstain")
    assert (judged(canary, FOUND).passed, judged(canary, FOUND).cited) == (True, ())
    assert (judged(canary, WRITTEN).passed, judged(canary, WRITTEN).cited) == (False, ("4.txt",))
