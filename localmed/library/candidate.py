"""What one generation would change of another: for whoever decides whether it shall be served."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

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


def _files(generation: Path) -> dict[tuple[str, str], ImportedFile]:
    with closing(Catalogue(generation / FILE)) as catalogue:
        names = [collection.name for collection in catalogue.collections()]
        return {(name, path): file for name in names for path, file in catalogue.files(name).items()}
