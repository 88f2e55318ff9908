"""The import: find files, read what is new or changed, encode, build the next generation, swap, report.

Rules: a file that is refused leaves what was stored of it before; a file is taken whole or not at all, a JSONL or XML
record likewise; a file whose bytes and recipe (reader, mapping, chunking) are known is not read again; what an earlier
import found under the same folder and is gone now is removed, unless the whole folder is empty, which is more often a
missing mount than a wish. Nothing is served before the swap, and Ctrl-C or kill -9 before it leaves the old generation.

Of a collection whose manifest asks for the latest versions a record stands once, whatever files hold it
(``versions.py``). A file of which such a record was passed over is read again when a file goes or changes.

The copy under ``files/`` is what is parsed, so a file that changes meanwhile cannot be stored as something it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Status, digest
from localmed.errors import InputError
from localmed.ingest import chunking, readers, summaries
from localmed.ingest.archives import Part, Parts
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, Record
from localmed.ingest.parsing import Parser
from localmed.ingest.reading import OUTDATED, UNSETTLED, Reading, Taken
from localmed.ingest.report import Line, Report
from localmed.ingest.sources import Source, absolute, find, missing
from localmed.ingest.twins import Twins
from localmed.ingest.versions import Versions, order
from localmed.language import detect
from localmed.library.catalogue import ImportedFile
from localmed.library.library import Builder, build
from localmed.library.state import Quarantined, State
from localmed.library.vectors import VectorCache
from localmed.ports import Embedder

__all__ = ["Importer", "Line", "Progress", "Report"]

RECIPE = 2  # goes up when chunking or the encoder's text changes: every file is then read again
DETECT_CHARACTERS = 4000  # of a document, to tell its language

Progress = Callable[[float, str], None]  # (bytes done more, what is being done)


class Importer:
    """One import into one collection."""

    def __init__(
        self, settings: Settings, manifest: Manifest, encoder: Embedder, progress: Progress | None = None
    ) -> None:
        """``progress`` is told of every step's share of the bytes to be read."""
        self._settings, self._manifest, self._encoder = settings, manifest, encoder
        self._progress = progress or _silent
        self._name = manifest.collection.name
        self._report = Report(self._name)
        self._waiting: list[Taken] = []
        self._refused_before: set[str] = set()
        self._versions: Versions | None = None

    def run(
        self,
        paths: Sequence[Path],
        retry: bool = False,
        started: Callable[[int], None] | None = None,
        removed: Sequence[str] = (),
    ) -> Report:
        """Import ``paths``; ``retry`` reads again what is in quarantine; ``started`` is told the bytes to read.

        ``removed`` are paths that are gone though no folder among ``paths`` would tell.
        """
        sources, skipped = self._find(paths)
        roots = [absolute(each) for each in paths if each.is_dir()]
        self._report.lines += skipped
        with (
            build(self._settings.data, self._encoder.identity, self._settings.library) as builder,
            State(self._settings.data) as state,
        ):
            run = state.begin_import(self._name)
            if self._manifest.collection not in builder.catalogue.collections():
                builder.put_collection(self._manifest.collection)
            gone = [*removed, *missing(builder.catalogue.files(self._name).values(), sources, roots)]
            unread = self._unread(builder, state, sources, retry, bool(gone))
            if started:
                started(sum(each.bytes for each in unread))
            self._read_all(builder, state, unread, gone)
            self._forget(builder, gone)  # afterwards: a renamed file has taken its documents and marks with it
            self._release(state, sources, roots, gone)
            self._undescribed(builder, sources)
            summaries.complete(builder, self._encoder, self._settings, self._progress)
            if builder.changed:
                self._report.generation = builder.publish(f"import into {self._name}")
            state.finish_import(run, "finished", self._report.generation, self._report.counts)
        return self._report

    def _read_all(self, builder: Builder, state: State, unread: Sequence[Source], gone: Sequence[str]) -> None:
        replaced = [str(each.path) for each in unread]
        twins = Twins(builder.catalogue, replaced)
        self._versions = Versions(builder.catalogue, (*replaced, *gone)) if self._manifest.latest else None
        cache = VectorCache(self._settings.data / "vectors", self._encoder)
        try:
            with Parser() as parser:
                for source in unread:
                    self._take(builder, state, parser, twins, source)
                    if sum(each.passages for each in self._waiting) >= self._settings.library.batch:
                        self._flush(builder, cache)
            self._flush(builder, cache)
            self._report.encoded = cache.encoded
        finally:
            cache.close()

    # --- what there is to do ---------------------------------------------------------------------------------------

    def _find(self, paths: Sequence[Path]) -> tuple[list[Source], list[Line]]:
        return find(paths, wanted=self._manifest.files)

    def _forget(self, builder: Builder, gone: Sequence[str]) -> None:
        """Remove what is still stored of the paths that are gone."""
        known = builder.catalogue.files(self._name)
        for path in gone:
            documents = builder.catalogue.of_file(self._name, path)
            if not documents and path not in known:
                continue  # it was moved
            builder.remove(each.id for each in documents)
            builder.catalogue.remove_file(self._name, path)
            builder.changed = True
            self._report.lines.append(Line(path, "removed", "no longer in the folder", len(documents)))

    def _release(self, state: State, sources: Sequence[Source], roots: Sequence[Path], gone: Sequence[str]) -> None:
        """Take files that are gone out of quarantine."""
        present = {str(source.path) for source in sources}
        for path in {each.path for each in state.quarantined(self._name)} - present:
            if path in gone or any(Path(path).is_relative_to(root) for root in roots):
                state.requarantine(self._name, path, [])

    def _undescribed(self, builder: Builder, sources: Sequence[Source]) -> None:
        """Say which files the manifest describes and nobody has imported: more often a misspelt name than a wish."""
        earlier = [Source(Path(each.path), each.root) for each in builder.catalogue.files(self._name).values()]
        known = {name for each in (*sources, *earlier) for name in (each.name, each.path.name)}
        for name in self._manifest.documents:
            if name not in known:
                self._report.lines.append(Line(name, "note", "the manifest describes it, but it was not imported"))

    def _unread(
        self, builder: Builder, state: State, sources: Sequence[Source], retry: bool, gone: bool
    ) -> list[Source]:
        """The sources to be read, known files first: theirs are the documents, not their copies'.

        Where versions count, the last comes first.
        """
        known = builder.catalogue.files(self._name)
        quarantined = state.quarantined(self._name)
        self._refused_before = {each.path for each in quarantined}
        refused = {each.path: each for each in quarantined if not each.place}
        unread, outdated, changed = [], [], gone
        for source in sources:
            path = str(source.path)
            before, rejected = known.get(path), refused.get(path)
            now = (source.sha256(), self._recipe(source)) if before or rejected else ("", "")
            if rejected and not retry and (rejected.sha256, rejected.recipe) == now:
                again = f"{rejected.reason} (as before; --retry reads it again)"
                self._report.lines.append(Line(path, "quarantined", again))
            elif before and (before.sha256, before.recipe) == now:
                self._unchanged(builder, before, source)
                if rejected:  # a bad version of it was, and this is the good one again
                    state.requarantine(self._name, path, [])
            elif before and (before.sha256, before.recipe) == (now[0], OUTDATED + now[1]):
                outdated.append(source)
            else:
                unread.append(source)
                changed = changed or bool(before and (before.sha256, before.recipe.removeprefix(UNSETTLED)) != now)
        if changed:
            unread += outdated
        else:
            self._report.lines += [Line(str(each.path), "unchanged") for each in outdated]
        if self._manifest.latest:
            return sorted(unread, key=lambda each: order(str(each.path)), reverse=True)
        return sorted(unread, key=lambda each: str(each.path) not in known)

    def _unchanged(self, builder: Builder, before: ImportedFile, source: Source) -> None:
        self._report.lines.append(Line(before.path, "unchanged"))
        if source.root and not before.root:  # it was named by itself; from now on it goes when it leaves the folder
            builder.catalogue.put_file(replace(before, root=source.root))
            builder.changed = True

    def _recipe(self, source: Source) -> str:
        try:
            reader = readers.name_of(source.path, self._manifest.reader)
        except InputError:
            reader = ""
        chunk, version = self._settings.chunk, readers.version_of(reader)
        return digest(str(RECIPE), reader, version, repr(chunk), self._manifest.recipe(self._facts(source)))

    def _facts(self, source: Source) -> dict[str, str]:
        documents = self._manifest.documents
        return dict(documents.get(source.name) or documents.get(source.path.name) or {})

    # --- one file --------------------------------------------------------------------------------------------------

    def _take(self, builder: Builder, state: State, parser: Parser, twins: Twins, source: Source) -> None:
        """Read ``source`` whole, or quarantine it with the reason."""
        path, recipe, size = str(source.path), self._recipe(source), source.bytes
        sha256 = ""
        try:
            reader = readers.name_of(source.path, self._manifest.reader)
            sha256 = builder.keep(source.path, self._settings.read.file_bytes)
            reading = self._read(builder, twins, parser, source, Part(sha256, reader, source.path.name))
        except InputError as error:
            refused = [Quarantined(self._name, path, "", sha256 or source.sha256(), recipe, str(error))]
            self._report.lines.append(Line(path, "quarantined", str(error)))
            builder.remove(each.id for each in twins.refuse(self._name, path))
            if self._versions:
                self._versions.refuse(path)
            self._progress(size, source.path.name)
        else:
            refused = [
                Quarantined(self._name, path, each.where, sha256, recipe, each.reason) for each in reading.faults
            ]
            self._report.lines += [Line(path, "quarantined", f"{each.where}: {each.reason}") for each in reading.faults]
            self._report.lines += [Line(path, "note", note) for note in reading.notes]
            twins.accept(reading.contents)
            if self._versions:
                self._versions.accept((document.id for document, _ in reading.documents), path)
            before = builder.catalogue.file(self._name, path)
            root = source.root or (before.root if before else "")
            file = ImportedFile(self._name, path, sha256, reading.mark + recipe, root)
            self._waiting.append(Taken(file, reading, size))
        if refused or path in self._refused_before:
            state.requarantine(self._name, path, refused)

    def _read(self, builder: Builder, twins: Twins, parser: Parser, source: Source, whole: Part) -> Reading:
        reading = Reading()
        name = source.path.name
        parts = Parts(self._settings, self._manifest, parser, builder.keep)
        for part, item in parts.records(whole):
            if isinstance(item, Fault):
                reading.faults.append(item)
            else:
                self._add(reading, twins, item, source, part)
        reading.notes += parts.notes
        reading.notes += [f"{count} records are newer in {Path(newer).name}" for newer, count in reading.newer.items()]
        if not reading.documents and not reading.mark:
            if reading.faults:
                first, others = reading.faults[0], len(reading.faults) - 1
                more = f" (and {others} more parts)" if others else ""
                raise InputError(f"{name}: {first.where}: {first.reason}{more}", "Check that it is the file you meant")
            raise InputError(f"{name} holds no document", "Check that it is the file you meant")
        return reading

    def _add(self, reading: Reading, twins: Twins, record: Record, source: Source, part: Part) -> None:
        """One record of a file: its document and passages, or why it has none."""
        content = chunking.content_of(record)
        document = self._document(self._completed(record, source), source, part, content)
        if self._versions and (newer := self._versions.newer(document)):
            reading.newer[newer] += 1
            return
        here = reading.contents.get(content, "")
        twin = here or twins.of(document)
        if twin:
            what = record.key or "the document"
            reading.notes.append(f"{what} has the same content as document {twin[:12]}, not stored twice")
            reading.settled = reading.settled and bool(here)
            return
        cut = tuple(chunking.passages(record, document, self._settings.chunk))
        if not cut and not record.deleted:
            reading.faults.append(Fault(record.key or "file", "has no text"))
            return
        reading.contents[content] = document.id
        reading.notes += [f"{record.key}: {note}" if record.key else note for note in record.notes]
        if self._versions and (older := self._versions.stored(document)):
            reading.replaced.append(older)
        for old in twins.moved(document):
            reading.moved.append((old, document.id))
            reading.notes.append(f"{record.key or 'the document'} was moved here from {old.source}")
        reading.documents.append((replace(document, passages=len(cut)), cut))

    def _completed(self, record: Record, source: Source) -> Record:
        """``record`` with the manifest's facts about its file, a language and a title."""
        facts = self._facts(source)
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

    def _document(self, record: Record, source: Source, part: Part, content: str) -> Document:
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

    def _key(self, source: Source, record: str) -> str:
        """What a document is known by: its file and the record in it, or the record alone where versions count."""
        if self._manifest.latest and record:
            return record
        return f"{source.path}#{record}" if record else str(source.path)

    def _successor(self, record: Record, source: Source) -> str:
        """The document id of the record, or of the file beside this one, that ``replaced_by`` names."""
        if not record.replaced_by:
            return ""
        key = self._key(source, record.replaced_by) if record.key else str(source.path.parent / record.replaced_by)
        return digest(self._name, key)

    # --- encoding and writing --------------------------------------------------------------------------------------

    def _flush(self, builder: Builder, cache: VectorCache) -> None:
        """Encode and write the files read so far; each replaces what was stored of it."""
        waiting, self._waiting = self._waiting, []
        changed = [each for each in waiting if self._replace(builder, each)]
        pairs = [(passage, taken) for taken in changed for _, cut in taken.reading.documents for passage in cut]
        batch = self._settings.library.batch
        for start in range(0, len(pairs), batch):
            part = pairs[start : start + batch]
            passages = [passage for passage, _ in part]
            builder.add(passages, *cache.encode_both([passage.in_context for passage in passages]))
            share = sum(taken.bytes / taken.passages for _, taken in part)
            self._progress(share, f"{len(passages)} passages")

    def _replace(self, builder: Builder, taken: Taken) -> bool:
        """Put the file's documents in the catalogue; return whether their passages have to be written."""
        file, catalogue = taken.file, builder.catalogue
        before = catalogue.of_file(file.collection, file.path)
        documents = [document for document, _ in taken.reading.documents]
        same = {catalogue.marked(each) for each in documents} == set(before)
        if same and not taken.reading.moved and catalogue.file(file.collection, file.path) == file:
            self._report.lines.append(Line(file.path, "unchanged"))
            self._progress(taken.bytes, "")
            return False
        builder.remove(each.id for each in before)
        self._outdate(builder, taken.reading.replaced)
        for old, new in taken.reading.moved:
            self._move(builder, old, new)
        for document in documents:
            builder.put(document)
            if (status := catalogue.marked(document).status) is not Status.CURRENT:
                self._report.lines.append(Line(file.path, "note", f"is {status.value}: it does not answer"))
        catalogue.put_file(file)
        builder.changed = True
        self._report.lines.append(Line(file.path, "read", "", len(documents), taken.passages))
        if not taken.passages:
            self._progress(taken.bytes, "")
        return True

    def _outdate(self, builder: Builder, replaced: Sequence[Document]) -> None:
        """Take out older versions; their files are read again should a file go that might hold the newer.

        A file that is missing now is read again once it is back: it may be the newer by then.
        """
        builder.remove(each.id for each in replaced)
        for path in {each.source for each in replaced}:
            if file := builder.catalogue.file(self._name, path):
                recipe = file.recipe.removeprefix(UNSETTLED).removeprefix(OUTDATED)
                again = file.recipe.startswith(UNSETTLED) or not Path(path).exists()
                builder.catalogue.put_file(replace(file, recipe=(UNSETTLED if again else OUTDATED) + recipe))

    def _move(self, builder: Builder, old: Document, new: str) -> None:
        """Take ``old`` out of its file, which is gone; the file's other documents stay until it comes back."""
        builder.remove([old.id])
        builder.catalogue.rename(old.id, new)
        if not builder.catalogue.of_file(old.collection, old.source):
            builder.catalogue.remove_file(old.collection, old.source)
        elif file := builder.catalogue.file(old.collection, old.source):
            builder.catalogue.put_file(replace(file, recipe=UNSETTLED + file.recipe.removeprefix(UNSETTLED)))


def _silent(done: float, doing: str) -> None:
    del done, doing
