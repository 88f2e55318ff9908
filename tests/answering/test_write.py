"""What a model is given to read: whole sentences, and nothing of a text that may not be read to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.answering.write import blocks, of_evidence
from localmed.domain import Evidence, ShownLine, ShownSection, Status
from tests.values import evidence

TEXT = "Give 4 g a day. It does not apply to children."


def section_of(piece: Evidence) -> ShownSection:
    return ShownSection(piece.marker, (ShownLine(piece.marker, 0, 15),))


@pytest.mark.parametrize(("status", "planted"), [(Status.WITHDRAWN, False), (Status.CURRENT, True)])
def test_what_may_not_be_read_to_a_model_is_in_no_block(status: Status, planted: bool) -> None:
    """A document may be withdrawn between the search and the reading."""
    kept, gone = evidence("1", TEXT), evidence("2", f"Secret. {TEXT}", "Other", status)
    both = (kept, replace(gone, planted=planted))
    scopes = {piece.passage.document_id: (piece.passage,) for piece in both}
    made = blocks(map(section_of, both), both, scopes, {piece.passage.id: piece for piece in both})
    assert [block.title for block in made] == ["Title › 2024"]
    assert [one.text for one in made[0].sentences] == ["It does not apply to children.", "Give 4 g a day."]
    assert "Secret" not in "".join(block.text for block in of_evidence(both))
    foreign = {kept.passage.document_id: (gone.passage,)}
    (alone,) = blocks([section_of(kept)], both, foreign, {gone.passage.id: both[1]})
    assert [one.text for one in alone.sentences] == ["Give 4 g a day."]
