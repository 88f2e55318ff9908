"""The parts of the departments workflow: a department with its floor, and why it comes first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localmed.domain import message
from localmed.domain.parts import DepartmentPart
from localmed.presentation.neutral import one_line
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView, Row
from localmed.presentation.words import words


def department(part: DepartmentPart, language: str) -> PartView:
    """A department: the warning signs that it comes first for, its floor, and the cited reasons."""
    floor = one_line(part.floor) or words(message("departments.no_floor"), language)
    signs = tuple(Row(words(message("departments.go_first"), language), words(sign, language)) for sign in part.signs)
    rows = (Row(words(message("departments.floor"), language), floor), *signs)
    return PartView(one_line(part.name), rows, tuple(statement_view(one, language) for one in part.statements))


VIEWS: Mapping[type, Any] = {DepartmentPart: department}
