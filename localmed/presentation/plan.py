"""The parts of a source plan: which source was asked what, and what the concept graph says of its terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localmed.domain import message
from localmed.domain.parts import ConceptPart, Definition, SourcePlanPart
from localmed.presentation.neutral import one_line
from localmed.presentation.views import PartView, Row
from localmed.presentation.words import words


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


def definition_rows(definition: Definition | None, language: str) -> tuple[Row, ...]:
    """A definition and its source."""
    if definition is None:
        return ()
    meaning = Row(words(message("plan.definition"), language), one_line(definition.text))
    return (meaning, Row(words(message("plan.defined_by"), language), one_line(definition.source)))


VIEWS: Mapping[type, Any] = {SourcePlanPart: source, ConceptPart: concept}
