"""From a record to its document: what the manifest says of the file, the language, the title, and what it is called."""

from __future__ import annotations

from dataclasses import replace

from localmed.config import ChunkSettings
from localmed.domain import STATED, Document, Status, digest
from localmed.errors import InputError
from localmed.ingest import chunking, readers
from localmed.ingest.archives import Part
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import SourceRecord
from localmed.ingest.sources import Source
from localmed.language import detect
from localmed.library.governed import governance_of

RECIPE = 2  # goes up when chunking or the encoder's text changes: every file is then read again
DETECT_CHARACTERS = 4000  # of a document, to tell its language


class Descriptions:
    """What a manifest makes of files and records."""

    def __init__(self, manifest: Manifest, chunk: ChunkSettings, ocr: str = "") -> None:
        """``ocr`` is the engine that reads scanned pages, "" if none does."""
        self._manifest, self._chunk, self._ocr = manifest, chunk, ocr
        self._name = manifest.collection.name

    def facts(self, source: Source) -> dict[str, str]:
        """What the manifest says of the file."""
        return self._manifest.facts(source)

    def recipe(self, source: Source) -> str:
        """How the file is read: another recipe may make other passages of the same bytes."""
        try:
            reader = readers.name_of(source.path, self._manifest.reader)
        except InputError:
            reader = ""
        version = readers.version_of(reader, self._ocr)
        return digest(str(RECIPE), reader, version, repr(self._chunk), self._manifest.recipe(self.facts(source)))

    def completed(self, record: SourceRecord, source: Source) -> SourceRecord:
        """``record`` with the manifest's facts about its file, a language and a title."""
        facts = self.facts(source)
        sample = " ".join(chunking.text_of(block.lines)[0] for block in record.blocks[:40])[:DETECT_CHARACTERS]
        language = record.language or self._manifest.collection.language or detect(sample)
        return replace(
            record,
            title=facts.get("title") or record.title or source.path.stem,
            language=facts.get("language") or language,
            edition=facts.get("edition") or record.edition,
            status=facts.get("status") or record.status,
            replaced_by=facts.get("replaced_by") or record.replaced_by,
        )

    def document(self, record: SourceRecord, source: Source, part: Part, content: str) -> Document:
        """The document of a completed ``record``, which was read from ``part`` of ``source``."""
        key = self._key(source, record.key)
        return Document(
            id=digest(self._name, key),
            collection=self._name,
            key=key,
            title=record.title,
            language=record.language,
            source=str(source.path),
            file_sha256=part.sha256,
            content=content,
            media_type=part.reader,
            edition=record.edition,
            status=Status(record.status) if record.status in STATED else Status.CURRENT,
            replaced_by=self._successor(record, source),
            url=record.url,
            identifiers=record.identifiers,
            publication_types=record.publication_types,
            mesh=record.mesh,
            relations=record.relations,
            pages=record.pages,
            notes=record.notes,
            governance=governance_of(self.facts(source)),
        )

    def _key(self, source: Source, record: str) -> str:
        """What a document is known by: its file and the record in it, or the record alone where versions count."""
        if self._manifest.latest and record:
            return record
        return f"{source.path}#{record}" if record else str(source.path)

    def _successor(self, record: SourceRecord, source: Source) -> str:
        """The document id of the record, or of the file beside this one, that ``replaced_by`` names."""
        if not record.replaced_by:
            return ""
        key = self._key(source, record.replaced_by) if record.key else str(source.path.parent / record.replaced_by)
        return digest(self._name, key)
