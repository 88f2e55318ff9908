"""A withdrawal that was cut off between its line in the ledger and its outcome in the audit log, finished.

Withdrawing notes the intent, plans the ledger's new anchor in the log, writes the line and notes the outcome. A process
that is killed after the line leaves a withdrawal that is in force and of which the log knows only the plan; killed
before it, a plan that never came about. Which of the two, the ledger tells: the next change notes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from localmed.errors import LocalmedError
from localmed.library.anchors import PLANNED, anchors
from localmed.library.withdrawals import Entry, Withdrawals
from localmed.operations.audit import Audit, AuditEntry

ACTIONS = ("withdraw", "reinstate")
NOT_MADE = "failed: killed"

Note = Callable[[AuditEntry, str], object]  # enters the outcome of an intent


def finish(data: Path, note: Note) -> None:
    """Note the outcome of a withdrawal that was planned last and has none; of one that is at work, nothing."""
    if [anchor.outcome for anchor in anchors(data, "ledger")[:1]] != [PLANNED]:
        return
    with suppress(LocalmedError, OSError), Withdrawals(data).still() as ledger:  # damage is told where it is read
        if ledger:
            anchor, lines = ledger
            for begun in _planned(data):
                note(begun, f"in force{anchor}" if _stands(begun, lines) else NOT_MADE)


def _planned(data: Path) -> list[AuditEntry]:
    """The intents that have a plan and no outcome."""
    with closing(Audit(data)) as log:
        entries, unfinished = log.entries(), log.unfinished()
    return [begun for begun in unfinished if begun.action in ACTIONS and _has_plan(begun, entries)]


def _has_plan(begun: AuditEntry, entries: Sequence[AuditEntry]) -> bool:
    later = entries[entries.index(begun) + 1 :] if begun in entries else ()  # it began after they were read: at work
    return any(
        entry.outcome.startswith(PLANNED) and (entry.action, entry.subject) == (begun.action, begun.subject)
        for entry in later
    )


def _stands(begun: AuditEntry, lines: Sequence[Entry]) -> bool:
    """Whether the ledger's newest line about the document is of this change."""
    newest = next((line for line in reversed(lines) if line.document == begun.subject), None)
    return newest is not None and newest.withdrawn is (begun.action == "withdraw") and newest.time >= begun.time
