"""Imports files: find them, read the new and changed ones, encode, build the next generation, swap, report.

A refused file keeps its stored documents; a file, or a JSONL or XML record, is taken whole or not at all. Files with
known bytes and recipe (reader, mapping, chunking) are not read again. Files gone from their folder are removed, unless
the whole folder is empty, which is more often a missing mount. Nothing is served before the swap: Ctrl-C or kill -9
leaves the old generation. The copy under ``files/`` is parsed, because a file may change meanwhile. Files are parsed
in parallel but taken in one order (``ahead.py``), so the same folder always makes the same generation.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Passage, Status, message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.domain.ports import Embedder
from localmed.ingest import manifest as manifests
from localmed.ingest.duplicates import reading_order
from localmed.ingest.engine import Engine
from localmed.ingest.manifest import Manifest
from localmed.ingest.ocr import child as ocr
from localmed.ingest.opening import Opened, Opening
from localmed.ingest.parsed import Fault
from localmed.ingest.reading import OUTDATED, UNSETTLED, Context, Descriptions, Taken, read_content, refusal, strip_mark
from localmed.ingest.sources import Leaving, Line, Report, Source, absolute_path, find_missing, find_sources, note_empty
from localmed.library import layout, remarks
from localmed.library.catalogue import Catalogue, ImportedFile
from localmed.library.generations import AT_ONCE, Patience
from localmed.library.in_force import in_force
from localmed.library.library import Builder, build
from localmed.library.remarks import Planted
from localmed.library.state import Quarantined, State, connect, quarantined, requarantine, rows
from localmed.library.vectors import VectorCache, texts_of
from localmed.process import children, hooks

__all__ = ["Importer", "Line", "Progress", "Report", "Started", "run_together"]

Progress = Callable[[float, str], None]  # (bytes done since the last call, current step)
Started = Callable[[int], None]  # (bytes to read)


class Importer:
    """One import into one collection: ``run`` it alone, or several with ``run_together`` in one generation."""

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        encoder: Embedder,
        progress: Progress | None = None,
        file: Path | None = None,
    ) -> None:
        """``progress`` receives each step's share of the bytes to read; ``file`` is the manifest file to keep."""
        self._settings, self._manifest, self._encoder, self._file = settings, manifest, encoder, file
        self._progress: Progress = progress or (lambda *_: None)
        self._name = manifest.collection.name
        self._roots: list[Path] = []
        self._sources: list[Source] = []
        self._removed: tuple[str, ...] = ()
        self._gone: list[str] = []  # paths of earlier imports
        self.report = Report(self._name)
        self.engine: Engine | None = None  # workers that parse and encode in place of this process
        self.near_copies = False  # also take near-copies of withdrawn documents
        self.speaks_to_models: Callable[[str], bool] = lambda _: False
        self.leaving = Leaving()
        self._waiting: list[Taken] = []
        self._begun: deque[list[Taken]] = deque()  # whose passages are being encoded
        self._refused_before: set[str] = set()
        self._descriptions = Descriptions(manifest, settings.chunk, ocr.identity() if settings.read.ocr else "")

    def run(
        self, paths: Sequence[Path], retry: bool = False, started: Started | None = None, removed: Sequence[str] = ()
    ) -> Report:
        """Import ``paths``; ``retry`` also reads quarantined files; ``started`` receives the bytes to read.

        ``removed`` lists paths that are gone and lie under none of the folders in ``paths``.
        """
        self.find(paths, removed)
        if failed := run_together([self], self._settings, self._encoder, retry, started):
            raise failed[self._name]
        return self.report

    def find(self, paths: Sequence[Path], removed: Sequence[str] = ()) -> None:
        """List the files to import, before anything changes; raise ``UsageError`` if that fails."""
        self._roots = [absolute_path(path) for path in paths if path.is_dir()]
        self._removed = tuple(removed)
        self._sources, skipped = self._list(paths)
        self.report.lines += [*skipped, *note_empty(self._roots, self._sources)]
        if self._sources and not children.isolation().network:
            self.report.lines.append(Line(self._name, "note", message("import.not_isolated")))

    def compare(self, builder: Builder) -> None:
        """Find files that are gone; raise ``UsageError``, with nothing changed, for a folder that is now empty."""
        files = builder.catalogue.files(self._name).values()
        self._gone = self.leaving.removable([*self._removed, *find_missing(files, self._sources, self._roots)])

    def apply(self, builder: Builder, state: State, retry: bool, started: Started | None) -> None:
        """Update the collection in the generation being built, after ``find`` and ``compare``."""
        if self._manifest.collection not in builder.catalogue.collections():
            builder.put_collection(self._manifest.collection)
        taken = []
        for source in self._sources:
            if why := self.leaving.why(source, self._settings.read.file_bytes):
                self.report.lines.append(Line(str(source.path), "left", why))
            else:
                taken.append(source)
        unread = self._unread(builder, state, taken, retry)
        if started:
            started(sum(source.bytes for source in unread))
        self._read_all(builder, state, unread)
        self._remove_missing(builder)  # afterwards: a renamed file has taken its documents and marks with it
        self._release(state)
        earlier = [Source(Path(file.path), file.root) for file in builder.catalogue.files(self._name).values()]
        for name in self._descriptions.unmet([*self._sources, *earlier]):
            self.report.lines.append(Line(name, "note", message("import.not_imported")))

    def read_again(self, builder: Builder, state: State, sources: Sequence[Source]) -> None:
        """Read only ``sources``, all of which were imported before."""
        files = builder.catalogue.files(self._name)
        self._read_all(builder, state, reading_order(sources, files, self._manifest.latest))

    def keep_manifest(self) -> None:
        """Keep the manifest for later imports, before its result is served: it is then never older than that."""
        if self._file:
            manifests.keep(self._settings.data, self._name, self._file)

    def _read_all(self, builder: Builder, state: State, unread: Sequence[Source]) -> None:
        withdrawn = () if self.near_copies else in_force(self._settings.data).sketched()
        context = Context.of(self._descriptions, builder.catalogue, unread, self._gone, withdrawn)
        engine = self.engine
        encoding = engine.encoding(self._encoder.identity.slug) if engine else None
        with (
            closing(VectorCache(self._settings.data / layout.VECTORS, self._encoder, encoding)) as cache,
            Opening(self._settings, self._manifest, builder.keep, self._reading, engine) as opening,
        ):
            for opened in opening.files(unread):
                hooks.check()
                self._take(builder, state, opened, context)
                if sum(taken.passages for taken in self._waiting) >= self._settings.library.batch:
                    self._flush(builder, cache, engine.ahead if engine else 0)
            self._flush(builder, cache, 0)
            self.report.encoded = cache.encoded

    # --- what to read ----------------------------------------------------------------------------------------------

    def _list(self, paths: Sequence[Path]) -> tuple[list[Source], list[Line]]:
        return find_sources(paths, patterns=self._manifest.files)

    def _remove_missing(self, builder: Builder) -> None:
        known = builder.catalogue.files(self._name)
        for path in self._gone:
            documents = builder.catalogue.of_file(self._name, path)
            if not documents and path not in known:
                continue  # it was moved
            builder.remove(document.id for document in documents)
            builder.catalogue.remove_file(self._name, path)
            builder.changed = True
            self.report.lines.append(Line(path, "removed", message("import.gone"), len(documents)))

    def _release(self, state: State) -> None:
        present = {str(source.path) for source in self._sources}
        for path in {entry.path for entry in quarantined(state, self._name)} - present:
            if path in self._gone or any(Path(path).is_relative_to(root) for root in self._roots):
                requarantine(state, self._name, path, [])

    def _unread(self, builder: Builder, state: State, sources: Sequence[Source], retry: bool) -> list[Source]:
        known = builder.catalogue.files(self._name)
        listed = quarantined(state, self._name)
        self._refused_before = {entry.path for entry in listed}
        refused = {entry.path: entry for entry in listed if not entry.place}
        unread, outdated, changed = [], [], bool(self._gone)
        for source in sources:
            path = str(source.path)
            before, rejected = known.get(path), refused.get(path)
            now = ("", "")
            if before or rejected:
                now = source.sha256(self._settings.read.file_bytes), self._recipe(source)
            if rejected and not retry and (rejected.sha256, rejected.recipe) == now:
                again = message("import.as_before", reason=rejected.reason)
                self.report.lines.append(Line(path, "quarantined", again))
            elif before and (before.sha256, before.recipe) == now:
                self.report.lines.append(Line(path, "unchanged"))
                if source.root and not before.root:  # from now on it is removed when it leaves the folder
                    builder.catalogue.put_file(replace(before, root=source.root))
                    builder.changed = True
                if rejected:  # a bad version of it was, and this is the good one again
                    requarantine(state, self._name, path, [])
            elif before and (before.sha256, before.recipe) == (now[0], OUTDATED + now[1]):
                outdated.append(source)
            else:
                unread.append(source)
                changed = changed or bool(before and (before.sha256, strip_mark(before.recipe)) != now)
        if changed:
            unread += outdated
        else:
            self.report.lines += [Line(str(source.path), "unchanged") for source in outdated]
        return reading_order(unread, known, self._manifest.latest)

    def _recipe(self, source: Source) -> str:
        return self._descriptions.recipe(source)

    def _reading(self, name: str, page: int, pages: int, by_ocr: bool) -> None:
        hooks.check()
        place = f"{page}/{pages} " if page else ""
        self._progress(0, f"{'OCR ' if by_ocr else ''}{place}{name}")

    # --- one file --------------------------------------------------------------------------------------------------

    def _take(self, builder: Builder, state: State, opened: Opened, context: Context) -> None:
        """Take a file whole, or quarantine it with the reason."""
        source, sha256 = opened.source, opened.sha256
        path, recipe, size = str(source.path), self._recipe(source), source.bytes
        try:
            reading = read_content(opened.content, source, context)
            apply = builder.catalogue.governed.apply_to_passages  # encoders read title and headings with each passage
            reading.documents = [(document, tuple(apply(cut))) for document, cut in reading.documents]
            before = builder.catalogue.file(self._name, path)
            if worse := refusal(reading, before, builder.catalogue.of_file(self._name, path), sha256):
                sha256 = ""
                raise worse
        except InputError as error:
            # Without a hash the next import tries again: a copy or OCR that failed may succeed then.
            self._quarantine(state, (path, sha256, recipe), (), error)
            builder.remove(document.id for document in context.refuse(self._name, path))
            self._progress(size, source.path.name)
        else:
            self._quarantine(state, (path, sha256, recipe), reading.faults)
            self.report.lines += [Line(path, "note", note) for note in reading.notes]
            context.accept(reading, path)
            root = source.root or (before.root if before else "")
            file = ImportedFile(self._name, path, sha256, reading.mark + recipe, root)
            self._waiting.append(Taken(file, reading, sum(len(cut) for _, cut in reading.documents), size))

    def _quarantine(
        self, state: State, file: tuple[str, str, str], faults: Sequence[Fault], whole: InputError | None = None
    ) -> None:
        """Replace the quarantine entries of ``file`` (path, hash, recipe) with ``faults`` or the ``whole`` file."""
        path, sha256, recipe = file
        refused = [Quarantined(self._name, path, fault.where, sha256, recipe, fault.reason) for fault in faults]
        reasons = [fault.message for fault in faults]
        if whole:
            refused = [Quarantined(self._name, path, None, sha256, recipe, whole.full_message)]
            reasons = [whole.full_message]
        self.report.lines += [Line(path, "quarantined", why) for why in reasons]
        if refused or path in self._refused_before:
            requarantine(state, self._name, path, refused)

    # --- encoding and writing --------------------------------------------------------------------------------------

    def _flush(self, builder: Builder, cache: VectorCache, ahead: int) -> None:
        """Encode the files read so far and write them, except the last ``ahead`` lots, which only begin."""
        batch = self._settings.library.batch
        self._begun.append(self._waiting)
        for part in hooks.in_batches(_passages(self._waiting), batch):
            texts = texts_of([passage for passage, _ in part], self._encoder.identity)
            cache.begin([text for own in texts for text in own])
        self._waiting = []
        while len(self._begun) > ahead:
            pairs = _passages([taken for taken in self._begun.popleft() if self._replace(builder, taken)])
            over = builder.catalogue.governed.apply_to_passages([passage for passage, _ in pairs])  # moved ones too
            for part in hooks.in_batches(list(zip(over, (taken for _, taken in pairs), strict=True)), batch):
                passages = [passage for passage, _ in part]
                builder.add(passages, cache.encode_passages(passages))
                share = sum(taken.bytes / taken.passages for _, taken in part)
                self._progress(share, f"{len(passages)} passages")

    def _replace(self, builder: Builder, taken: Taken) -> bool:
        """Put the file's documents in the catalogue; return whether their passages must be written."""
        file, catalogue = taken.file, builder.catalogue
        before = catalogue.of_file(file.collection, file.path)
        documents = [document for document, _ in taken.reading.documents]
        same = {catalogue.marked(document) for document in documents} == set(before)
        if same and not taken.reading.moved and catalogue.file(file.collection, file.path) == file:
            self.report.lines.append(Line(file.path, "unchanged"))
            self._progress(taken.bytes, "")
            return False
        earlier = {document.id: document for document in (*before, *taken.reading.replaced)}
        builder.remove(document.id for document in before)
        self._remove_older(builder, taken.reading.replaced)
        for old, new in taken.reading.moved:
            self._move(builder, old, new)
        for document in documents:
            self._store_document(builder, file, document, earlier.get(document.id))
        came_from = {new: old.id for old, new in taken.reading.moved}
        for document, cut in taken.reading.documents:
            remarks.carry(self._settings.data, cut, came_from.get(document.id, document.id))
            self._mark_planted(file, cut)
        catalogue.put_file(file)
        builder.changed = True
        files = [{document.file_sha256 for document in of} for of in (before, documents)]
        again = message("import.read_again") if before and files[0] == files[1] else None
        self.report.lines.append(Line(file.path, "read", again, len(documents), taken.passages))
        if not taken.passages:
            self._progress(taken.bytes, "")
        return True

    def _store_document(
        self, builder: Builder, file: ImportedFile, document: Document, before: Document | None
    ) -> None:
        """Store ``document`` in place of ``before``. The manifest overrides what a librarian set, but for the title."""
        governed = builder.catalogue.governed
        governed.drop_stated([document.id], self._manifest.facts(Source(Path(file.path), file.root)))
        builder.put(document)
        notes = [*governed.outdated(document, before)]
        if (status := builder.catalogue.marked(document).status) is not Status.CURRENT:
            notes.append(message(f"import.status_{status.value}"))
        self.report.lines += [Line(file.path, "note", note) for note in notes]

    def _mark_planted(self, file: ImportedFile, cut: Sequence[Passage]) -> None:
        """Mark passages that address a language model, and report them."""
        known = remarks.remarks(self._settings.data)
        cleared = {name for name, remark in known.items() if remark.planted is Planted.CLEARED}
        marked = [it for it in cut if it.id not in cleared and self.speaks_to_models(it.in_context)]
        if marked:
            remarks.suspect(self._settings.data, marked)
            ids = tuple(passage.id[:12] for passage in marked)
            self.report.lines.append(Line(file.path, "note", message("import.planted", count=len(ids), passages=ids)))

    def _remove_older(self, builder: Builder, replaced: Sequence[Document]) -> None:
        """Remove older versions; their files are read again if one with a newer version may go or come back."""
        builder.remove(document.id for document in replaced)
        for path in {document.source for document in replaced}:
            if file := builder.catalogue.file(self._name, path):
                recipe = strip_mark(file.recipe).removeprefix(OUTDATED)
                again = strip_mark(file.recipe) != file.recipe or not Path(path).exists()
                builder.catalogue.put_file(replace(file, recipe=(UNSETTLED if again else OUTDATED) + recipe))

    def _move(self, builder: Builder, old: Document, new: str) -> None:
        """Remove ``old`` from its file, which is gone; the file's other documents stay until it comes back."""
        builder.remove([old.id])
        builder.catalogue.rename(old.id, new)
        if not builder.catalogue.of_file(old.collection, old.source):
            builder.catalogue.remove_file(old.collection, old.source)
        elif file := builder.catalogue.file(old.collection, old.source):
            builder.catalogue.put_file(replace(file, recipe=UNSETTLED + strip_mark(file.recipe)))


