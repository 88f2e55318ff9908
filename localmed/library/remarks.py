"""Remarks on single passages: suspected prompt injection, switched off, or a librarian's note.

Kept in ``site.sqlite``, so a remark applies from the next question on and through rollbacks. An import that cuts the
same text of a document again carries it over (``carry``); a changed text loses it. An import only suspects a passage,
and never one that a librarian has cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from localmed.domain import Passage, digest
from localmed.library.journal import now
from localmed.library.state import Remembered, rows, selected

_FIELDS = "passage, document, text, planted, off, note, user, time"
_ALL = f"SELECT {_FIELDS} FROM sound_remarks"  # noqa: S608  (names of ours)
_INTO = f"INTO remarks ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Planted(StrEnum):
    """Whether a passage addresses a language model, as an import found and a librarian decided."""

    UNKNOWN = ""
    SUSPECTED = "suspected"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark on ``passage`` with the digest of its ``text``; ``off``: no question finds it.

    ``user`` decided last, "" for an import.
    """

    passage: str
    document: str
    text: str
    planted: Planted = Planted.UNKNOWN
    off: bool = False
    note: str = ""
    user: str = ""
    time: str = ""


def _read(data: Path) -> Mapping[str, Remark]:
    return {
        passage: Remark(passage, document, text, Planted(planted), bool(off), *others)
        for passage, document, text, planted, off, *others in selected(data, _ALL)
    }


remarks = Remembered(_read)  # by passage


def about(passage: Passage) -> Remark:
    """Return an empty remark on ``passage``."""
    return Remark(passage.id, passage.document_id, _text(passage))


def _text(passage: Passage) -> str:
    """Return the digest of the passage's own text: a corrected heading must not change it."""
    return digest(passage.text[passage.lead :])


def carry(data: Path, cut: Iterable[Passage], before: str) -> None:
    """Transfer remarks of the document ``before`` to those passages of ``cut``, its replacement, that have the same
    text.
    """
    said = {remark.text: remark for remark in remarks(data).values() if remark.document == before}
    for passage in cut if said else ():
        if remark := said.get(_text(passage)):
            put(data, replace(remark, passage=passage.id, document=passage.document_id))


def put(data: Path, remark: Remark) -> None:
    """Store a remark; an empty one is removed."""
    with rows(data) as state:
        state.execute("DELETE FROM remarks WHERE passage = ?", (remark.passage,))
        if remark.planted or remark.off or remark.note:
            state.execute(f"INSERT {_INTO}", _row(remark))


def suspect(data: Path, passages: Iterable[Passage]) -> None:
    """Mark ``passages`` as suspected, unless cleared."""
    with rows(data) as state:
        for passage in passages:
            query = "UPDATE remarks SET planted = ? WHERE passage = ? AND planted = ''"
            state.execute(query, (Planted.SUSPECTED, passage.id))
            state.execute(f"INSERT OR IGNORE {_INTO}", _row(replace(about(passage), planted=Planted.SUSPECTED)))


def _row(remark: Remark) -> tuple[str | int, ...]:
    said = (remark.planted, int(remark.off), remark.note, remark.user)
    return (remark.passage, remark.document, remark.text, *said, now())
