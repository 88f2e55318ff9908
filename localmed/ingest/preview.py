"""Shows what an import would do, file by file; nothing is stored, encoded or served.

Files are opened and read as by an import, but copied to a temporary folder, which is locked while in use and removed
at the end or, after a kill, by the next preview. Each document is compared with the library: new, changed, the same,
or moved from a file that is gone.

Not covered: messages of encoding and the indexes; terminologies, which have no pages; quarantine, since everything is
read again.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Kind, message
from localmed.domain.errors import InputError, NoLibrary, UsageError
from localmed.domain.previews import FilePreview, Outcome
from localmed.ingest.ahead import children_of
from localmed.ingest.duplicates import reading_order
from localmed.ingest.manifest import Manifest
from localmed.ingest.opening import Content, Opened, Opening
from localmed.ingest.reading import Context, Descriptions, Reading, read_content
from localmed.ingest.sources import absolute_path, find_missing, find_sources, note_empty
from localmed.library import layout, originals
from localmed.library.catalogue import FILE, Catalogue
from localmed.library.in_force import in_force
from localmed.library.library import Library
from localmed.process import files
from localmed.process.files import Opener, open_regular, told_if_full

FRESH = 60.0  # seconds; a younger folder may not be locked yet
PREFIX = "localmed-preview-"  # of the temporary folder's name
AHEAD = 2  # files copied ahead per parsing child: none waits, and copies may be large


class Preview:
    """A dry run into one collection."""

    def __init__(
        self, settings: Settings, manifest: Manifest, progress: Callable[[float, str], None] | None = None
    ) -> None:
        """``progress`` receives every file's bytes; raise ``UsageError`` for a collection of terms."""
        if manifest.collection.kind is Kind.GRAPH:
            raise UsageError("preview.terms")
        self._settings, self._manifest, self._progress = settings, manifest, progress
        self._descriptions = Descriptions(manifest, settings.chunk)
        self._kept: Counter[str] = Counter()  # originals in the temporary folder -> uses ahead

    def files(self, paths: Sequence[Path], started: Callable[[int], None] | None = None) -> Iterator[FilePreview]:
        """Yield every file under ``paths``, read on demand; ``started`` receives the bytes to read."""
        sources, skipped = find_sources(paths, patterns=self._manifest.files)
        roots = [absolute_path(path) for path in paths if path.is_dir()]
        with ExitStack() as stack:
            folder = stack.enter_context(temporary_folder(PREFIX))
            stack.enter_context(told_if_full(folder))
            catalogue = _open_catalogue(self._settings.data, folder, stack)
            known = catalogue.files(self._manifest.collection.name)
            missing_paths = find_missing(known.values(), sources, roots)
            for line in (*skipped, *note_empty(roots, sources)):
                yield FilePreview(line.path, "skipped", line.detail)
            if started:
                started(sum(source.bytes for source in sources))
            ordered = reading_order(sources, known, self._manifest.latest)
            withdrawn = in_force(self._settings.data).sketched()
            context = Context.of(self._descriptions, catalogue, ordered, missing_paths, withdrawn)
            ingest = self._settings.ingest
            few = replace(ingest, ahead_files=min(ingest.ahead_files, AHEAD * children_of(ingest)))
            apart = replace(self._settings, data=folder, ingest=few)
            with Opening(apart, self._manifest, partial(self._keep, folder)) as opening:
                for opened in opening.files(ordered):
                    size = opened.source.bytes
                    yield self._preview_file(opened, context, catalogue, folder)
                    if self._progress:
                        self._progress(size, opened.source.path.name)
            for path in missing_paths:
                count = len(catalogue.of_file(self._manifest.collection.name, path))
                yield FilePreview(path, "removed", message("import.gone"), going=count)

    def _preview_file(self, opened: Opened, context: Context, catalogue: Catalogue, folder: Path) -> FilePreview:
        path, name, parts = str(opened.source.path), self._manifest.collection.name, [opened.sha256]
        before = {document.id: document for document in catalogue.of_file(name, path)}
        try:
            reading = read_content(_record_parts(opened.content, parts), opened.source, context)
        except InputError as error:
            context.refuse(name, path)
            return FilePreview(path, "refused", error.full_message)
        finally:
            self._release(folder, parts)
        context.accept(reading, path)
        return _compare(path, reading, before, catalogue, folder / layout.FILES)

    # --- copies ------------------------------------------------------------------------------------------------------

    def _keep(self, folder: Path, source: Path, most: int, opened: Opener = open_regular) -> str:
        sha256 = originals.keep(folder, source, most, opened)
        self._kept[sha256] += 1
        return sha256

    def _release(self, folder: Path, parts: Sequence[str]) -> None:
        """Release the originals ``parts`` of a file; those of the file before it are removed."""
        for path in (folder / layout.FILES).glob("*"):
            if not self._kept[path.name]:
                path.unlink()
        for sha256 in dict.fromkeys(parts):
            self._kept[sha256] = max(0, self._kept[sha256] - 1)


def _open_catalogue(data: Path, folder: Path, stack: ExitStack) -> Catalogue:
    try:
        return stack.enter_context(Library.open(data)).catalogue
    except NoLibrary:
        empty = Catalogue(folder / FILE, writable=True)
        stack.callback(empty.close)
        return empty


def _record_parts(content: Content, parts: list[str]) -> Content:
    """``content``; add the hashes of its originals to ``parts``."""
    for part, item in content:
        if part.sha256 not in parts[-1:]:
            parts.append(part.sha256)
        yield part, item


def _compare(
    path: str, reading: Reading, before: dict[str, Document], catalogue: Catalogue, folder: Path
) -> FilePreview:
    moved = {new for _, new in reading.moved}
    documents = tuple((cut, _outcome(cut[0], before, catalogue, moved)) for cut in reading.documents)
    outcomes = {outcome for _, outcome in documents}
    going = len(before.keys() - {document.id for document, _ in reading.documents})
    if len(outcomes) == 1 and not going:
        [outcome] = outcomes
    else:
        outcome = "changed" if before or "changed" in outcomes else "new" if documents else "same"
    notes = tuple(reading.notes[:3])
    reason = message("preview.reasons", notes=notes) if notes and not documents else None  # a copy, or an older version
    return FilePreview(path, outcome, reason, documents, tuple(reading.faults), tuple(reading.notes), going, folder)


def _outcome(document: Document, before: dict[str, Document], catalogue: Catalogue, moved: set[str]) -> Outcome:
    if document.id in moved:
        return "moved"
    stored = before.get(document.id) or catalogue.by_ids([document.id]).get(document.id)
    if stored is None:
        return "new"
    here = replace(catalogue.marked(document), file_sha256=stored.file_sha256)  # other records of its file may differ
    return "same" if stored == here else "changed"


# --- a folder that does not outlive its process ----------------------------------------------------------------------


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new folder for this user only, named from ``prefix`` and removed at the end."""
    _sweep(prefix)
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        handle = os.open(name, os.O_RDONLY)
        try:
            _lock(handle)
            yield Path(name)
        finally:
            os.close(handle)


def _sweep(prefix: str) -> None:
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another process removes it too, or it cannot be opened
            status = left.lstat()
            fresh = time.time() - status.st_mtime < FRESH
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or fresh:
                continue
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if _lock(handle):
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock the folder; False if another process has, or if the file system has no locks."""
    with suppress(OSError):
        return files.lock(handle)
    return False
