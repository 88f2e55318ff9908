"""Which function shows which type of part; each workflow's functions stand in its own module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localmed.presentation import departments, links, nearest, order, plan, practice, verify
from localmed.presentation.views import PartView

Shown = Callable[[Any, str], PartView]  # a part of the type that it is registered for, and the reader's language


VIEWS: Mapping[type, Shown] = {
    **nearest.VIEWS,
    **plan.VIEWS,
    **departments.VIEWS,
    **order.VIEWS,
    **practice.VIEWS,
    **verify.VIEWS,
    **links.VIEWS,
}


def part_view(part: Any, language: str) -> PartView:
    """``part`` in ``language``."""
    return VIEWS[type(part)](part, language)
