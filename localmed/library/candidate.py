"""What one generation would change of another: for whoever decides whether it shall be served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from localmed.domain import Document
from localmed.library.catalogue import FILE, Catalogue, ImportedFile


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that one generation has and another has not, or has other bytes of ("" if the file is to go)."""

    collection: str
    path: str
    sha256: str


def differences(before: Path, after: Path) -> list[Difference]:
    """The files that generation ``after`` has read and ``before`` has not so, and those that it has no longer."""
    old, new = _files(before), _files(after)
    changed = [Difference(*key, file.sha256) for key, file in new.items() if old.get(key, None) != file]
    return changed + [Difference(*key, "") for key in old if key not in new]


Pair = tuple[Document | None, Document | None]  # a document before and after, None where there is none


def document_changes(before: Path, after: Path, most: int) -> list[Pair]:
    """The documents of changed files as generations ``before`` and ``after`` have them, the first ``most``."""
    files = dict.fromkeys((one.collection, one.path) for one in differences(before, after))

    def pairs() -> Iterator[Pair]:
        with closing(Catalogue(before / FILE)) as old, closing(Catalogue(after / FILE)) as new:
            for file in files:
                was, now = ({one.id: one for one in catalogue.of_file(*file)} for catalogue in (old, new))
                for name in sorted({*was, *now}):
                    if was.get(name) != now.get(name):
                        yield was.get(name), now.get(name)

    return list(islice(pairs(), most))


def only_empty_collections(before: Path, after: Path) -> bool:
    """Whether all that generation ``after`` has beside ``before`` are collections without documents."""
    with closing(Catalogue(before / FILE)) as old, closing(Catalogue(after / FILE)) as new:
        known = old.collections()
        made = [it for it in new.collections() if it not in known]
        beside = [it for it in new.collections() if it in known]
        return bool(made) and beside == known and new.documents() == old.documents()


def _files(generation: Path) -> dict[tuple[str, str], ImportedFile]:
    with closing(Catalogue(generation / FILE)) as catalogue:
        names = [collection.name for collection in catalogue.collections()]
        return {(name, path): file for name in names for path, file in catalogue.files(name).items()}
