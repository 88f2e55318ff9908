"""What a librarian has set of documents, in ``library.sqlite``: edition, owner, approver, effective-from, review-by.

Like a mark it outlives re-imports: it lies over what the file says. What the collection's manifest states comes last:
an import that finds a field there drops what had been set of it (``yield_to``), and setting such a field is refused.

An approval is of a text: beside an approver the digests of the text and of the file are kept (``APPROVED``), and where
both are others the approver is left out, until one is set again or the approved text comes back. A file that is only
read in another way, or moved within a larger one, stays approved.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from localmed.domain import Document, Governance, Message, Passage, message

GOVERNANCE = ("owner", "approver", "effective_from", "review_by")
FIELDS = ("edition", *GOVERNANCE)
DATES = ("edition", "effective_from", "review_by")
APPROVED = "approved"  # the row beside an approver


class Governed:
    """The table ``governed`` of an open catalogue; written only in a generation that is being built."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use ``Catalogue.governed``."""
        self._database = database

    def set(self, document: Document, values: Mapping[str, str]) -> None:
        """Set fields of a document; an empty value takes back what was set."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        approved = {APPROVED: f"{document.content} {document.file_sha256}"} if values.get("approver") else {}
        for field, value in {**values, **approved}.items():
            if value:
                row = (document.id, field, value, time)
                self._database.execute("INSERT OR REPLACE INTO governed VALUES (?, ?, ?, ?)", row)
            else:
                self._drop(document.id, field)

    def yield_to(self, documents: Iterable[str], stated: Iterable[str]) -> None:
        """The manifest states these fields of ``documents`` now: what was set of them no longer holds."""
        fields = [name for name in FIELDS if name in set(stated)]
        for document in documents if fields else ():
            for field in fields:
                self._drop(document, field)

    def rename(self, old: str, new: str) -> None:
        """What was set of the document ``old`` holds for ``new``."""
        self._database.execute("UPDATE OR REPLACE governed SET document = ? WHERE document = ?", (new, old))

    def of(self, document: Document) -> dict[str, str]:
        """What was set of a document and holds for its text, by field."""
        query = "SELECT field, value FROM governed WHERE document = ?"
        values = dict(self._database.execute(query, (document.id,)))
        approved = values.pop(APPROVED, document.content).split()
        if document.content not in approved and document.file_sha256 not in approved:
            values.pop("approver", None)
        return values

    def lapsed(self) -> frozenset[str]:
        """The documents whose text is not the one that was approved."""
        query = (
            "SELECT id FROM governed JOIN documents ON id = document"
            " WHERE field = ? AND instr(value, content) = 0 AND instr(value, file_sha256) = 0"
        )
        return frozenset(row[0] for row in self._database.execute(query, (APPROVED,)))

    def outdated(self, document: Document, before: Document | None) -> list[Message]:
        """What to look at again now that the text of ``document`` may be another than ``before``, to be reported."""
        query = "SELECT field FROM governed WHERE document = ?"
        fields = {row[0] for row in self._database.execute(query, (document.id,))}
        if not fields:
            return []
        lapsed = "approver" in fields - self.of(document).keys()
        dated = [date_ for date_ in DATES if date_ in fields] if before and before.content != document.content else []
        notes = [message("governance.lapsed")] if lapsed else []
        fields_set = tuple(message(f"governance.field_{name}") for name in dated)
        return notes + ([message("governance.dated", fields=fields_set)] if dated else [])

    def over(self, document: Document) -> Document:
        """``document`` with what was set of it."""
        values = self.of(document)
        if not values:
            return document
        edition = values.pop("edition", document.edition)
        return replace(document, edition=edition, governance=replace(document.governance, **values))

    def dated(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """``passages`` with the editions that were set of their documents: the indexes filter by them."""
        editions = dict(self._database.execute("SELECT document, value FROM governed WHERE field = 'edition'"))
        if not editions:
            return passages
        return [replace(passage, edition=editions.get(passage.document_id, passage.edition)) for passage in passages]

    def _drop(self, document: str, field: str) -> None:
        self._database.execute("DELETE FROM governed WHERE document = ? AND field = ?", (document, field))
        if field == "approver":
            self._drop(document, APPROVED)


def governance_of(values: Mapping[str, str]) -> Governance:
    """The governance among named values; what is missing is empty."""
    return Governance(**{name: values.get(name, "") for name in GOVERNANCE})
