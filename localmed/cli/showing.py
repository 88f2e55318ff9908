"""Answers on a terminal, of whatever workflow: the view of ``presentation``, line by line."""

from __future__ import annotations

from collections.abc import Sequence

from localmed.cli.common import echo, echo_wrapped
from localmed.domain import Answer
from localmed.messages import ASIDE, COLON, joined
from localmed.presentation.answer import view
from localmed.presentation.neutral import one_line
from localmed.presentation.views import BadgeView, PartView, SourceView, StatementView


def show(answer: Answer) -> None:
    """Print an answer: label, sentences with their markers, parts, possible conflicts, notes, sources, purpose."""
    shown = view(answer)
    if shown.banner:
        echo_wrapped(shown.banner, bold=True)
    if shown.headline:
        echo_wrapped(shown.headline, bold=True)
    if shown.searched:
        echo_wrapped(shown.searched)
    _show_statements(shown.statements)
    if shown.badge:
        _show_badge(shown.badge)
    section = ""
    for part in shown.parts:
        if part.section != section:
            section = part.section
            if section:
                echo_wrapped(f"== {section} ==", "\n", "", bold=True)
        _show_part(part, shown.language)
    for conflict in shown.conflicts:
        echo_wrapped(conflict.text, "! ", "  ", bold=True)
        for title, side in ((conflict.our_title, conflict.ours), (conflict.their_title, conflict.theirs)):
            echo_wrapped(joined((title, one_line(side.quote)), shown.language, COLON), "    ", "    ")
    for note in shown.notes:
        echo_wrapped(note, "* ", "  ")
    if answer.receipts is not None:
        from localmed.cli.search import show_finding

        echo()
        show_finding(answer)
    if shown.sources:
        echo(f"\n{shown.sources_title}", bold=True)
        for source in shown.sources:
            _show_source(source, shown.language)
        echo(shown.opening)
    echo_wrapped(shown.purpose, "\n", "")


def _show_badge(badge: BadgeView) -> None:
    """Print the badge with what belongs to it."""
    echo_wrapped(badge.reason, bold=True)
    for line in (badge.before, badge.alone, badge.judged):
        if line:
            echo_wrapped(line, "  ", "  ")


def _show_part(part: PartView, language: str) -> None:
    """A part under its title: its rows, then its sentences."""
    echo()
    echo_wrapped(part.title, bold=True)
    for row in part.rows:
        echo_wrapped(joined(filter(None, (row.label, row.text)), language, COLON), "  ", "  ")
        if row.detail:
            echo_wrapped(row.detail, "      ", "      ")
    _show_statements(part.statements)


def _show_statements(statements: Sequence[StatementView]) -> None:
    """One a line, under it what its check came to where that is shown."""
    for statement in statements:
        if statement.heading:
            echo_wrapped(statement.heading, bold=True)
        echo_wrapped(_line(statement), "  - ", "    ")
        for line in filter(None, (statement.detail, statement.verdict)):
            echo_wrapped(line, "      ", "      ")


def _line(statement: StatementView) -> str:
    if statement.withheld:
        return statement.withheld
    cited = "".join(f"[{citation.marker}]" for citation in statement.citations)
    return " ".join(text for text in (statement.text, cited, statement.warning, statement.checked) if text)


def _show_source(source: SourceView, language: str) -> None:
    line = joined((source.title, *source.details, *source.warnings), language, ASIDE)
    echo_wrapped(line, f"  [{source.marker}] ", "      ")
    span = f"--span {source.start}-{source.end}" if source.end else ""
    echo_wrapped(f"{source.passage_id[:12]} {span}  {source.file}", "      ", "      ")
