"""Where a collection was imported from, so that one command can bring it in step (``collections update``).

Rules: folders are walked again; a file that was named singly and is gone is removed, but only if its folder is there;
a folder that is gone ends the update, since it is more often not mounted than not wanted; what cannot be looked at is
not gone.

Not covered: a folder of which every file was refused; import it again by name.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from localmed.domain import Document
from localmed.domain.errors import UsageError, reason
from localmed.ingest.reading import UNSETTLED, unmarked
from localmed.library.catalogue import Catalogue, ImportedFile
from localmed.library.state import quarantined, rows


@dataclass(frozen=True, slots=True)
class Origins:
    """Where a collection was imported from: what is to be imported again, and what was named singly and is gone."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def origins(files: Iterable[ImportedFile], refused: Iterable[str]) -> Origins:
    """Where ``files`` and the paths in quarantine came from; raise ``UsageError`` for a folder that is gone.

    A folder within another one of them goes with it. Of a file that was named singly the folder must be there.
    """
    imported = list(files)
    roots = _outermost({Path(file.root) for file in imported if file.root})
    singly = {file.path for file in imported if not file.root}
    for folder in (*roots, *(Path(path).parent for path in sorted(singly))):
        if not _is_there(folder, stat.S_ISDIR):
            raise UsageError("source.folder_gone", folder=str(folder))
    singly |= {path for path in refused if not any(Path(path).is_relative_to(root) for root in roots)}
    there = {path for path in singly if _is_there(Path(path), stat.S_ISREG)}
    return Origins((*roots, *map(Path, sorted(there))), tuple(sorted(singly - there)))


def origins_of(data: Path, catalogue: Catalogue, collection: str) -> Origins:
    """``origins`` of ``collection``; raise ``UnknownName``, or ``UsageError`` where it was never imported."""
    catalogue.collection(collection)
    files = catalogue.files(collection)
    with rows(data) as state:
        refused = {entry.path for entry in quarantined(state, collection)}
    if not files and not refused:
        raise UsageError("source.never_imported", collection=collection)
    return origins(files.values(), refused - files.keys())


def imported(data: Path, catalogue: Catalogue) -> list[str]:
    """The collections that were imported from files, first priority first."""
    with rows(data) as state:
        refused = {entry.collection for entry in quarantined(state)}
    names = (collection.name for collection in catalogue.collections())
    return [name for name in names if name in refused or catalogue.files(name)]


def unsettle(catalogue: Catalogue, removed: Iterable[Document]) -> None:
    """The files of documents ``removed`` by hand are read again by the next import, which brings them back.

    A file is so whether all it held was removed or a part: to keep a document out, it is withdrawn.
    """
    for collection, source in {(document.collection, document.source) for document in removed}:
        file = catalogue.file(collection, source)
        if not catalogue.of_file(collection, source):
            catalogue.remove_file(collection, source)
        elif file:
            catalogue.put_file(replace(file, recipe=UNSETTLED + unmarked(file.recipe)))


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Those of ``folders`` that are in no other one."""
    kept: list[Path] = []
    for folder in sorted(folders):
        if not any(folder.is_relative_to(outer) for outer in kept):
            kept.append(folder)
    return kept


def _is_there(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether ``path`` exists as that kind; raise ``UsageError`` where that cannot be told: nothing may be removed."""
    try:
        return kind(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError("source.unseen", path=str(path), reason=reason(error)) from None