def _passages(files: Sequence[Taken]) -> list[tuple[Passage, Taken]]:
    return [(passage, taken) for taken in files for _, cut in taken.reading.documents for passage in cut]


def run_together(
    importers: Sequence[Importer],
    settings: Settings,
    encoder: Embedder,
    retry: bool = False,
    started: Started | None = None,
    whole: bool = False,
    patience: Patience = AT_ONCE,
) -> dict[str, UsageError]:
    """Run ``importers``, each after its ``find``, in one generation; return why collections were left unchanged.

    An empty folder does not stop the other collections, unless ``whole``. Any other error leaves everything unchanged.
    """
    failed: dict[str, UsageError] = {}
    total = 0

    def begin(amount: int) -> None:
        nonlocal total
        total += amount
        if started:
            started(total)

    with (
        build(settings.data, encoder.identity, settings.library, patience=patience) as builder,
        closing(connect(settings.data)) as state,
    ):
        runs = []
        for importer in importers:
            name, builder.changed = importer.report.collection, False
            try:
                importer.compare(builder)
            except UsageError as error:
                if whole:
                    raise
                failed[name] = error
                continue
            importer.apply(builder, state, retry, begin)
            runs.append((importer, builder.changed))
        builder.changed = any(changed for _, changed in runs)
        for importer, _ in runs:
            importer.keep_manifest()
        generation = 0
        if builder.changed:
            names = tuple(importer.report.collection for importer, _ in runs)
            generation = builder.publish(message("generation.made.import", collections=names))
        for importer, changed in runs:
            importer.report.generation = generation if changed else 0
    return failed


