"""What may not count as a study, and why."""

from __future__ import annotations

import pytest

from localmed.answering.reliability import doubted, excluded
from localmed.domain import Document, Status


def document(status: Status = Status.CURRENT, types: tuple[str, ...] = (), link: str = "") -> Document:
    return Document(
        "1" * 32, "c", "k", "Aspirin and stroke", "en", "f", "0" * 64, "0" * 64, "text/plain", status=status,
        publication_types=types, relations=((link, "pmid:1"),) if link else (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (document(), ""),
        (document(types=("Randomized Controlled Trial",)), ""),
        (document(Status.WITHDRAWN), "withdrawn"),
        (document(Status.SUPERSEDED), "superseded"),
        (document(types=("Journal Article", "Retracted Publication")), "retracted"),
        (document(link="retraction_in"), "retracted"),
        (document(link="retracted_and_republished_in"), "retracted"),
        (document(link="retraction_of"), ""),
        (document(types=("Retraction of Publication",)), "notice"),
        (document(types=("Published Erratum",)), "notice"),
        (document(link="erratum_in"), ""),
    ],
)
def test_what_is_out_of_force_does_not_count(source: Document, reason: str) -> None:
    assert excluded(source, False) == reason


def test_text_addressed_to_a_model_does_not_count() -> None:
    assert excluded(document(), True) == "planted"


def test_doubts_are_told_and_count() -> None:
    doubtful = document(link="expression_of_concern_in")
    assert doubted(doubtful)
    assert not doubted(document(link="erratum_in"))
    assert excluded(doubtful, False) == ""
