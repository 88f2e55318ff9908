"""Which files an import is about: those under the paths given, each once, and those that earlier imports found there.

Hidden files and editors' lock files (``~$...``) are passed over; links to folders are not followed, and of links to
files only those that stay within the folder given: whoever may write there may not thereby read elsewhere, nor by
swapping a file for a link or a pipe once it was listed. A folder that cannot be listed ends the import: what it holds
would otherwise count as removed.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO, NoReturn

from localmed.domain import Message, message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.ingest import readers
from localmed.ingest.report import Line
from localmed.library.catalogue import ImportedFile
from localmed.process.files import open_regular

READ_BYTES = 2**20  # at a time
LARGE = 256 * 2**10  # bytes; smaller files are parsed in about a second


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, and the folder it was found in ("" when it was named itself)."""

    path: Path
    root: str
    link: bool = False  # when it was listed

    @property
    def name(self) -> str:
        """The path within its folder."""
        return str(self.path)[len(self.root.rstrip("/")) + 1 :] if self.root else self.path.name

    @property
    def bytes(self) -> int:
        """Its size; 0 if it has gone meanwhile."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def content(self) -> Path:
        """Where what stands in it can be looked at."""
        return self.path

    def opened(self, path: Path) -> BinaryIO:
        """``path``, which is its own, opened; raise ``InputError`` for what is not the file that was listed."""
        return open_regular(path, self.root, self.link)

    def sha256(self, most: int) -> str:
        """Its hash; "" if it cannot be read or has more than ``most`` bytes."""
        hasher, left = hashlib.sha256(), most
        try:
            with self.opened(self.path) as stream:
                while piece := stream.read(min(READ_BYTES, left + 1)):
                    left -= len(piece)
                    if left < 0:
                        return ""
                    hasher.update(piece)
        except (OSError, InputError):
            return ""
        return hasher.hexdigest()


def find(
    paths: Iterable[Path], suffixes: tuple[str, ...] = readers.SUFFIXES, patterns: Sequence[str] = ()
) -> tuple[list[Source], list[Line]]:
    """The files under ``paths`` that have a reader, and report lines for those that have none.

    ``patterns`` are patterns of file names (the manifest's ``files``) that take the place of the known extensions; a
    file that was named itself is taken whatever it is called.
    """
    sources: dict[Path, Source] = {}
    skipped: dict[Path, Line] = {}
    for path in map(absolute, paths):
        if not _is_text(str(path)):
            raise UsageError("source.not_utf8")
        if path.is_file():
            sources.setdefault(path, Source(path, "", path.is_symlink()))
        elif not path.is_dir():
            raise InputError("source.missing", path=str(path))
        else:
            for file in sorted(_walk(path)):
                if problem := _unusable(file, path) or unwanted(file.name.lower(), suffixes, patterns):
                    shown = str(file).encode("utf-8", "replace").decode()
                    skipped[file] = Line(shown, "skipped", problem)
                elif file not in sources or not sources[file].root:
                    sources[file] = Source(file, str(path), file.is_symlink())
    return list(sources.values()), list(skipped.values())


def _unusable(file: Path, root: Path) -> Message | None:
    """Why ``file`` under ``root`` cannot be taken, whatever it is called; None if it can."""
    if not _is_text(str(file)):
        return message("source.name_not_utf8")
    if not file.is_file():
        nowhere = file.is_symlink() and not file.exists()
        return message("source.link_nowhere" if nowhere else "source.no_regular")
    out = file.is_symlink() and not file.resolve().is_relative_to(root.resolve())
    return message("source.link_out") if out else None


def largest_first(source: Source) -> int:
    """What sorts large files before the others: one that came last would be parsed while the other children wait."""
    size = source.bytes
    return -size if size >= LARGE else 0


def unwanted(name: str, suffixes: tuple[str, ...], patterns: Sequence[str]) -> Message | None:
    """Why a file of a folder is passed over; None if it is not."""
    if patterns:
        matched = any(fnmatch(name, pattern.lower()) for pattern in patterns)
        return None if matched else message("import.not_in_manifest")
    return None if name.endswith(suffixes) else message("source.no_reader")


def _is_text(name: str) -> bool:
    """Whether a path is UTF-8; names from old Windows systems may not be, and no database takes them."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def absolute(path: Path) -> Path:
    """``path`` from the root and without ``..``, so that a file has one name; links stay as they are."""
    return path.resolve() if ".." in path.parts else path.absolute()


def missing(files: Iterable[ImportedFile], sources: Sequence[Source], roots: Sequence[Path]) -> list[str]:
    """The paths of ``files`` that were found under ``roots`` and are gone; refuse a folder that is empty now."""
    from_folders = [file.path for file in files if file.root]
    present = {str(source.path) for source in sources}
    missing_paths: dict[str, None] = {}
    for root in roots:
        earlier = [path for path in from_folders if Path(path).is_relative_to(root)]
        absent = [path for path in earlier if path not in present]
        if absent and not any(source.path.is_relative_to(root) for source in sources):
            raise UsageError("source.emptied", root=str(root), count=len(earlier))
        missing_paths |= dict.fromkeys(absent)
    return list(missing_paths)


def empty(roots: Iterable[Path], sources: Sequence[Source]) -> list[Line]:
    """A line for each folder that holds nothing to import: more often another folder was meant."""
    bare = [root for root in roots if not any(source.path.is_relative_to(root) for source in sources)]
    return [Line(str(root), "note", message("source.holds_nothing")) for root in bare]


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        folders[:] = [name for name in folders if not _hidden(name)]
        yield from (Path(folder, name) for name in names if not _hidden(name))


def _hidden(name: str) -> bool:
    return name.startswith((".", "~$"))


def _unreadable(error: OSError) -> NoReturn:
    raise UsageError("source.unseen", path=str(error.filename), reason=reason(error)) from None


# --- what an import leaves as it is, though it has changed ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaving:
    """``held`` are hashes of files by path ("": the file stays though it is gone); ``written_since`` is a time."""

    held: Mapping[str, frozenset[str]] = field(default_factory=dict)
    written_since: float = math.inf  # seconds since 1970

    def why(self, source: Source, most: int) -> Message | None:
        """Why ``source`` (of at most ``most`` bytes) is left as it is; None if it is not."""
        hashes = self.held.get(str(source.path), frozenset())
        if hashes and source.sha256(most) in hashes:
            return message("import.held")
        return message("import.being_written") if self._written(source) else None

    def removable(self, paths: Iterable[str]) -> list[str]:
        """Those of ``paths``, which are gone, that may go."""
        return [path for path in paths if "" not in self.held.get(path, ())]

    def _written(self, source: Source) -> bool:
        try:
            return source.path.stat().st_mtime >= self.written_since
        except OSError:
            return False
