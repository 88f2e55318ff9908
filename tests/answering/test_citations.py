"""Quotations are the source's own words; what is shown, and what it cites."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.citations import cited, shown, verbatim
from localmed.domain import Support
from tests.values import evidence


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
    statements = [one.quotation(0, 10), replace(other.quotation(0, 10), withheld=True)]
    assert shown(statements) == (statements[0],)
    assert cited(shown(statements), [other, one]) == (one,)
