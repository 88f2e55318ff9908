"""A report to keep: a title, the outcome, paragraphs and tables, as one page that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.presentation.pages import page


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; the first cell of a row names it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def report(language: str, title: str, outcome: str, paragraphs: Sequence[str], tables: Sequence[Table]) -> str:
    """The page."""
    return page("report.html", language=language, title=title, outcome=outcome, paragraphs=paragraphs, tables=tables)
