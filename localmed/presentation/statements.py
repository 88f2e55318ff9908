"""Sentences with their markers, or as a gap with the reason; citations and definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localmed.domain import AnswerSection, Citation, Evidence, Message, Origin, Statement, Support, message
from localmed.domain.parts import Definition
from localmed.messages import joined
from localmed.presentation.neutral import neutral, one_line, words
from localmed.presentation.views import CitationView, Row, StatementView

NOT_CARRIED = (Support.UNSUPPORTED, Support.CONTRADICTED)


def statement_view(statement: Statement, language: str, verdicts: bool = False) -> StatementView:
    """``statement`` in ``language``; with ``verdicts`` the result of its check stands under it."""
    verdict = statement.verdict
    reason = words(verdict.reason, language) if verdict else ""
    origin = words(Message(f"answer.origin.{statement.origin.value}"), language)
    citations = tuple(citation_view(citation) for citation in statement.citations)
    if statement.withheld:
        gap = words(message("answer.withheld", reason=reason), language)
        return StatementView("", citations, withheld=gap, origin=origin)
    marked = verdict is not None and verdict.support in NOT_CARRIED
    warning = words(message("answer.not_supported", reason=reason), language) if marked and not verdicts else ""
    ended = _verdict(verdict.support, reason, language) if verdict and verdicts else ""
    checked = "" if verdicts or marked else _checked(statement, language)
    return StatementView(
        one_line(statement.text),
        citations,
        warning=warning,
        verdict=ended,
        origin=origin,
        checked=checked,
        unsure=statement.origin is Origin.GENERATED and (verdict is None or verdict.support is Support.UNCHECKED),
    )


def _checked(statement: Statement, language: str) -> str:
    """Who checked a sentence that a model wrote; "" for a quotation."""
    verdict = statement.verdict
    if statement.origin is Origin.GENERATED:
        if verdict is None or verdict.support is Support.UNCHECKED:
            return words(message("answer.unchecked"), language)
        reason = verdict.reason or Message(f"answer.verdict.{verdict.support.value}")
        return words(message("answer.checked", reason=reason, judge=verdict.judge), language)
    return ""


def in_sections(
    statements: Sequence[Statement], evidence: Sequence[Evidence], language: str
) -> tuple[StatementView, ...]:
    """``statements`` under the headings of their sections; sources that disagree are named."""
    views: list[StatementView] = []
    before = AnswerSection.NONE
    for statement in statements:
        section = statement.section
        heading = words(Message(f"answer.section.{section.value}"), language) if section not in ("", before) else ""
        detail = _sources(statement, evidence, language) if section is AnswerSection.DISAGREE else ""
        continues = section is AnswerSection.CONTINUES
        shown = statement_view(statement, language)
        views.append(replace(shown, heading=heading, detail=detail, continues=continues))
        before = section
    return tuple(views)


def _sources(statement: Statement, evidence: Sequence[Evidence], language: str) -> str:
    """Title, kind and edition of each source of ``statement``."""
    markers = {citation.marker for citation in statement.citations}
    named = [
        message(
            "answer.source_of",
            marker=piece.marker,
            title=one_line(piece.document_title),
            kind=Message(f"source.kind.{piece.kind.value or 'unnamed'}"),
            edition=piece.edition or message("answer.no_date"),
        )
        for piece in evidence
        if piece.marker in markers
    ]
    return joined((words(name, language) for name in named), language)


def _verdict(support: Support, reason: str, language: str) -> str:
    name = Message(f"answer.verdict.{support.value}")
    if support not in (*NOT_CARRIED, Support.UNCHECKED):  # the name says it all
        return words(name, language)
    if support is Support.UNCHECKED and reason:  # the reason says by itself that nothing was shown
        return reason
    return words(message("answer.verdict.because", verdict=name, reason=reason) if reason else name, language)


def citation_view(citation: Citation) -> CitationView:
    """A citation with its quotation."""
    quote = neutral(citation.quote)
    return CitationView(
        citation.marker, citation.passage_id, citation.start, citation.end, quote, citation.page, citation.boxes
    )


def definition_rows(definition: Definition | None, language: str) -> tuple[Row, ...]:
    """A definition and its source."""
    if definition is None:
        return ()
    meaning = Row(words(message("plan.definition"), language), one_line(definition.text))
    return (meaning, Row(words(message("column.source"), language), one_line(definition.source)))
