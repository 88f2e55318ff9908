from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from localmed.answering.citations import check, exact
from localmed.domain import Box, Citation, Origin, Statement, Support
from tests.values import evidence, quotation

TEXT = "Give 5 mg by mouth. Do not exceed 20 mg a day."
SOURCE = evidence("1", TEXT)


def test_a_forged_marker_is_rejected() -> None:
    honest = quotation(SOURCE, 0, 19)
    forged = replace(honest.citations[0], marker="2")
    (both, alone), account = check(
        [replace(honest, citations=(*honest.citations, forged)), replace(honest, citations=(forged,))], [SOURCE]
    )
    assert [citation.marker for citation in both.citations] == ["1"]
    assert not both.withheld
    assert alone.withheld
    assert alone.citations == ()
    assert account.markers_rejected == 2
    assert account.statements_withheld == 1


def test_an_altered_quotation_is_withheld() -> None:
    honest = quotation(SOURCE, 0, 19)
    citation = honest.citations[0]
    altered = [
        replace(citation, quote="Give 50 mg by mouth."),
        replace(citation, start=1),
        replace(citation, end=18),
        replace(citation, start=-47, end=-27),
        replace(citation, passage_id="0" * 32),
        replace(citation, start=0, end=0, quote=""),
        replace(citation, start=900, end=919),
        replace(citation, document_id="0" * 32),
        replace(citation, boxes=(Box(9, 0, 0, 1, 1),)),
    ]
    for changed in altered:
        (checked,), _ = check([replace(honest, text=changed.quote, citations=(changed,))], [SOURCE])
        assert checked.withheld, changed
        assert checked.verdict is not None
        assert checked.verdict.support is Support.UNSUPPORTED


def test_an_end_beyond_the_passage_is_not_exact() -> None:
    whole = quotation(SOURCE, 20, len(TEXT)).citations[0]
    assert exact(whole, SOURCE)
    assert not exact(replace(whole, end=len(TEXT) + 1), SOURCE)


def test_a_statement_that_is_not_its_quotation_is_withheld() -> None:
    (checked,), _ = check([replace(quotation(SOURCE, 0, 19), text="Give 50 mg by mouth.")], [SOURCE])
    assert checked.withheld


def test_a_statement_without_citation_is_withheld() -> None:
    for origin in Origin:
        (checked,), account = check([Statement("Take it twice.", (), origin)], [SOURCE])
        assert checked.withheld
        assert account.statements_withheld == 1


def test_a_models_words_are_unchecked_never_verbatim() -> None:
    for origin in (Origin.GENERATED, Origin.UNVERIFIED):
        for text in ("Five milligrams orally.", "Give 5 mg by mouth."):
            statement = replace(quotation(SOURCE, 0, 19), text=text, origin=origin)
            (checked,), _ = check([statement], [SOURCE])
            assert checked.verdict is not None
            assert checked.verdict.support is Support.UNCHECKED
            assert not checked.withheld


def test_one_false_citation_withholds_the_statement() -> None:
    honest = quotation(SOURCE, 0, 19)
    false = replace(honest.citations[0], quote="Give nothing at all.")
    (checked,), _ = check([replace(honest, citations=(*honest.citations, false))], [SOURCE])
    assert checked.withheld


@given(st.text(min_size=1, max_size=60), st.data())
def test_exactly_the_cited_stretch_passes(text: str, data: st.DataObject) -> None:
    source = evidence("1", text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    statement = quotation(source, start, end)
    (checked,), account = check([statement], [source])
    assert not checked.withheld
    assert account.statements_withheld == 0
    other = data.draw(st.text(min_size=1, max_size=60))
    assume(other != statement.text)
    citation = replace(statement.citations[0], quote=other)
    assert not exact(citation, source)
    (checked,), _ = check([replace(statement, text=other, citations=(citation,))], [source])
    assert checked.withheld


@given(st.integers(-80, 80), st.integers(-80, 80), st.text(max_size=20))
def test_nothing_outside_the_passage_is_exact(start: int, end: int, quote: str) -> None:
    citation = Citation("1", SOURCE.passage.id, SOURCE.passage.document_id, start, end, quote)
    if exact(citation, SOURCE):
        assert 0 <= start < end <= len(TEXT)
        assert TEXT[start:end] == quote
