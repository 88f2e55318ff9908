"""What an import has read of a file, until it is written: documents, passages, refusals, and what it displaces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from localmed.domain import Document, Passage
from localmed.ingest.parsed import Fault
from localmed.library.catalogue import ImportedFile

# Before the recipe of a file:
UNSETTLED = "again:"  # a copy of what another file holds was left out, or a document removed: it may have to come back
OUTDATED = "older:"  # a record is newer in another file: it may have to come back when a file goes or changes

Cut = tuple[Document, tuple[Passage, ...]]  # a document and its passages


@dataclass(slots=True)
class Reading:
    """What has been read of a file so far."""

    documents: list[Cut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    moved: list[tuple[Document, str]] = field(default_factory=list)  # stored under a path that is gone, and its new id
    contents: dict[str, str] = field(default_factory=dict)  # content -> document id
    settled: bool = True  # False: a copy of what another file holds was left out
    newer: Counter[str] = field(default_factory=Counter)  # path -> how many records are newer there
    replaced: list[Document] = field(default_factory=list)  # older versions stored from other files

    @property
    def mark(self) -> str:
        """What goes before the recipe of the file."""
        return UNSETTLED if not self.settled else OUTDATED if self.newer else ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was read whole: its row, what it holds, and its size in bytes."""

    file: ImportedFile
    reading: Reading
    bytes: int

    @property
    def passages(self) -> int:
        """How many passages it has."""
        return sum(len(cut) for _, cut in self.reading.documents)
