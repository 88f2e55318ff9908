"""What a librarian has set of documents, in ``library.sqlite``: edition, owner, approver, effective-from, review-by.

Like a mark it outlives re-imports: it lies over what the file says. What the collection's manifest states comes last:
an import that finds a field there drops what had been set of it (``yield_to``), and setting such a field is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from localmed.domain import Document, Passage
from localmed.governance import Governance

GOVERNANCE = ("owner", "approver", "effective_from", "review_by")
FIELDS = ("edition", *GOVERNANCE)
DATES = ("edition", "effective_from", "review_by")


class Governed:
    """The table ``governed`` of an open catalogue; written only in a generation that is being built."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use ``Catalogue.governed``."""
        self._database = database

    def set(self, document: str, values: Mapping[str, str]) -> None:
        """Set fields of a document; an empty value takes back what was set."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        for field, value in values.items():
            if value:
                row = (document, field, value, time)
                self._database.execute("INSERT OR REPLACE INTO governed VALUES (?, ?, ?, ?)", row)
            else:
                self._drop(document, field)

    def yield_to(self, documents: Iterable[str], stated: Iterable[str]) -> None:
        """The manifest states these fields of ``documents`` now: what was set of them no longer holds."""
        fields = [each for each in FIELDS if each in set(stated)]
        for document in documents if fields else ():
            for field in fields:
                self._drop(document, field)

    def rename(self, old: str, new: str) -> None:
        """What was set of the document ``old`` holds for ``new``."""
        self._database.execute("UPDATE OR REPLACE governed SET document = ? WHERE document = ?", (new, old))

    def of(self, document: str) -> dict[str, str]:
        """What was set of a document, by field."""
        return dict(self._database.execute("SELECT field, value FROM governed WHERE document = ?", (document,)))

    def over(self, document: Document) -> Document:
        """``document`` with what was set of it."""
        values = self.of(document.id)
        if not values:
            return document
        edition = values.pop("edition", document.edition)
        return replace(document, edition=edition, governance=replace(document.governance, **values))

    def dated(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """``passages`` with the editions that were set of their documents: the indexes filter by them."""
        editions = dict(self._database.execute("SELECT document, value FROM governed WHERE field = 'edition'"))
        if not editions:
            return passages
        return [replace(each, edition=editions.get(each.document_id, each.edition)) for each in passages]

    def _drop(self, document: str, field: str) -> None:
        self._database.execute("DELETE FROM governed WHERE document = ? AND field = ?", (document, field))


def governance_of(values: Mapping[str, str]) -> Governance:
    """The governance among named values; what is missing is empty."""
    return Governance(**{name: values.get(name, "") for name in GOVERNANCE})
