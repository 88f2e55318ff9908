"""The files of an import, under the given paths or found there by earlier imports, and the report on each of them.

Hidden files and editors' lock files (``~$...``) are skipped. Links to folders are not followed, and links to files only
within the given folder: whoever may write there must not thereby read elsewhere, nor by swapping a listed file for a
link or a pipe. A folder that cannot be listed ends the import, because its files would otherwise count as removed.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO, NoReturn

from localmed.domain import Message, message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.ingest import readers
from localmed.library.catalogue import ImportedFile
from localmed.process.files import open_regular

OUTCOMES = ("read", "unchanged", "quarantined", "skipped", "removed", "left", "note")


@dataclass(frozen=True, slots=True)
class Line:
    """A file or a part of it, its outcome (one of ``OUTCOMES``), and the reason."""

    path: str
    outcome: str
    detail: Message | None = None
    documents: int = 0
    passages: int = 0


@dataclass(slots=True)
class Report:
    """The result of an import; ``generation`` is 0 if nothing changed."""

    collection: str
    lines: list[Line] = field(default_factory=list)
    generation: int = 0
    encoded: int = 0

    def count(self, outcome: str) -> int:
        """The number of lines with this outcome."""
        return sum(line.outcome == outcome for line in self.lines)

    @property
    def counts(self) -> dict[str, int]:
        """Lines by outcome, and the documents and passages read."""
        read = [line for line in self.lines if line.outcome == "read"]
        return {outcome: self.count(outcome) for outcome in OUTCOMES} | {
            "documents": sum(line.documents for line in read),
            "passages": sum(line.passages for line in read),
            "encoded": self.encoded,
        }

    @property
    def tally(self) -> str:
        """The counts that are not 0, on one line."""
        return " ".join(f"{name}={count}" for name, count in self.counts.items() if count)


READ_BYTES = 2**20  # at a time
LARGE = 256 * 2**10  # bytes; smaller files are parsed in about a second
_HIDDEN = (".", "~$")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import, and the folder in which it was found ("" if it was named itself)."""

    path: Path
    root: str
    link: bool = False  # it was one when it was listed

    @property
    def name(self) -> str:
        """The path within its folder."""
        return str(self.path)[len(self.root.rstrip("/")) + 1 :] if self.root else self.path.name

    @property
    def bytes(self) -> int:
        """Its size; 0 if it has gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    @property
    def content(self) -> Path:
        """The file to inspect for its format."""
        return self.path

    def opened(self, path: Path) -> BinaryIO:
        """Open ``path``, one of its own files; raise ``InputError`` if it is not the listed file."""
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


def find_sources(
    paths: Iterable[Path], suffixes: tuple[str, ...] = readers.SUFFIXES, patterns: Sequence[str] = ()
) -> tuple[list[Source], list[Line]]:
    """The files under ``paths`` that have a reader, and report lines for the others.

    ``patterns`` (the manifest's ``files``) replace the known extensions; a file named itself is always taken.
    """
    sources: dict[Path, Source] = {}
    skipped: dict[Path, Line] = {}
    for path in map(absolute_path, paths):
        if not _is_text(str(path)):
            raise UsageError("source.not_utf8")
        if path.is_file():
            sources.setdefault(path, Source(path, "", path.is_symlink()))
        elif not path.is_dir():
            raise InputError("source.missing", path=str(path))
        else:
            for file in sorted(_walk(path)):
                if problem := _unusable(file, path) or skip_reason(file.name.lower(), suffixes, patterns):
                    shown = str(file).encode("utf-8", "replace").decode()
                    skipped[file] = Line(shown, "skipped", problem)
                elif file not in sources or not sources[file].root:
                    sources[file] = Source(file, str(path), file.is_symlink())
    return list(sources.values()), list(skipped.values())


def _unusable(file: Path, root: Path) -> Message | None:
    """Why ``file`` under ``root`` cannot be taken, whatever its name; None if it can."""
    if not _is_text(str(file)):
        return message("source.name_not_utf8")
    if not file.is_file():
        nowhere = file.is_symlink() and not file.exists()
        return message("source.link_nowhere" if nowhere else "source.no_regular")
    out = file.is_symlink() and not file.resolve().is_relative_to(root.resolve())
    return message("source.link_out") if out else None


def largest_first(source: Source) -> int:
    """A sort key that puts large files first: parsed last, they would keep the other children waiting."""
    size = source.bytes
    return -size if size >= LARGE else 0


def skip_reason(name: str, suffixes: tuple[str, ...], patterns: Sequence[str]) -> Message | None:
    """Why a file of a folder is skipped; None if it is not."""
    if patterns:
        matched = any(fnmatch(name, pattern.lower()) for pattern in patterns)
        return None if matched else message("import.not_in_manifest")
    return None if name.endswith(suffixes) else message("source.no_reader")


def _is_text(name: str) -> bool:
    """Whether a path is UTF-8; names from old Windows systems may not be, and no database accepts them."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def absolute_path(path: Path) -> Path:
    """``path`` from the root and without ``..``, so that a file has one name; links stay."""
    return path.resolve() if ".." in path.parts else path.absolute()


def find_missing(files: Iterable[ImportedFile], sources: Sequence[Source], roots: Sequence[Path]) -> list[str]:
    """The paths of ``files`` that were found under ``roots`` and are gone; refuse a folder that is now empty."""
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


def note_empty(roots: Iterable[Path], sources: Sequence[Source]) -> list[Line]:
    """A line for each folder with nothing to import: often a mistaken folder."""
    bare = [root for root in roots if not any(source.path.is_relative_to(root) for source in sources)]
    return [Line(str(root), "note", message("source.holds_nothing")) for root in bare]


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from (Path(folder, name) for name in names if not name.startswith(_HIDDEN))


def _unreadable(error: OSError) -> NoReturn:
    raise UsageError("source.unseen", path=str(error.filename), reason=reason(error)) from None


# --- changed files that are left as they are --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaving:
    """Files to leave unchanged: ``held`` are their hashes by path ("": the file stays though it is gone)."""

    held: Mapping[str, frozenset[str]] = field(default_factory=dict)
    written_since: float = math.inf  # seconds since 1970; files changed since are left

    def why(self, source: Source, most: int) -> Message | None:
        """Why ``source`` (of at most ``most`` bytes) is left unchanged; None if it is not."""
        hashes = self.held.get(str(source.path), frozenset())
        if hashes and source.sha256(most) in hashes:
            return message("import.held")
        with suppress(OSError):
            if source.path.stat().st_mtime >= self.written_since:
                return message("import.being_written")
        return None

    def removable(self, paths: Iterable[str]) -> list[str]:
        """Those of ``paths``, which are gone, that may be removed."""
        return [path for path in paths if "" not in self.held.get(path, ())]
