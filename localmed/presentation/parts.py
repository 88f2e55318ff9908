"""Which function shows which type of part; the larger workflows' functions stand in modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localmed.domain import message
from localmed.domain.parts import ConceptPart, DepartmentPart, NearestPart, SourcePlanPart
from localmed.presentation import links, order, practice, verify
from localmed.presentation.neutral import one_line
from localmed.presentation.statements import definition_rows, statement_view
from localmed.presentation.views import PartView, Row
from localmed.presentation.words import words

Shown = Callable[[Any, str], PartView]  # a part of the type that it is registered for, and the reader's language


def part_view(part: Any, language: str) -> PartView:
    """``part`` in ``language``."""
    return VIEWS[type(part)](part, language)


def nearest(part: NearestPart, language: str) -> PartView:
    """A sentence of each passage, under a title that says what they are not."""
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(words(message("answer.nearest"), language), (), statements)


def department(part: DepartmentPart, language: str) -> PartView:
    """A department: the warning signs that it comes first for, its floor, and the cited reasons."""
    floor = one_line(part.floor) or words(message("departments.no_floor"), language)
    signs = tuple(Row(words(message("departments.go_first"), language), words(sign, language)) for sign in part.signs)
    rows = (Row(words(message("departments.floor"), language), floor), *signs)
    return PartView(one_line(part.name), rows, tuple(statement_view(one, language) for one in part.statements))


def source(part: SourcePlanPart, language: str) -> PartView:
    """What a source was asked, a line a query, and how many passages came."""
    label = words(message("plan.query"), language)
    queries = tuple(Row(label, one_line(query)) for query in part.queries)
    passages = Row(words(message("plan.passages"), language), str(part.passages))
    return PartView(words(message(f"plan.source.{part.source}"), language), (*queries, passages))


def concept(part: ConceptPart, language: str) -> PartView:
    """A concept's definition with who gives it, then its relations as the graph names them."""
    relations = tuple(Row(one_line(predicate), one_line(name)) for predicate, name in part.relations)
    return PartView(one_line(part.name), (*definition_rows(part.definition, language), *relations))


VIEWS: Mapping[type, Shown] = {
    NearestPart: nearest,
    SourcePlanPart: source,
    ConceptPart: concept,
    DepartmentPart: department,
    **order.VIEWS,
    **practice.VIEWS,
    **verify.VIEWS,
    **links.VIEWS,
}