# --- where a collection was imported from -----------------------------------------------------------------------------

# For one command that updates it (``collections update``), its folders are walked again. A file that was named itself
# and is gone is removed, but only if its folder exists. A folder that is gone ends the update, because it is more often
# not mounted. A file that cannot be inspected is not gone.


@dataclass(frozen=True, slots=True)
class Origins:
    """The paths to import again, and the files named themselves that are gone."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def origins(files: Iterable[ImportedFile], refused: Iterable[str]) -> Origins:
    """The origins of ``files`` and the ``refused`` paths; raise ``UsageError`` for a folder that is gone."""
    imported = list(files)
    roots: list[Path] = []
    for folder in sorted({Path(file.root) for file in imported if file.root}):  # a folder within another goes with it
        if not any(folder.is_relative_to(outer) for outer in roots):
            roots.append(folder)
    singly = {file.path for file in imported if not file.root}
    for folder in (*roots, *(Path(path).parent for path in sorted(singly))):
        if not _is_there(folder, stat.S_ISDIR):
            raise UsageError("source.folder_gone", folder=str(folder))
    singly |= {path for path in refused if not any(Path(path).is_relative_to(root) for root in roots)}
    there = {path for path in singly if _is_there(Path(path), stat.S_ISREG)}
    return Origins((*roots, *map(Path, sorted(there))), tuple(sorted(singly - there)))


def origins_of(data: Path, catalogue: Catalogue, collection: str) -> Origins:
    """``origins`` of ``collection``; raise ``UnknownName``, or ``UsageError`` if it was never imported."""
    catalogue.collection(collection)
    files = catalogue.files(collection)
    with rows(data) as state:
        refused = {entry.path for entry in quarantined(state, collection)}
    if not files and not refused:
        raise UsageError("source.never_imported", collection=collection)
    return origins(files.values(), refused - files.keys())


def imported_collections(data: Path, catalogue: Catalogue) -> list[str]:
    """The collections that were imported from files, first priority first."""
    with rows(data) as state:
        refused = {entry.collection for entry in quarantined(state)}
    names = (collection.name for collection in catalogue.collections())
    return [name for name in names if name in refused or catalogue.files(name)]


def mark_to_read_again(catalogue: Catalogue, removed: Iterable[Document]) -> None:
    """Have the next import read the files of ``removed`` documents again, which restores them.

    To keep a document out, withdraw it.
    """
    for collection, source in {(document.collection, document.source) for document in removed}:
        file = catalogue.file(collection, source)
        if not catalogue.of_file(collection, source):
            catalogue.remove_file(collection, source)
        elif file:
            catalogue.put_file(replace(file, recipe=UNSETTLED + strip_mark(file.recipe)))


def _is_there(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether ``path`` exists as that kind; raise ``UsageError`` if that is unknown: nothing may be removed then."""
    try:
        return kind(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError("source.unseen", path=str(path), reason=reason(error)) from None
