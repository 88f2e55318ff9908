"""Kept answers that cite a document: whose they are and when they were given, never what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.library.state import rows

if TYPE_CHECKING:
    from localmed.site.session import Session

MOST = 500  # answers listed


@dataclass(frozen=True, slots=True)
class CitingAnswer:
    """A kept answer: who was given it, when (seconds since 1970), by which workflow."""

    id: str
    user: str
    time: float
    workflow: str


def count_citing(data: Path, documents: Sequence[str]) -> int:
    """How many kept answers cite one of ``documents``."""
    marks = ", ".join("?" * len(documents))
    query = f"SELECT COUNT(DISTINCT answer) FROM cited WHERE document IN ({marks})"  # noqa: S608
    with rows(data) as state:
        return int(state.execute(query, tuple(documents)).fetchone()[0])


def answers_citing(session: Session, document: str) -> list[CitingAnswer]:
    """The kept answers that cite ``document``, the newest first; raise ``UsageError`` for who is no librarian."""
    session.require(Right.LIBRARY)
    query = (
        "SELECT id, user, time, workflow FROM answers JOIN cited ON cited.answer = answers.id "
        "WHERE cited.document = ? ORDER BY time DESC LIMIT ?"
    )
    with rows(session.data) as state:
        return [CitingAnswer(*row) for row in state.execute(query, (document, MOST))]
