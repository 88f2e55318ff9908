"""Finds where a collection was imported from, so that one command can update it (``collections update``).

Folders are walked again. A file that was named itself and is gone is removed, but only if its folder exists. A folder
that is gone ends the update, because it is more often not mounted. A file that cannot be inspected is not gone.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from localmed.domain import Document
from localmed.domain.errors import UsageError, reason
from localmed.ingest.reading import UNSETTLED, strip_mark
from localmed.library.catalogue import Catalogue, ImportedFile
from localmed.library.state import quarantined, rows


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
