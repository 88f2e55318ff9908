"""Governance edited cell by cell: what a table showed, what it holds now, and what that changes.

Only cells that somebody changed are set, and only where what stands there is still what they saw: two people with the
same table open do not undo each other's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localmed.domain import message
from localmed.operations import governing
from localmed.operations.importing import manifest_of
from localmed.operations.lookups import PlannedSheet, sheet_rows

if TYPE_CHECKING:
    from localmed.session import Session


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row by its number: its cells (file first, then the fields) as they were shown and as they are now."""

    number: int
    shown: tuple[str, ...]
    typed: tuple[str, ...]


def planned_edits(session: Session, collection: str, rows: Sequence[EditedRow]) -> PlannedSheet:
    """What ``rows`` of the table of ``collection`` would change; nothing may be while there are faults."""
    from localmed.ingest.governance import Fault, Row

    session.may_change()
    header, *stored = sheet_rows(session, collection)
    fields, cells = [name.replace(" ", "_") for name in header], {row[0]: tuple(row) for row in stored}
    faults, sheet = [], []
    for row in rows:
        edits = [place for place in range(1, len(row.shown)) if row.typed[place] != row.shown[place]]
        now = cells.get(row.shown[0])
        if now is None or len(row.shown) != len(fields) or any(now[place] != row.shown[place] for place in edits):
            faults.append(Fault(row.number, message("governance.meanwhile")))
        else:
            sheet.append(Row(row.number, row.shown[0], {fields[place]: row.typed[place] for place in edits}))
    manifest = manifest_of(session, collection, None)
    with session.workspace() as workspace:
        changes, wrong = governing.planned(workspace.library.catalogue, manifest, sheet)
    return PlannedSheet(len(rows), (), changes, sorted([*faults, *wrong], key=lambda fault: fault.row))
