"""What an import has read of a file, until it is written: documents, passages, refusals, and what it displaces.

``read`` makes it of the records: each becomes a document and its passages, or a reason why it has none. Nothing is
written here, so that a preview reads as an import does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localmed.config import ChunkSettings
from localmed.domain import Document, Passage
from localmed.errors import InputError
from localmed.ingest import chunking
from localmed.ingest.archives import Part
from localmed.ingest.describing import Descriptions
from localmed.ingest.opening import Content
from localmed.ingest.parsed import Fault, SourceRecord
from localmed.ingest.sources import Source
from localmed.ingest.twins import Twins
from localmed.ingest.versions import Versions
from localmed.library.catalogue import ImportedFile

# Before the recipe of a file:
UNSETTLED = "again:"  # a copy of what another file holds was left out, or a document removed: it may have to come back
UNFINISHED = "unread:"  # OCR failed on pages of it: they may be read another time
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
    lost: int = 0  # pages that OCR failed on

    @property
    def mark(self) -> str:
        """What goes before the recipe of the file."""
        if self.lost:
            return UNFINISHED
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


def unmarked(recipe: str) -> str:
    """``recipe`` without the mark of a file that is read again whatever its bytes."""
    return recipe.removeprefix(UNSETTLED).removeprefix(UNFINISHED)


@dataclass(frozen=True, slots=True)
class Context:
    """What a file is read against: the manifest, and what the collection holds already."""

    descriptions: Descriptions
    chunk: ChunkSettings
    twins: Twins
    versions: Versions | None = None


def read(content: Content, source: Source, context: Context) -> Reading:
    """What stands in ``source``; raise ``InputError`` if nothing of it can be read or one of its parts ends it."""
    reading = Reading()
    name = source.path.name
    for part, item in content:
        if isinstance(item, Fault):
            reading.faults.append(item)
        elif isinstance(item, str):
            reading.notes.append(item)
        else:
            _add(reading, item, source, part, context)
    reading.notes += [f"{count} records are newer in {Path(newer).name}" for newer, count in reading.newer.items()]
    if not reading.documents and not reading.mark:
        if reading.faults:
            first, others = reading.faults[0], len(reading.faults) - 1
            more = f" (and {others} more parts)" if others else ""
            raise InputError(f"{name}: {first.where}: {first.reason}{more}", "Check that it is the file you meant")
        raise InputError(f"{name} holds no document", "Check that it is the file you meant")
    return reading


def _add(reading: Reading, record: SourceRecord, source: Source, part: Part, context: Context) -> None:
    """One record of a file: its document and passages, or why it has none."""
    content = chunking.content_of(record)
    document = context.descriptions.document(context.descriptions.completed(record, source), source, part, content)
    if context.versions and (newer := context.versions.newer(document)):
        reading.newer[newer] += 1
        return
    here = reading.contents.get(content, "")
    twin = here or context.twins.of(document)
    if twin:
        what = record.key or "the document"
        reading.notes.append(f"{what} has the same content as document {twin[:12]}, not stored twice")
        reading.settled = reading.settled and bool(here)
        return
    cut = tuple(chunking.passages(record, document, context.chunk))
    if not cut and not record.deleted:
        reading.faults.append(Fault(record.key or "file", "has no text"))
        return
    reading.contents[content] = document.id
    reading.notes += [f"{record.key}: {note}" if record.key else note for note in record.notes]
    if context.versions and (older := context.versions.stored(document)):
        reading.replaced.append(older)
    for old in context.twins.moved(document):
        reading.moved.append((old, document.id))
        reading.notes.append(f"{record.key or 'the document'} was moved here from {old.source}")
    reading.documents.append((replace(document, passages=len(cut)), cut))
    reading.lost += record.lost


def refusal(
    reading: Reading, before: ImportedFile | None, stored: Sequence[Document], sha256: str
) -> InputError | None:
    """Why ``reading`` may not replace what is ``stored`` of the file: OCR failed on pages that may be in that.

    Nobody knows which pages a file of the same bytes lost the last time; the reading with more passages has more.
    """
    if not reading.lost or not stored or before is None:
        return None
    fewer = sum(len(cut) for _, cut in reading.documents) < sum(each.passages for each in stored)
    if before.recipe.startswith(UNFINISHED) and not (before.sha256 == sha256 and fewer):
        return None
    name, notes = Path(before.path).name, "; ".join(note for note in reading.notes if "OCR failed" in note)
    return InputError(
        f"{name}: OCR failed on {reading.lost} pages, so what was stored of it before stays ({notes})",
        "The next import tries again; to take it as it is, remove its document first",
    )
