"""The finished questions of a batch of badges (``rows.py``): a question's id, a source and a badge, no text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localmed.domain import Badge
from localmed.evaluation import rows

Row = tuple[str, str]  # a question's id, a source
_BADGES = frozenset(each.value for each in Badge)


def begin(file: Path, made_with: Mapping[str, str], resume: bool) -> dict[Row, Badge]:
    """The badges that ``file`` holds if ``resume`` (see ``rows.begin``)."""
    kept = rows.begin(file, made_with, resume)
    whole = (each for each in kept if isinstance(each, list) and len(each) == 3 and each[2] in _BADGES)
    return {(str(question), str(source)): Badge(badge) for question, source, badge in whole}


def keep(file: Path, row: Row, badge: Badge) -> None:
    """Add a finished one, so that it outlives an interruption."""
    rows.keep(file, [*row, badge.value])
