"""From the files of an import to what stands in them: kept as originals, unpacked, parsed ahead in several children.

``Opening.files`` yields each file in its order with an iterator of what it holds; that raises ``InputError`` where the
file as a whole is refused, after what was read before. What is parsed is the copy, never the file, which may change
meanwhile.

A file consists of itself, or of the members of an archive, each kept as an original of its own: a member has a child
process, limits and an original like any file, so that one bad member harms no other and a citation opens the member's
own page. Rules: a member that cannot be read is a fault of the archive; one without a reader is counted in a note; a
member is taken whole or not at all; its documents are called ``member`` or ``member#record`` within the archive's file.
Archives in archives are read down to ``read.archive_depth``; one below refuses the whole.

Not covered: facts of a manifest about single members; what was unpacked stands in the data folder for as long as the
archive is read, and what a killed import left there goes with the next archive.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path, PurePosixPath

from localmed.config import Settings
from localmed.domain import Message, message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest import readers, sources
from localmed.ingest.ahead import Items, Parsers, Reading, Task
from localmed.ingest.engine import Engine, FarParsers
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, SourceRecord, named
from localmed.ingest.parsing import Parser, renamed
from localmed.ingest.sources import Source
from localmed.library import layout, originals
from localmed.library.originals import Keep

_ENDINGS = sorted(readers.SUFFIXES, key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A file to be read: an original, its reader, and what it is called; ``member`` is its path in an archive."""

    sha256: str
    reader: str
    name: str
    member: str = ""


Content = Iterator[tuple[Part, SourceRecord | Fault | Message]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A file: its hash ("" if it could not be kept), and what stands in it."""

    source: Source
    sha256: str
    content: Content


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to read of a file, or what was found in its place: a fault, a note, why the file is refused."""

    source: Source
    sha256: str
    part: Part
    outcome: Fault | Message | InputError | None = None
    read: bool = True  # False: nothing is, as of an archive itself


class Opening(AbstractContextManager["Opening"]):
    """Opens the files of one import; a context manager that leaves no child behind."""

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        keep: Keep,
        reading: Reading = lambda *_: None,
        engine: Engine | None = None,
    ) -> None:
        """``keep`` copies a file to ``<data>/files/<sha256>``; ``reading`` is told which page is being read.

        The workers of ``engine`` parse, if it is given.
        """
        self._settings, self._manifest, self._keep = settings, manifest, keep
        self._unpacker = Parser()
        mapping, bounds = manifest.mapping, settings.read
        self._parsers = (
            FarParsers(engine.workers, settings.ingest, mapping, bounds, reading)
            if engine
            else Parsers(settings.ingest, mapping, bounds, reading=reading)
        )

    def __exit__(self, *raised: object) -> None:
        try:
            self._unpacker.close()
        finally:
            self._parsers.close()

    def files(self, listed: Iterable[Source]) -> Iterator[Opened]:
        """Each of ``listed``; its content must be taken before the next."""
        read = self._parsers.read(self._steps(listed), self._task)
        for (source, sha256), steps in groupby(read, lambda pair: (pair[0].source, pair[0].sha256)):
            yield Opened(source, sha256, self._content(steps))

    def _steps(self, listed: Iterable[Source]) -> Iterator[_Step]:
        for source in listed:
            part = Part("", "", source.path.name)
            try:
                reader = readers.name_of(source.path, self._manifest.reader, source.content)
                sha256 = self._keep(source.path, self._settings.read.file_bytes, source.opened)
                part = Part(sha256, reader, source.path.name)
                if reader == "archive":
                    yield from self._members(source, part)
                else:
                    yield _Step(source, sha256, part)
            except InputError as error:
                yield _Step(source, part.sha256, part, error)

    def _members(self, source: Source, part: Part) -> Iterator[_Step]:
        yield _Step(source, part.sha256, part, read=False)  # also one without members is a file
        notes: list[Message] = []
        for member in self._unpacked(part, 1, notes):
            outcome, step = (member, part) if isinstance(member, Fault) else (None, member)
            yield _Step(source, part.sha256, step, outcome)
        for note in notes:
            yield _Step(source, part.sha256, part, note)

    def _unpacked(self, part: Part, depth: int, notes: list[Message]) -> Iterator[Part | Fault]:
        """The members of the archive ``part`` that have a reader, and the faults of those that cannot be unpacked.

        All of it is unpacked before the first is handed over; what has no reader is told in ``notes``.
        """
        if depth > self._settings.read.archive_depth:
            raise LimitExceeded("import.archive_depth", name=part.name, most=self._settings.read.archive_depth)
        into = self._settings.data / layout.UNPACKED  # on the same disk as the originals
        stored = self._settings.data / layout.FILES / part.sha256
        parts: list[Part | Fault] = []
        unread: Counter[str] = Counter()
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(mode=0o700)
        try:
            for member in self._unpacker.members(stored, into, self._settings.read, part.name):
                if isinstance(member, Fault):
                    parts.append(Fault(within(part.member, member.where), member.reason))
                else:
                    parts += self._kept(f"{part.member}/{member.key}".lstrip("/"), into / member.file, unread)
        finally:
            shutil.rmtree(into, ignore_errors=True)
        if unread:
            kinds = tuple(kind or message("reader.no_extension") for kind in sorted(unread))
            notes.append(message("import.unread_members", count=unread.total(), name=part.name, kinds=kinds))
        for item in parts:
            if isinstance(item, Part) and item.reader == "archive":
                yield from self._unpacked(item, depth + 1, notes)
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
        renamed_file = file.rename(file.with_name(file.name + ending))  # readers tell a file by its ending
        try:
            reader = readers.name_of(renamed_file, self._manifest.reader)
            sha256 = self._keep(renamed_file, self._settings.read.file_bytes)
        except InputError as error:
            return [Fault(named(member), renamed(error, renamed_file.name, name).messages[0])]
        finally:
            renamed_file.unlink()
        return [Part(sha256, reader, name, member)]

    def _task(self, step: _Step) -> Task | None:
        if step.outcome is not None or not step.read:
            return None
        copy = self._settings.data / layout.FILES / step.part.sha256
        scans = originals.scans_of(self._settings.data, step.part.sha256) if step.part.reader == "pdf" else None
        return Task(copy, step.part.reader, step.part.name, copy.stat().st_size, scans)

    def _content(self, steps: Iterable[tuple[_Step, Items]]) -> Content:
        for step, items in steps:
            if isinstance(step.outcome, InputError):
                raise step.outcome
            if step.outcome:
                yield step.part, step.outcome
            elif not step.part.member:
                yield from ((step.part, _untitled(item, step.part)) for item in items)
            else:
                yield from ((step.part, item) for item in self._member(step.part, items))

    def _member(self, part: Part, items: Items) -> Sequence[SourceRecord | Fault]:
        """What a member of an archive holds, or why it is refused."""
        try:
            whole = list(items)
        except InputError as error:
            return [Fault(named(part.member), error.messages[0])]
        return [called(_untitled(item, part), part.member, self._manifest.latest) for item in whole]


def _untitled(item: SourceRecord | Fault, part: Part) -> SourceRecord | Fault:
    """``item`` without the title that its reader took from the name of the copy."""
    if isinstance(item, SourceRecord) and item.title == Path(part.sha256).stem:
        return replace(item, title="")
    return item


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
