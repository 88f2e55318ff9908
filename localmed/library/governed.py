"""What a librarian has set of documents, in ``library.sqlite``: title, edition, tags, owner, approver and two dates.

Like a mark it outlives re-imports: it lies over what the file says. What the collection's manifest states comes last:
an import that finds a field there drops what had been set of it (``yield_to``), and setting such a field is refused.

An approval is of a text: beside an approver the digests of the text and of the file are kept (``APPROVED``), and where
both are others the approver is left out, until one is set again or the approved text comes back. A file that is only
read in another way, or moved within a larger one, stays approved.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from localmed.domain import Document, Governance, Message, Passage, message

GOVERNANCE = ("owner", "approver", "effective_from", "review_by")
FIELDS = ("title", "edition", *GOVERNANCE, "tags")
KEPT = ("title", "edition")  # also kept with each passage, which the indexes find and filter by
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
        fields_set = tuple(message(f"column.{name}") for name in dated)
        return notes + ([message("governance.dated", fields=fields_set)] if dated else [])

    def over(self, document: Document) -> Document:
        """``document`` with what was set of it."""
        values = self.of(document)
        if not values:
            return document
        tags = tags_of(values.pop("tags")) if "tags" in values else document.tags
        title, edition = (values.pop(name, known(document, name)) for name in KEPT)
        changed = replace(document.governance, **values)
        return replace(document, title=title, edition=edition, tags=tags, governance=changed)

    def over_passages(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """``passages`` with the titles and editions that were set of their documents."""
        query = "SELECT document, field, value FROM governed WHERE field IN ('title', 'edition')"
        said: dict[str, dict[str, str]] = {}
        for document, field, value in self._database.execute(query):
            said.setdefault(document, {})[field] = value
        if not said:
            return passages
        pairs = [(passage, said.get(passage.document_id, {})) for passage in passages]
        return [
            replace(passage, title=set_.get("title", passage.title), edition=set_.get("edition", passage.edition))
            for passage, set_ in pairs
        ]

    def _drop(self, document: str, field: str) -> None:
        self._database.execute("DELETE FROM governed WHERE document = ? AND field = ?", (document, field))
        if field == "approver":
            self._drop(document, APPROVED)


def tags_of(text: str) -> tuple[str, ...]:
    """The tags that ``text`` lists, in its order, each once."""
    return tuple(dict.fromkeys(tag for part in re.split("[,;，、；]", text) if (tag := " ".join(part.split()))))


def known(document: Document, field: str) -> str:
    """What is known of a document by the name of a field; tags with commas between them."""
    if field == "tags":
        return ", ".join(document.tags)
    return str(getattr(document if field in KEPT else document.governance, field))


def governance_of(values: Mapping[str, str]) -> Governance:
    """The governance among named values; what is missing is empty."""
    return Governance(**{name: values.get(name, "") for name in GOVERNANCE})
