"""The import: find files, read what is new or changed, encode, build the next generation, swap, report.

Rules: a file that is refused leaves what was stored of it before; a file is taken whole or not at all, a JSONL or XML
record likewise; a file whose bytes and recipe (reader, mapping, chunking) are known is not read again; what an earlier
import read from the same folder and is gone now is removed, unless the whole folder is empty, which is more often a
missing mount than a wish. Nothing is served before the swap, and Ctrl-C or kill -9 before it leaves the old generation.

The copy under ``files/`` is what is parsed, so a file that changes meanwhile cannot be stored as something it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Passage, Status, digest
from localmed.errors import InputError, UsageError
from localmed.ingest import chunking, readers
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, Record
from localmed.ingest.parsing import Parser
from localmed.language import detect
from localmed.library import generations
from localmed.library.catalogue import ImportedFile
from localmed.library.library import Builder, build
from localmed.library.state import Quarantined, State
from localmed.library.vectors import VectorCache
from localmed.ports import Embedder

RECIPE = 1  # goes up when chunking or the encoder's text changes: every file is then read again
DETECT_CHARACTERS = 4000  # of a document, to tell its language

Progress = Callable[[float, str], None]  # (bytes done more, what is being done)


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, and the folder it was found in ("" when it was named itself)."""

    path: Path
    root: str

    @property
    def name(self) -> str:
        """The path within its folder."""
        return str(self.path.relative_to(self.root)) if self.root else self.path.name


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report: a file or a part of it, what became of it, and why."""

    path: str
    outcome: str  # read, unchanged, quarantined, skipped, removed, note
    detail: str = ""
    documents: int = 0
    passages: int = 0


@dataclass(slots=True)
class Report:
    """What an import did. ``generation`` is 0 if nothing changed."""

    collection: str
    lines: list[Line] = field(default_factory=list)
    generation: int = 0
    encoded: int = 0

    def count(self, outcome: str) -> int:
        """How many lines have this outcome."""
        return sum(line.outcome == outcome for line in self.lines)

    @property
    def counts(self) -> dict[str, int]:
        """Lines by outcome, and the documents and passages read."""
        outcomes = {
            each: self.count(each) for each in ("read", "unchanged", "quarantined", "skipped", "removed", "note")
        }
        read = [line for line in self.lines if line.outcome == "read"]
        return outcomes | {
            "documents": sum(line.documents for line in read),
            "passages": sum(line.passages for line in read),
            "encoded": self.encoded,
        }


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was read whole: its row, its documents with their passages, and its size in bytes."""

    file: ImportedFile
    documents: tuple[tuple[Document, tuple[Passage, ...]], ...]
    bytes: int
    settled: bool  # False: something was left out that may come back (a duplicate), so it is read again next time


def find(paths: Iterable[Path]) -> tuple[list[Source], list[Line]]:
    """The files under ``paths`` that have a reader, and report lines for those that have none."""
    sources: list[Source] = []
    skipped: list[Line] = []
    for path in (each.absolute() for each in paths):
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file() and not _hidden(each, path))
            taken = [each for each in files if each.name.lower().endswith(readers.SUFFIXES)]
            skipped += [
                Line(str(each), "skipped", "no reader for this kind of file")
                for each in files
                if each not in set(taken)
            ]
            sources += [Source(each, str(path)) for each in taken]
        elif path.exists():
            sources.append(Source(path, ""))
        else:
            raise UsageError(f"{path} does not exist", "Check the path")
    return sources, skipped


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith((".", "~$")) for part in path.relative_to(root).parts)


