"""Withdrawals, a view of the journal (``journal.py``): outside the generations, in force on the next query everywhere.

Every search asks ``holding.py``, which asks here.

The newest row about a document decides. An import knows a withdrawn text again with a few words changed by its sketch.
"""

from __future__ import annotations

from pathlib import Path

from localmed.domain import Document
from localmed.library.in_force import Changing, in_force
from localmed.library.journal import Entry, InForce, Withdrawal


class Withdrawals:
    """What is withdrawn at the site of a data folder, as of each call."""

    def __init__(self, data: Path) -> None:
        """Nothing is read before the first question; raise ``Damaged`` then where that cannot be told for certain."""
        self._data = data
        self._seen: InForce | None = None

    @property
    def entries(self) -> tuple[Withdrawal, ...]:
        """The newest of each document and content that was ever withdrawn, oldest first."""
        return tuple(in_force(self._data).withdrawals.values())

    def newest(self) -> dict[str, Withdrawal]:
        """The newest of each document, by its id."""
        return {entry.document: entry for entry in self.entries}

    def changed(self) -> bool:
        """Whether something of what is in force has changed since the last look."""
        before, self._seen = self._seen, in_force(self._data)
        return self._seen is not before

    def in_force(self) -> tuple[frozenset[str], frozenset[str]]:
        """The document ids and the content digests that are withdrawn now."""
        contents = {entry.content: entry.withdrawn for entry in self.entries}
        ids = frozenset(entry.document for entry in self.newest().values() if entry.withdrawn)
        return ids, frozenset(content for content, withdrawn in contents.items() if withdrawn and content)

    def of(self, document: str, content: str = "") -> Withdrawal | None:
        """How ``document``, or another with its ``content``, is withdrawn now; None where none is."""
        own = [entry for entry in self.entries if entry.document == document][-1:]
        same = [entry for entry in self.entries if content and entry.content == content][-1:]
        return next((entry for entry in (*own, *same) if entry.withdrawn), None)

    def sketched(self) -> list[Withdrawal]:
        """The withdrawals in force that have a sketch."""
        return [entry for entry in self.entries if entry.withdrawn and entry.sketch]


def put(change: Changing, entry: Entry, document: Document, withdrawn: bool, reason: str, sketch: str = "") -> None:
    """Withdraw ``document``, or take that back; ``sketch`` is that of its text (``sketches.py``)."""
    change.note(
        entry, kind="withdrawal", document=document.id, content=document.content, title=document.title,
        withdrawn=withdrawn, reason=reason, sketch=sketch,
    )  # fmt: skip
