"""What is shown with an abstention: the nearest passages, said to be no answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localmed.domain import message
from localmed.domain.parts import NearestPart
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView
from localmed.presentation.words import words


def nearest(part: NearestPart, language: str) -> PartView:
    """A sentence of each passage, under a title that says what they are not."""
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(words(message("answer.nearest"), language), (), statements)


VIEWS: Mapping[type, Any] = {NearestPart: nearest}
