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
from localmed.domain import Document, Message, Parameter, Passage, message
from localmed.errors import InputError
from localmed.ingest import chunking
from localmed.ingest.archives import Part, within
from localmed.ingest.describing import Descriptions
from localmed.ingest.opening import Content
from localmed.ingest.parsed import FILE, Fault, SourceRecord, named
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
    notes: list[Message] = field(default_factory=list)
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
        elif isinstance(item, Message):
            reading.notes.append(item)
        else:
            _add(reading, item, source, part, context)
    reading.notes += [
        message("import.newer", count=count, name=Path(path).name) for path, count in reading.newer.items()
    ]
    if not reading.documents and not reading.mark:
        if reading.faults:
            first, others = reading.faults[0], len(reading.faults) - 1
            if others:
                raise InputError("import.all_refused_more", name=name, first=first.message, count=others)
            raise InputError("import.all_refused", name=name, first=first.message)
        raise InputError("import.no_document", name=name)
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
        reading.notes.append(message("import.same_content", what=_called(record), document=twin[:12]))
        reading.settled = reading.settled and bool(here)
        return
    cut = tuple(chunking.passages(record, document, context.chunk))
    if not cut and not record.deleted:
        reading.faults.append(Fault(named(record.key) if record.key else FILE, message("reader.has_no_text")))
        return
    reading.contents[content] = document.id
    reading.notes += [within(record.key, note) for note in record.notes]
    if context.versions and (older := context.versions.stored(document)):
        reading.replaced.append(older)
    for old in context.twins.moved(document):
        reading.moved.append((old, document.id))
        reading.notes.append(message("import.moved", what=_called(record), source=old.source))
    reading.documents.append((replace(document, passages=len(cut)), cut))
    reading.lost += record.lost


def _called(record: SourceRecord) -> Message:
    return named(record.key) if record.key else message("import.the_document")


def _holds(part: Parameter, code: str) -> bool:
    """Whether a message or one of its parameters has the code."""
    return isinstance(part, Message) and (part.code == code or any(_holds(value, code) for _, value in part.parameters))


def refusal(
    reading: Reading, before: ImportedFile | None, stored: Sequence[Document], sha256: str
) -> InputError | None:
    """Why ``reading`` may not replace what is ``stored`` of the file: OCR failed on pages that may be in that.

    Nobody knows which pages a file of the same bytes lost the last time; the reading with more passages has more.
    """
    if not reading.lost or not stored or before is None:
        return None
    fewer = sum(len(cut) for _, cut in reading.documents) < sum(document.passages for document in stored)
    if before.recipe.startswith(UNFINISHED) and not (before.sha256 == sha256 and fewer):
        return None
    name, notes = Path(before.path).name, tuple(note for note in reading.notes if _holds(note, "ocr.failed"))
    return InputError("import.ocr_failed", name=name, count=reading.lost, notes=notes)
