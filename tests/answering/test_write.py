"""What a model is given to read: whole sentences, nothing of a text that may not be read to it; and quotations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.check import cited, verbatim
from localmed.answering.write import blocks, of_evidence, scope_spans
from localmed.domain import Answer, AnswerStatus, Evidence, ShownLine, ShownSection, Status, Support
from tests.values import PROVENANCE, evidence, passage

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


RULES_OUT = "Repeat the chest X-ray to exclude lung cancer."
EXCLUSIONS = [f"patients of group {number}" for number in range(6)]


def test_a_list_of_exclusions_is_whole_and_what_a_test_rules_out_is_none() -> None:
    """A model that does not see the exclusion answers for somebody who is not covered."""
    text = "\n".join(("This is for adults.", "It does not cover:", *(f"- {one}" for one in EXCLUSIONS)))
    rules_out = replace(passage(RULES_OUT), headings=("Chest pain", "Follow-up"))
    scope = replace(passage(text), headings=("Chest pain", "Scope and exclusions"))
    assert not list(scope_spans(rules_out))
    assert not list(scope_spans(replace(passage("先排除溶血，再减慢速度。"), headings=("输血", "发热反应"))))
    asked = evidence("1", TEXT)
    of_document = {asked.passage.document_id: (asked.passage, scope)}
    minted = {asked.passage.id: asked, scope.id: replace(evidence("2", text), passage=scope)}
    (made,) = blocks([section_of(asked)], (asked,), of_document, minted)
    shown = [one.text for one in made.sentences]
    assert not [one for one in EXCLUSIONS if one not in "\n".join(shown)]
    assert shown[0] == "This is for adults.", "the scope section comes first"


@pytest.mark.parametrize("heading", ["1. Scope", "A. Patients"])
def test_what_a_list_excludes_comes_with_its_first_line_and_a_chapter_heads_its_parts(heading: str) -> None:
    """ "It does not cover:" by itself says nothing, or the wrong thing of what stands below it."""
    text = "\n".join(("It does not cover:", *(f"- {one};" for one in EXCLUSIONS), "- others.", "Use form NS-38."))
    part = replace(passage(text), headings=(passage(text).title, heading, "1.1 Who may pass a tube"))
    told = [text[start:end] for start, end in scope_spans(part)]
    assert len(told) == len(EXCLUSIONS) + 2 + (heading == "1. Scope")
    assert told[0] == "It does not cover:"


# --- quotations -------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=60), st.data())
def test_a_quotation_is_the_cited_stretch_to_the_character(text: str, data: st.DataObject) -> None:
    source = evidence("1", text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    made = source.quotation(start, end)
    (one,) = made.citations
    assert made.text == one.quote == source.passage.text[one.start : one.end] == text[start:end]
    assert (one.marker, one.passage_id) == (source.marker, source.passage.id)
    assert set(one.boxes) <= set(source.passage.boxes(start, end))
    checked = verbatim(made)
    assert checked.verdict is not None
    assert (checked.verdict.support, checked.withheld) == (Support.VERBATIM, False)


def test_what_is_withheld_is_not_shown_and_cites_nothing_that_is() -> None:
    one, other = evidence("1", "Give zinc."), evidence("2", "Give iron.")
    statements = (one.quotation(0, 10), replace(other.quotation(0, 10), withheld=True))
    answer = Answer(AnswerStatus.ANSWERED, "q", "en", statements, (other, one), (), PROVENANCE)
    assert answer.shown == statements[:1]
    assert cited(answer.shown, answer.evidence) == (one,)
