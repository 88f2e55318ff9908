"""Which documents may answer on a day: the withdrawal ledger, the catalogue and the dates, looked up at query time.

Rules, the first that applies: withdrawn in the ledger or by its source; not yet effective on the day (``PENDING``),
which answers no question however it is asked; superseded, unless everything that replaces it is itself not yet
effective: until then the older document holds. Nothing of this is baked into an index, so a document becomes effective
by its date alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localmed.domain import Document, Status
from localmed.library.catalogue import Catalogue
from localmed.library.withdrawals import Withdrawals


class Holding:
    """The statuses of one generation's documents on ``day`` (ISO); whoever asks sets the day."""

    def __init__(self, data: Path, catalogue: Catalogue, day: str) -> None:
        """Nothing is read before the first question."""
        self.day = day
        self._withdrawals, self._catalogue = Withdrawals(data), catalogue
        self._read_on = ""
        self._statuses: dict[str, Status] = {}
        self._overdue: dict[str, str] = {}
        self._successors: dict[str, str] = {}

    def statuses(self) -> Mapping[str, Status]:
        """The status of every document that is not current now."""
        self._look_up()
        return self._statuses

    def overdue(self, document: str) -> str:
        """The date by which a document was to be reviewed, if that has passed; else ""."""
        self._look_up()
        return self._overdue.get(document, "")

    def agrees(self, document: Document) -> bool:
        """Whether the status now is one that the row of ``document`` allows: what answers is looked up in indexes."""
        status, stated = self.statuses().get(document.id, Status.CURRENT), document.status
        waits = document.governance.effective_from > self.day
        if status in (Status.WITHDRAWN, Status.PENDING):
            return True
        if stated is Status.WITHDRAWN or waits:
            return False
        successor = self.statuses().get(self._successors.get(document.id, ""))  # hidden ones included
        return stated is status or (stated is Status.SUPERSEDED and successor is Status.PENDING)

    def _look_up(self) -> None:
        """Read again if the ledger or the day has changed."""
        if not self._withdrawals.changed() and self._read_on == self.day:
            return
        ids, contents = self._withdrawals.in_force()
        pending = self._catalogue.pending(self.day)
        stated = self._catalogue.not_current()
        successors = {name: after for name, (status, after) in stated.items() if status is Status.SUPERSEDED}
        statuses = {name: status for name, (status, _) in stated.items() if not _waits(name, successors, pending)}
        statuses |= {name: Status.PENDING for name in pending if statuses.get(name) is not Status.WITHDRAWN}
        statuses |= dict.fromkeys(ids | self._catalogue.ids_with(contents), Status.WITHDRAWN)
        self._statuses, self._overdue = statuses, self._catalogue.overdue(self.day)
        self._successors = successors
        self._read_on = self.day


def _waits(document: str, successors: dict[str, str], pending: set[str]) -> bool:
    """Whether all that supersedes ``document``, one after the other, is not yet effective."""
    seen = {document}
    after = successors.get(document, "")
    if after not in pending:
        return False
    while after in pending and after not in seen:
        seen.add(after)
        after = successors.get(after, "")
    return not after
