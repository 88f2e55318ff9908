"""Which function shows which type of part; each workflow's functions stand in its own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localmed.domain import TextPart
from localmed.presentation import departments, links, plan, verify
from localmed.presentation.neutral import one_line
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView, Row

Shown = Callable[[Any, str], PartView]  # a part of the type that it is registered for, and the reader's language


def _text_part(part: TextPart, language: str) -> PartView:
    """A part of a workflow that has no types yet: its words are those of the answer's language."""
    rows = tuple(Row(one_line(name), one_line(value)) for name, value in part.facts)
    verdicts = part.kind == "support"
    statements = tuple(statement_view(statement, language, verdicts) for statement in part.statements)
    return PartView(one_line(part.title), rows, statements)


VIEWS: Mapping[type, Shown] = {
    TextPart: _text_part,
    **plan.VIEWS,
    **departments.VIEWS,
    **verify.VIEWS,
    **links.VIEWS,
}


def part_view(part: Any, language: str) -> PartView:
    """``part`` in ``language``."""
    return VIEWS[type(part)](part, language)