class Importer:
    """One import into one collection."""

    def __init__(
        self, settings: Settings, manifest: Manifest, encoder: Embedder, progress: Progress | None = None
    ) -> None:
        """``progress`` is told of every step's share of the bytes to be read."""
        self._settings, self._manifest, self._encoder = settings, manifest, encoder
        self._progress = progress or _silent
        self._report = Report(manifest.collection.name)
        self._waiting: list[Taken] = []
        self._contents: dict[str, str] = {}  # content -> document id, of this run
        self._refused_before: set[str] = set()

    def run(self, paths: Sequence[Path], retry: bool = False, started: Callable[[int], None] | None = None) -> Report:
        """Import ``paths``; ``retry`` reads again what is in quarantine; ``started`` is told the bytes to read."""
        sources, skipped = find(paths)
        self._report.lines += skipped
        state = State(self._settings.data)
        try:
            with build(self._settings.data, self._encoder.identity, self._settings.library) as builder:
                run = state.begin_import(self._manifest.collection.name)
                self._apply(
                    builder, state, sources, [each.absolute() for each in paths if each.is_dir()], retry, started
                )
                if builder.changed:
                    self._report.generation = builder.publish(f"import into {self._manifest.collection.name}")
                state.finish_import(run, "finished", self._report.generation, self._report.counts)
        finally:
            state.close()
        return self._report

    def _apply(
        self,
        builder: Builder,
        state: State,
        sources: Sequence[Source],
        roots: Sequence[Path],
        retry: bool,
        started: Callable[[int], None] | None,
    ) -> None:
        collection = self._manifest.collection
        if collection not in builder.catalogue.collections():
            builder.put_collection(collection)
        self._remove_missing(builder, sources, roots)
        known = builder.catalogue.files(collection.name)
        quarantined = state.quarantined(collection.name)
        self._refused_before = {each.path for each in quarantined}
        refused = {} if retry else {each.path: each for each in quarantined if not each.place}
        todo = [each for each in sources if not self._settled(each, known, refused)]
        if started:
            started(sum(each.path.stat().st_size for each in todo))
        cache = VectorCache(self._settings.data / "vectors", self._encoder)
        try:
            with Parser() as parser:
                for source in todo:
                    self._take(builder, state, parser, source)
                    if sum(_passages(each) for each in self._waiting) >= self._settings.library.batch:
                        self._flush(builder, cache)
            self._flush(builder, cache)
            self._report.encoded = cache.encoded
        finally:
            cache.close()

    def _remove_missing(self, builder: Builder, sources: Sequence[Source], roots: Sequence[Path]) -> None:
        present = {str(source.path) for source in sources}
        name = self._manifest.collection.name
        for root in roots:
            earlier = builder.catalogue.files(name, str(root))
            gone = [path for path in earlier if path not in present]
            if gone and len(gone) == len(earlier) and not any(source.root == str(root) for source in sources):
                raise UsageError(
                    f"{root} holds nothing to import, but {len(earlier)} files were imported from it before",
                    "Is it mounted? To remove them on purpose: localmed documents remove --collection NAME --all",
                )
            for path in gone:
                documents = builder.catalogue.of_file(name, path)
                builder.remove(each.id for each in documents)
                builder.catalogue.remove_file(name, path)
                builder.changed = True
                self._report.lines.append(Line(path, "removed", "no longer in the folder", len(documents)))

    def _settled(self, source: Source, known: dict[str, ImportedFile], refused: dict[str, Quarantined]) -> bool:
        """Whether ``source`` needs no reading: stored from the same bytes and recipe, or refused for them before."""
        path = str(source.path)
        before, rejected = known.get(path), refused.get(path)
        if not before and not rejected:
            return False
        now = (generations.sha256_of(source.path), self._recipe(source))
        if rejected and (rejected.sha256, rejected.recipe) == now:
            self._report.lines.append(
                Line(path, "quarantined", f"{rejected.reason} (as before; --retry reads it again)")
            )
            return True
        if before and (before.sha256, before.recipe) == now:
            self._report.lines.append(Line(path, "unchanged"))
            return True
        return False

    def _recipe(self, source: Source) -> str:
        try:
            reader = readers.name_of(source.path, self._manifest.reader)
        except InputError:
            reader = ""
        chunk, version = self._settings.chunk, readers.VERSIONS.get(reader, 0)
        return digest(str(RECIPE), reader, str(version), repr(chunk), self._manifest.recipe(self._facts(source)))

    def _facts(self, source: Source) -> dict[str, str]:
        documents = self._manifest.documents
        return dict(documents.get(source.name) or documents.get(source.path.name) or {})

    # --- one file --------------------------------------------------------------------------------------------------

    def _take(self, builder: Builder, state: State, parser: Parser, source: Source) -> None:
        """Read ``source`` whole, or quarantine it with the reason."""
        path, name = str(source.path), self._manifest.collection.name
        recipe = self._recipe(source)
        size = source.path.stat().st_size
        sha256, refused = "", list[Quarantined]()
        try:
            reader = readers.name_of(source.path, self._manifest.reader)
            sha256 = builder.keep(source.path)
            documents, notes, faults, settled = self._read(builder, parser, source, reader, sha256)
        except InputError as error:
            sha256 = sha256 or generations.sha256_of(source.path)
            reason = str(error).replace(sha256, source.path.name)  # the reader saw the stored copy
            refused = [Quarantined(name, path, "", sha256, recipe, reason)]
            self._report.lines.append(Line(path, "quarantined", reason))
            self._progress(size, source.path.name)
        else:
            refused = [Quarantined(name, path, fault.where, sha256, recipe, fault.reason) for fault in faults]
            self._report.lines += [Line(path, "quarantined", f"{fault.where}: {fault.reason}") for fault in faults]
            self._report.lines += [Line(path, "note", note) for note in notes]
            file = ImportedFile(name, path, sha256, recipe, source.root)
            self._waiting.append(Taken(file, tuple(documents), size, settled))
        if refused or path in self._refused_before:
            state.requarantine(name, path, refused)

    def _read(
        self, builder: Builder, parser: Parser, source: Source, reader: str, sha256: str
    ) -> tuple[list[tuple[Document, tuple[Passage, ...]]], list[str], list[Fault], bool]:
        stored = self._settings.data / "files" / sha256
        documents: list[tuple[Document, tuple[Passage, ...]]] = []
        notes: list[str] = []
        faults: list[Fault] = []
        settled = True
        for item in parser.parse(stored, reader, self._manifest.mapping, self._settings.read):
            if isinstance(item, Fault):
                faults.append(item)
                continue
            record = self._completed(item, source, stored)
            document = self._document(record, source, reader, sha256)
            twin = self._twin(builder, document)
            if twin:
                notes.append(
                    f"{record.key or 'the document'} has the same content as document {twin[:12]}, not stored twice"
                )
                settled = False
                continue
            self._contents[document.content] = document.id
            cut = tuple(chunking.passages(record, document, self._settings.chunk))
            if not cut:
                faults.append(Fault(record.key or "file", "has no text"))
                continue
            notes += [f"{record.key}: {note}" if record.key else note for note in record.notes]
            documents.append((replace(document, passages=len(cut)), cut))
        if not documents and not faults and settled:
            raise InputError(f"{source.path.name} holds no document", "Check that it is the file you meant")
        return documents, notes, faults, settled

    def _completed(self, record: Record, source: Source, stored: Path) -> Record:
        """``record`` with the manifest's facts about its file, a language and a title."""
        facts = self._facts(source)
        sample = " ".join(chunking.text_of(block.lines)[0] for block in record.blocks[:40])[:DETECT_CHARACTERS]
        title = record.title if record.title and record.title != stored.stem else source.path.stem
        language = record.language or self._manifest.collection.language or detect(sample)
        return replace(
            record,
            title=facts.get("title") or title,
            language=facts.get("language") or language,
            edition=facts.get("edition") or record.edition,
            status=facts.get("status") or record.status,
            replaced_by=facts.get("replaced_by") or record.replaced_by,
        )

    def _document(self, record: Record, source: Source, reader: str, sha256: str) -> Document:
        collection = self._manifest.collection.name
        key = f"{source.path}#{record.key}" if record.key else str(source.path)
        return Document(
            id=digest(collection, key),
            collection=collection,
            key=key,
            title=record.title,
            language=record.language,
            source=str(source.path),
            file_sha256=sha256,
            content=chunking.content_of(record),
            media_type=reader,
            edition=record.edition,
            status=Status(record.status) if record.status in set(Status) else Status.CURRENT,
            replaced_by=self._successor(record, source),
            url=record.url,
            identifiers=record.identifiers,
            publication_types=record.publication_types,
            mesh=record.mesh,
            relations=record.relations,
            pages=record.pages,
            notes=record.notes,
        )

    def _successor(self, record: Record, source: Source) -> str:
        """The document id of the record, or of the file beside this one, that ``replaced_by`` names."""
        if not record.replaced_by:
            return ""
        same_file = f"{source.path}#{record.replaced_by}"
        key = same_file if record.key else str(source.path.parent / record.replaced_by)
        return digest(self._manifest.collection.name, key)

    def _twin(self, builder: Builder, document: Document) -> str:
        """The id of another document of this collection with the same content, in this run or stored."""
        if self._contents.get(document.content, document.id) != document.id:
            return self._contents[document.content]
        for stored in builder.catalogue.with_content(document.collection, document.content):
            if stored.id != document.id and Path(stored.source).exists():
                return stored.id
        return ""

    # --- encoding and writing --------------------------------------------------------------------------------------

    def _flush(self, builder: Builder, cache: VectorCache) -> None:
        """Encode and write the files read so far; each replaces what was stored of it."""
        waiting, self._waiting = self._waiting, []
        for taken in waiting:
            self._replace(builder, taken)
        pairs = [(passage, taken) for taken in waiting for _, cut in taken.documents for passage in cut]
        batch = self._settings.library.batch
        for start in range(0, len(pairs), batch):
            part = pairs[start : start + batch]
            passages = [passage for passage, _ in part]
            builder.add(passages, cache.encode([chunking.encoder_text(passage) for passage in passages]))
            share = sum(taken.bytes / _passages(taken) for _, taken in part)
            self._progress(share, f"{len(passages)} passages")

    def _replace(self, builder: Builder, taken: Taken) -> None:
        file = taken.file
        before = builder.catalogue.of_file(file.collection, file.path)
        builder.remove(each.id for each in before)
        for document, _ in taken.documents:
            builder.put(document)
        if taken.settled:
            builder.catalogue.put_file(file)
        else:
            builder.catalogue.remove_file(file.collection, file.path)
        builder.changed = builder.changed or bool(before)
        documents = len(taken.documents)
        self._report.lines.append(Line(file.path, "read", "", documents, _passages(taken)))
        if not _passages(taken):
            self._progress(taken.bytes, "")


def _silent(done: float, doing: str) -> None:
    del done, doing


def _passages(taken: Taken) -> int:
    return sum(len(cut) for _, cut in taken.documents)
