"""The import: find files, read what is new or changed, encode, build the next generation, swap, report.

Rules: a file that is refused leaves what was stored of it before; a file is taken whole or not at all, a JSONL or XML
record likewise; a file whose bytes and recipe (reader, mapping, chunking) are known is not read again; what an earlier
import found under the same folder and is gone now is removed, unless the whole folder is empty, which is more often a
missing mount than a wish. Nothing is served before the swap, and Ctrl-C or kill -9 before it leaves the old generation.

Of a collection whose manifest asks for the latest versions a record stands once, whatever files hold it
(``duplicates.py``). A file of which such a record was passed over is read again when a file goes or changes.

Files are parsed in several children, large ones first, and taken in one order whatever child is faster (``ahead.py``),
so that the same folder makes the same generation.

The copy under ``files/`` is what is parsed, so a file that changes meanwhile cannot be stored as something it is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Passage, Status, message
from localmed.domain.errors import InputError, UsageError
from localmed.domain.ports import Embedder
from localmed.ingest import manifest as manifests
from localmed.ingest.duplicates import in_order
from localmed.ingest.engine import Engine
from localmed.ingest.manifest import Manifest
from localmed.ingest.ocr import child as ocr
from localmed.ingest.opening import Opened, Opening
from localmed.ingest.parsed import Fault
from localmed.ingest.reading import OUTDATED, UNSETTLED, Context, Descriptions, Taken, read, refusal, unmarked
from localmed.ingest.report import Line, Report
from localmed.ingest.sources import Leaving, Source, absolute, empty, find, missing
from localmed.library import layout, remarks
from localmed.library.catalogue import ImportedFile
from localmed.library.generations import AT_ONCE, Patience
from localmed.library.in_force import in_force
from localmed.library.library import Builder, build
from localmed.library.remarks import Planted
from localmed.library.state import Quarantined, State, connect, quarantined, requarantine
from localmed.library.vectors import VectorCache, texts_of
from localmed.process import children, hooks

__all__ = ["Importer", "Line", "Progress", "Report", "Started", "together"]

Progress = Callable[[float, str], None]  # (bytes done more, what is being done)
Started = Callable[[int], None]  # bytes to be read


class Importer:
    """One import into one collection: ``run`` it alone, or several ``together`` in one generation."""

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        encoder: Embedder,
        progress: Progress | None = None,
        file: Path | None = None,
    ) -> None:
        """``progress`` is told of every step's share of the bytes to be read; the manifest ``file`` is to be kept."""
        self._settings, self._manifest, self._encoder, self._file = settings, manifest, encoder, file
        self._progress: Progress = progress or (lambda *_: None)
        self._name = manifest.collection.name
        self._paths: tuple[Path, ...] = ()
        self._sources: list[Source] = []
        self._removed: tuple[str, ...] = ()
        self._gone: list[str] = []
        self.report = Report(self._name)
        self.engine: Engine | None = None  # workers that parse and encode, in place of this process
        self.near_copies = False  # take what is nearly the text of a withdrawn document
        self.speaks_to_models: Callable[[str], bool] = lambda _: False
        self.leaving = Leaving()
        self._waiting: list[Taken] = []
        self._begun: deque[list[Taken]] = deque()  # whose passages are being encoded
        self._refused_before: set[str] = set()
        self._descriptions = Descriptions(manifest, settings.chunk, ocr.identity() if settings.read.ocr else "")

    def run(
        self, paths: Sequence[Path], retry: bool = False, started: Started | None = None, removed: Sequence[str] = ()
    ) -> Report:
        """Import ``paths``; ``retry`` reads again what is in quarantine; ``started`` is told the bytes to read.

        ``removed`` are paths that are gone though no folder among ``paths`` would tell.
        """
        self.find(paths, removed)
        if failed := together([self], self._settings, self._encoder, retry, started):
            raise failed[self._name]
        return self.report

    def find(self, paths: Sequence[Path], removed: Sequence[str] = ()) -> None:
        """List what there is to import, before anything is changed; raise ``UsageError`` where that cannot be done."""
        self._paths, self._removed = tuple(paths), tuple(removed)
        self._sources, skipped = self._find(paths)
        self.report.lines += [*skipped, *empty(self._roots, self._sources)]
        if self._sources and not children.isolation().network:
            self.report.lines.append(Line(self._name, "note", message("import.not_isolated")))

    def compare(self, builder: Builder) -> None:
        """Find what is gone since; raise ``UsageError``, with nothing changed, for a folder that is empty now."""
        files = builder.catalogue.files(self._name).values()
        self._gone = self.leaving.removable([*self._removed, *missing(files, self._sources, self._roots)])

    def apply(self, builder: Builder, state: State, retry: bool, started: Started | None) -> None:
        """Bring the collection in step in the generation being built, after ``find`` and ``compare``."""
        if self._manifest.collection not in builder.catalogue.collections():
            builder.put_collection(self._manifest.collection)
        unread = self._unread(builder, state, self._taken(), retry, bool(self._gone))
        if started:
            started(sum(source.bytes for source in unread))
        self._read_all(builder, state, unread, self._gone)
        self._forget(builder, self._gone)  # afterwards: a renamed file has taken its documents and marks with it
        self._release(state, self._sources, self._roots, self._gone)
        earlier = [Source(Path(file.path), file.root) for file in builder.catalogue.files(self._name).values()]
        for name in self._descriptions.unmet([*self._sources, *earlier]):
            self.report.lines.append(Line(name, "note", message("import.not_imported")))

    def read_again(self, builder: Builder, state: State, sources: Sequence[Source]) -> None:
        """Read ``sources``, which were all imported before, and nothing else."""
        files = builder.catalogue.files(self._name)
        self._read_all(builder, state, in_order(sources, files, self._manifest.latest), ())

    def keep_manifest(self) -> None:
        """Keep the manifest for later imports, before what it made is served: what it says is then never older."""
        if self._file:
            manifests.keep(self._settings.data, self._name, self._file)

    @property
    def _roots(self) -> list[Path]:
        return [absolute(path) for path in self._paths if path.is_dir()]

    def _read_all(self, builder: Builder, state: State, unread: Sequence[Source], missing_paths: Sequence[str]) -> None:
        withdrawn = () if self.near_copies else in_force(self._settings.data).sketched()
        context = Context.of(self._descriptions, builder.catalogue, unread, missing_paths, withdrawn)
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

    def _taken(self) -> list[Source]:
        """The sources but those that are left as they are, of which the report says so."""
        taken = []
        for source in self._sources:
            if why := self.leaving.why(source, self._settings.read.file_bytes):
                self.report.lines.append(Line(str(source.path), "left", why))
            else:
                taken.append(source)
        return taken

    # --- what there is to do ---------------------------------------------------------------------------------------

    def _find(self, paths: Sequence[Path]) -> tuple[list[Source], list[Line]]:
        return find(paths, patterns=self._manifest.files)

    def _forget(self, builder: Builder, missing_paths: Sequence[str]) -> None:
        """Remove what is still stored of the paths that are gone."""
        known = builder.catalogue.files(self._name)
        for path in missing_paths:
            documents = builder.catalogue.of_file(self._name, path)
            if not documents and path not in known:
                continue  # it was moved
            builder.remove(document.id for document in documents)
            builder.catalogue.remove_file(self._name, path)
            builder.changed = True
            self.report.lines.append(Line(path, "removed", message("import.gone"), len(documents)))

    def _release(
        self, state: State, sources: Sequence[Source], roots: Sequence[Path], missing_paths: Sequence[str]
    ) -> None:
        """Take files that are gone out of quarantine."""
        present = {str(source.path) for source in sources}
        for path in {entry.path for entry in quarantined(state, self._name)} - present:
            if path in missing_paths or any(Path(path).is_relative_to(root) for root in roots):
                requarantine(state, self._name, path, [])

    def _unread(
        self, builder: Builder, state: State, sources: Sequence[Source], retry: bool, any_missing: bool
    ) -> list[Source]:
        """The sources to be read, in the order in which they are."""
        known = builder.catalogue.files(self._name)
        listed = quarantined(state, self._name)
        self._refused_before = {entry.path for entry in listed}
        refused = {entry.path: entry for entry in listed if not entry.place}
        unread, outdated, changed = [], [], any_missing
        for source in sources:
            path = str(source.path)
            before, rejected = known.get(path), refused.get(path)
            now = (
                (source.sha256(self._settings.read.file_bytes), self._recipe(source))
                if before or rejected
                else ("", "")
            )
            if rejected and not retry and (rejected.sha256, rejected.recipe) == now:
                again = message("import.as_before", reason=rejected.reason)
                self.report.lines.append(Line(path, "quarantined", again))
            elif before and (before.sha256, before.recipe) == now:
                self._unchanged(builder, before, source)
                if rejected:  # a bad version of it was, and this is the good one again
                    requarantine(state, self._name, path, [])
            elif before and (before.sha256, before.recipe) == (now[0], OUTDATED + now[1]):
                outdated.append(source)
            else:
                unread.append(source)
                changed = changed or bool(before and (before.sha256, unmarked(before.recipe)) != now)
        if changed:
            unread += outdated
        else:
            self.report.lines += [Line(str(source.path), "unchanged") for source in outdated]
        return in_order(unread, known, self._manifest.latest)

    def _unchanged(self, builder: Builder, before: ImportedFile, source: Source) -> None:
        self.report.lines.append(Line(before.path, "unchanged"))
        if source.root and not before.root:  # it was named by itself; from now on it goes when it leaves the folder
            builder.catalogue.put_file(replace(before, root=source.root))
            builder.changed = True

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
            reading = read(opened.content, source, context)
            apply = builder.catalogue.governed.apply_to_passages  # encoders read title and headings with each passage
            reading.documents = [(document, tuple(apply(cut))) for document, cut in reading.documents]
            before = builder.catalogue.file(self._name, path)
            if worse := refusal(reading, before, builder.catalogue.of_file(self._name, path), sha256):
                sha256 = ""
                raise worse
        except InputError as error:
            # No hash: what could not be copied, or of which OCR failed, may be whole by the next import, and is tried.
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
        self,
        state: State,
        file: tuple[str, str, str],
        faults: Sequence[Fault],
        whole: InputError | None = None,
    ) -> None:
        """List what is refused of ``file`` (path, hash, recipe), ``faults`` or all of it; without any it leaves."""
        path, sha256, recipe = file
        refused = [Quarantined(self._name, path, fault.where, sha256, recipe, fault.reason) for fault in faults]
        self.report.lines += [Line(path, "quarantined", fault.message) for fault in faults]
        if whole:
            refused = [Quarantined(self._name, path, None, sha256, recipe, whole.full_message)]
            self.report.lines.append(Line(path, "quarantined", whole.full_message))
        if refused or path in self._refused_before:
            requarantine(state, self._name, path, refused)

    # --- encoding and writing --------------------------------------------------------------------------------------

    def _flush(self, builder: Builder, cache: VectorCache, ahead: int) -> None:
        """Encode and write the files read so far, each in place of what was stored; of ``ahead`` lots only begin."""
        batch = self._settings.library.batch
        self._begun.append(self._waiting)
        for part in hooks.pieces(_passages(self._waiting), batch):
            texts = texts_of([passage for passage, _ in part], self._encoder.identity)
            cache.begin([text for own in texts for text in own])
        self._waiting = []
        while len(self._begun) > ahead:
            pairs = _passages([taken for taken in self._begun.popleft() if self._replace(builder, taken)])
            over = builder.catalogue.governed.apply_to_passages([passage for passage, _ in pairs])  # moved ones too
            for part in hooks.pieces(list(zip(over, (taken for _, taken in pairs), strict=True)), batch):
                passages = [passage for passage, _ in part]
                builder.add(passages, cache.encode_passages(passages))
                share = sum(taken.bytes / taken.passages for _, taken in part)
                self._progress(share, f"{len(passages)} passages")

    def _replace(self, builder: Builder, taken: Taken) -> bool:
        """Put the file's documents in the catalogue; return whether their passages have to be written."""
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
        self._outdate(builder, taken.reading.replaced)
        for old, new in taken.reading.moved:
            self._move(builder, old, new)
        for document in documents:
            self._enter(builder, file, document, earlier.get(document.id))
        came_from = {new: old.id for old, new in taken.reading.moved}
        for document, cut in taken.reading.documents:
            remarks.carry(self._settings.data, cut, came_from.get(document.id, document.id))
            self._suspect(file, cut)
        catalogue.put_file(file)
        builder.changed = True
        self.report.lines.append(Line(file.path, "read", None, len(documents), taken.passages))
        if not taken.passages:
            self._progress(taken.bytes, "")
        return True

    def _enter(self, builder: Builder, file: ImportedFile, document: Document, before: Document | None) -> None:
        """Store ``document`` of ``file``; what a librarian had set of it yields to the manifest, or is noted.

        ``before`` is the document that it takes the place of.
        """
        governed = builder.catalogue.governed
        governed.drop_stated([document.id], self._manifest.facts(Source(Path(file.path), file.root)))
        builder.put(document)
        notes = [*governed.outdated(document, before)]
        if (status := builder.catalogue.marked(document).status) is not Status.CURRENT:
            notes.append(message(f"import.status_{status.value}"))
        self.report.lines += [Line(file.path, "note", note) for note in notes]

    def _suspect(self, file: ImportedFile, cut: Sequence[Passage]) -> None:
        """Mark the passages that speak to a language model, and say so."""
        known = remarks.remarks(self._settings.data)
        cleared = {name for name, remark in known.items() if remark.planted is Planted.CLEARED}
        marked = [it for it in cut if it.id not in cleared and self.speaks_to_models(it.in_context)]
        if marked:
            remarks.suspect(self._settings.data, marked)
            ids = tuple(passage.id[:12] for passage in marked)
            self.report.lines.append(Line(file.path, "note", message("import.planted", count=len(ids), passages=ids)))

    def _outdate(self, builder: Builder, replaced: Sequence[Document]) -> None:
        """Take out older versions; their files are read again should a file go that might hold the newer.

        A file that is missing now is read again once it is back: it may be the newer by then.
        """
        builder.remove(document.id for document in replaced)
        for path in {document.source for document in replaced}:
            if file := builder.catalogue.file(self._name, path):
                recipe = unmarked(file.recipe).removeprefix(OUTDATED)
                again = unmarked(file.recipe) != file.recipe or not Path(path).exists()
                builder.catalogue.put_file(replace(file, recipe=(UNSETTLED if again else OUTDATED) + recipe))

    def _move(self, builder: Builder, old: Document, new: str) -> None:
        """Take ``old`` out of its file, which is gone; the file's other documents stay until it comes back."""
        builder.remove([old.id])
        builder.catalogue.rename(old.id, new)
        if not builder.catalogue.of_file(old.collection, old.source):
            builder.catalogue.remove_file(old.collection, old.source)
        elif file := builder.catalogue.file(old.collection, old.source):
            builder.catalogue.put_file(replace(file, recipe=UNSETTLED + unmarked(file.recipe)))


def _passages(files: Sequence[Taken]) -> list[tuple[Passage, Taken]]:
    return [(passage, taken) for taken in files for _, cut in taken.reading.documents for passage in cut]


def together(
    importers: Sequence[Importer],
    settings: Settings,
    encoder: Embedder,
    retry: bool = False,
    started: Started | None = None,
    whole: bool = False,
    patience: Patience = AT_ONCE,
) -> dict[str, UsageError]:
    """Run ``importers``, each after its ``find``, in one generation; return why collections were left as they are.

    One whose folder is empty now does not stop the others, unless ``whole``; any other error leaves everything as it
    was. ``patience`` is for another change of the library to end.
    """
    failed: dict[str, UsageError] = {}
    total = 0

    def begin(amount: int) -> None:
        nonlocal total
        total += amount
        if started:
            started(total)

    changing = build(settings.data, encoder.identity, settings.library, patience=patience)
    with changing as builder, closing(connect(settings.data)) as state:
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
