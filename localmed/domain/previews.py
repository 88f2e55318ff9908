"""The dry run of an import: what would happen to a file, and what of it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localmed.domain.messages import Message
from localmed.domain.messages import message as message_of
from localmed.domain.sources import Document, Passage

Outcome = Literal["new", "changed", "same", "moved", "refused", "skipped", "removed"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A refused part of a file: ``where`` (a line, a page, a PMID) and why, without its text."""

    where: Message
    reason: Message

    @property
    def message(self) -> Message:
        """Place and reason as one message."""
        return message_of("error.within", place=self.where, what=self.reason)


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A file with its outcome, its documents with theirs, and what is left out.

    ``folder`` contains the documents' originals, named by hash, until the next file is previewed.
    """

    path: str
    outcome: Outcome
    reason: Message | None = None
    documents: tuple[tuple[tuple[Document, tuple[Passage, ...]], Outcome], ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[Message, ...] = ()
    going: int = 0  # its stored documents that it no longer contains
    folder: Path = Path()

    @property
    def passages(self) -> int:
        """The number of passages."""
        return sum(len(passages) for (_, passages), _ in self.documents)
