"""Which documents may answer on a day, decided at query time from the withdrawals, the catalogue and the dates.

The first rule that applies: withdrawn here or by the source; ``PENDING`` (not yet effective on the day), which never
answers; superseded, unless every replacement is itself pending: until then the older document is current. No index
stores a status, so a document becomes effective by its date alone.

``search_allowed`` asks an index for more passages until enough may answer. If few documents may answer (``search
--status superseded``) or most of the best may not, it searches by document ids in batches: the model host limits the
passages of one search.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from localmed.domain import Document, SearchFilter, Status
from localmed.library.catalogue import Catalogue
from localmed.library.in_force import in_force
from localmed.library.journal import InForce, Withdrawal
from localmed.process import hooks


def today() -> str:
    """Return the current date at the hospital (ISO)."""
    return datetime.now().astimezone().date().isoformat()


class Holding:
    """The statuses of one generation's documents on ``day`` (ISO), which the caller sets."""

    def __init__(self, data: Path, catalogue: Catalogue, day: str) -> None:
        """Nothing is read before the first call."""
        self.day = day
        self._data, self._catalogue = data, catalogue
        self._read: tuple[InForce, str] | None = None  # state in force and day at the last read
        self._statuses: dict[str, Status] = {}
        self._overdue: dict[str, str] = {}
        self._successors: dict[str, str] = {}

    def statuses(self) -> Mapping[str, Status]:
        """Return the status of every document that is not current now."""
        self._look_up()
        return self._statuses

    def overdue(self, document: str) -> str:
        """Return the review date of a document if it has passed, else "". Withdrawn documents have none."""
        self._look_up()
        return self._overdue.get(document, "")

    def withdrawal(self, document: str, content: str) -> Withdrawal | None:
        """Return the journal's withdrawal of a document with this content; ``None`` if only its source withdraws it."""
        return in_force(self._data).withdrawal(document, content)

    def withdrawn_since(self, day: str) -> dict[str, tuple[str, str]]:
        """Return the documents withdrawn on ``day`` or later and not reinstated: date at the hospital, and reason."""
        told = {
            it.document: (datetime.fromisoformat(it.time).astimezone().date().isoformat(), it.reason)
            for it in in_force(self._data).newest().values()
            if it.withdrawn
        }
        return {name: (since, why) for name, (since, why) in told.items() if since >= day}

    def agrees(self, document: Document) -> bool:
        """Whether the current status is consistent with the document's own row; the status is read from indexes."""
        status, stated = self.statuses().get(document.id, Status.CURRENT), document.status
        waits = document.governance.effective_from > self.day
        if status in (Status.WITHDRAWN, Status.PENDING):
            return True
        if stated is Status.WITHDRAWN or waits:
            return False
        successor = self.statuses().get(self._successors.get(document.id, ""))  # hidden ones included
        return stated is status or (stated is Status.SUPERSEDED and successor is Status.PENDING)

    def _look_up(self) -> None:
        """Read again if the state in force or the day has changed."""
        now = in_force(self._data)
        if self._read and self._read[0] is now and self._read[1] == self.day:
            return
        ids, contents = now.withdrawn()
        pending = self._catalogue.pending(self.day)
        stated = self._catalogue.not_current()
        successors = {name: after for name, (status, after) in stated.items() if status is Status.SUPERSEDED}
        statuses = {
            name: status for name, (status, _) in stated.items() if not _is_replaced_later(name, successors, pending)
        }
        statuses |= {name: Status.PENDING for name in pending if statuses.get(name) is not Status.WITHDRAWN}
        statuses |= dict.fromkeys(ids | self._catalogue.ids_with(contents), Status.WITHDRAWN)
        late = self._catalogue.overdue(self.day).items()
        self._overdue = {name: date for name, date in late if statuses.get(name) is not Status.WITHDRAWN}
        self._statuses = statuses
        self._successors = successors
        self._read = now, self.day


def _is_replaced_later(document: str, successors: dict[str, str], pending: set[str]) -> bool:
    """Whether the whole chain of replacements of ``document`` is pending."""
    seen = {document}
    after = successors.get(document, "")
    if after not in pending:
        return False
    while after in pending and after not in seen:
        seen.add(after)
        after = successors.get(after, "")
    return not after


Found = list[tuple[str, str, float]]  # (passage id, document id, score), best first
Search = Callable[[int, SearchFilter], Found]

MOST_PASSAGES = 20_000  # of one search; the model host's limit is 100,000
IDS_A_SEARCH = 1_000  # documents in one search; the model host's limit is 1,024


def search_allowed(
    search: Search,
    limit: int,
    filters: SearchFilter,
    status_of: Mapping[str, Status],
    documents: Callable[[], Iterable[str]],
) -> Found:
    """Return the best ``limit`` passages of documents with a status in ``filters``, without pending ones.

    ``status_of`` has the documents that are not current; ``documents`` returns all ids.
    """
    if limit < 1:
        return []
    statuses = {*filters.statuses} - {Status.PENDING}
    if len(filters.documents) > IDS_A_SEARCH:
        named = [name for name in filters.documents if status_of.get(name, Status.CURRENT) in statuses]
        return _search_documents(search, limit, filters, named)
    if Status.CURRENT not in statuses:
        return _search_documents(
            search, limit, filters, [name for name, status in status_of.items() if status in statuses]
        )
    number = limit
    while number <= max(limit, MOST_PASSAGES):
        hooks.check()
        rows = search(number, filters)
        kept = [row for row in rows if status_of.get(row[1], Status.CURRENT) in statuses]
        if len(kept) >= limit or len(rows) < number:
            return kept[:limit]
        number *= 4
    return _search_documents(
        search, limit, filters, [name for name in documents() if status_of.get(name, Status.CURRENT) in statuses]
    )


def _search_documents(search: Search, limit: int, filters: SearchFilter, documents: Collection[str]) -> Found:
    named = set(filters.documents)
    chosen = sorted(name for name in documents if not named or name in named)
    rows: Found = []
    for start in range(0, len(chosen), IDS_A_SEARCH):
        rows += search(limit, replace(filters, documents=tuple(chosen[start : start + IDS_A_SEARCH])))
    return sorted(rows, key=lambda row: -row[2])[:limit]
