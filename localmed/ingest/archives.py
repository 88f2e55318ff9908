"""What a file of an import consists of: itself, or the members of an archive, each kept as an original of its own.

A member has a child process, limits and an original like any file, so that one bad member harms no other and a
citation opens the member's own page. Rules: a member that cannot be read is a fault of the archive; one without a
reader is counted in a note; a member is taken whole or not at all; its documents are called ``member`` or
``member#record`` within the archive's file. Archives in archives are read down to ``read.archive_depth``; one below
refuses the whole.

Not covered: facts of a manifest about single members; what was unpacked stands in the data folder for as long as the
archive is read, and what a killed import left there goes with the next archive.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from localmed.config import Settings
from localmed.domain import Message, message
from localmed.errors import InputError, LimitExceeded
from localmed.ingest import readers, sources
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, SourceRecord, named
from localmed.ingest.parsing import Parser, renamed
from localmed.library.originals import Keep

_ENDINGS = sorted(readers.SUFFIXES, key=len, reverse=True)
FOLDER = "unpacked"  # in the data folder, on the same disk as the originals


@dataclass(frozen=True, slots=True)
class Part:
    """A file to be read: an original, its reader, and what it is called; ``member`` is its path in an archive."""

    sha256: str
    reader: str
    name: str
    member: str = ""


class Parts:
    """Unpacks an archive and the archives in it."""

    def __init__(self, settings: Settings, manifest: Manifest, parser: Parser, keep: Keep) -> None:
        """``keep`` makes a file of at most that many bytes an original and returns its sha256."""
        self._settings, self._manifest, self._parser, self._keep = settings, manifest, parser, keep
        self.notes: list[Message] = []

    def members(self, part: Part) -> Iterator[Part | Fault]:
        """The members of the archive ``part`` that have a reader, and the faults of those that cannot be unpacked."""
        self.notes = []
        yield from self._members(part, 1)

    def _members(self, part: Part, depth: int) -> Iterator[Part | Fault]:
        """The members of the archive ``part``; all of it is unpacked before the first is handed over."""
        if depth > self._settings.read.archive_depth:
            raise LimitExceeded("import.archive_depth", name=part.name, most=self._settings.read.archive_depth)
        into = self._settings.data / FOLDER
        stored = self._settings.data / "files" / part.sha256
        parts: list[Part | Fault] = []
        unread: Counter[str] = Counter()
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(mode=0o700)
        try:
            for member in self._parser.members(stored, into, self._settings.read, part.name):
                if isinstance(member, Fault):
                    parts.append(Fault(within(part.member, member.where), member.reason))
                else:
                    parts += self._kept(_within(part.member, member.name), into / member.file, unread)
        finally:
            shutil.rmtree(into, ignore_errors=True)
        if unread:
            kinds = tuple(kind or message("reader.no_extension") for kind in sorted(unread))
            self.notes.append(message("import.unread_members", count=unread.total(), name=part.name, kinds=kinds))
        for item in parts:
            if isinstance(item, Part) and item.reader == "archive":
                yield from self._members(item, depth + 1)
            else:
                yield item

    def _kept(self, member: str, file: Path, unread: Counter[str]) -> list[Part | Fault]:
        """One unpacked file as an original; nothing where it has no reader."""
        name = PurePosixPath(member).name
        if sources.unwanted(name.lower(), readers.SUFFIXES, self._manifest.files):
            unread[PurePosixPath(member).suffix] += 1
            file.unlink()
            return []
        ending = next((suffix for suffix in _ENDINGS if name.lower().endswith(suffix)), "")
        called = file.rename(file.with_name(file.name + ending))  # readers tell a file by its ending
        try:
            reader = readers.name_of(called, self._manifest.reader)
            sha256 = self._keep(called, self._settings.read.file_bytes)
        except InputError as error:
            return [Fault(named(member), renamed(error, called.name, name).messages[0])]
        finally:
            called.unlink()
        return [Part(sha256, reader, name, member)]


def _within(archive: str, member: str) -> str:
    return f"{archive}/{member}" if archive else member


def within(member: str, where: Message) -> Message:
    """The place ``where`` of the member of an archive; that of the archive itself as it is."""
    return message("error.within", place=member, what=where) if member else where


def called(item: SourceRecord | Fault, member: str, latest: bool) -> SourceRecord | Fault:
    """``item`` called by the member it stands in; where versions count, a record is called as it is anywhere."""
    if isinstance(item, Fault):
        return Fault(within(member, item.where), item.reason)
    path = PurePosixPath(member)
    beside = f"{member}#{item.replaced_by}" if item.key else str(path.parent / item.replaced_by)
    key = item.key if latest and item.key else f"{member}#{item.key}" if item.key else member
    return replace(item, key=key, title=item.title or path.stem, replaced_by=beside if item.replaced_by else "")
