"""Opens the files of an import: keeps originals, unpacks archives, and parses ahead in several children.

The content of a file raises ``InputError``, after the items before it, if the file is refused as a whole. An archive
member is an original of its own, parsed like any file, so a citation opens its own page. A member that cannot be read
is a fault of the archive; one without a reader is counted in a note; its documents are called ``member`` or
``member#record``. An archive nested deeper than ``read.archive_depth`` refuses the whole file.

Not covered: manifest facts about single members. Members that a killed import left unpacked are removed with the next
archive.
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
from localmed.ingest.parsing import Parser, rename_in_error
from localmed.ingest.sources import Source
from localmed.library import layout, originals
from localmed.library.originals import Keep

_ENDINGS = sorted(readers.SUFFIXES, key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class Part:
    """A file to read: its original, reader and name; ``member`` is its path in an archive."""

    sha256: str
    reader: str
    name: str
    member: str = ""


Content = Iterator[tuple[Part, SourceRecord | Fault | Message]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A file, its hash ("" if it could not be kept), and its items."""

    source: Source
    sha256: str
    content: Content


@dataclass(frozen=True, slots=True)
class _Step:
    """One part of a file to read, or an ``outcome`` in its place: a fault, a note, or the reason of a refusal."""

    source: Source
    sha256: str
    part: Part
    outcome: Fault | Message | InputError | None = None
    read: bool = True  # False for an archive itself


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
        """``keep`` copies a file to ``<data>/files/<sha256>``; ``reading`` is called before each page is read."""
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
        """Yield each of ``listed``; its content must be consumed before the next."""
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
        yield _Step(source, part.sha256, part, read=False)  # also for an archive without members
        notes: list[Message] = []
        for member in self._unpack(part, 1, notes):
            outcome, step = (member, part) if isinstance(member, Fault) else (None, member)
            yield _Step(source, part.sha256, step, outcome)
        for note in notes:
            yield _Step(source, part.sha256, part, note)

    def _unpack(self, part: Part, depth: int, notes: list[Message]) -> Iterator[Part | Fault]:
        """The members of the archive ``part``, unpacked before the first is yielded; ``notes`` receives those without
        reader.
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
                    parts.append(Fault(place_within(part.member, member.where), member.reason))
                else:
                    parts += self._keep_member(f"{part.member}/{member.key}".lstrip("/"), into / member.file, unread)
        finally:
            shutil.rmtree(into, ignore_errors=True)
        if unread:
            kinds = tuple(kind or message("reader.no_extension") for kind in sorted(unread))
            notes.append(message("import.unread_members", count=unread.total(), name=part.name, kinds=kinds))
        for item in parts:
            if isinstance(item, Part) and item.reader == "archive":
                yield from self._unpack(item, depth + 1, notes)
            else:
                yield item

    def _keep_member(self, member: str, file: Path, unread: Counter[str]) -> list[Part | Fault]:
        name = PurePosixPath(member).name
        if sources.skip_reason(name.lower(), readers.SUFFIXES, self._manifest.files):
            unread[PurePosixPath(member).suffix] += 1
            file.unlink()
            return []
        ending = next((suffix for suffix in _ENDINGS if name.lower().endswith(suffix)), "")
        renamed_file = file.rename(file.with_name(file.name + ending))  # readers recognise a file by its ending
        try:
            reader = readers.name_of(renamed_file, self._manifest.reader)
            sha256 = self._keep(renamed_file, self._settings.read.file_bytes)
        except InputError as error:
            return [Fault(named(member), rename_in_error(error, renamed_file.name, name).messages[0])]
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
                yield from ((step.part, _drop_copy_title(item, step.part)) for item in items)
            else:
                yield from ((step.part, item) for item in self._member(step.part, items))

    def _member(self, part: Part, items: Items) -> Sequence[SourceRecord | Fault]:
        try:
            whole = list(items)
        except InputError as error:
            return [Fault(named(part.member), error.messages[0])]
        return [name_by_member(_drop_copy_title(item, part), part.member, self._manifest.latest) for item in whole]


def _drop_copy_title(item: SourceRecord | Fault, part: Part) -> SourceRecord | Fault:
    """``item`` without a title that its reader took from the name of the copy."""
    if isinstance(item, SourceRecord) and item.title == Path(part.sha256).stem:
        return replace(item, title="")
    return item


def place_within(member: str, where: Message) -> Message:
    """The place ``where`` within an archive member; unchanged for the archive itself."""
    return message("error.within", place=member, what=where) if member else where


def name_by_member(item: SourceRecord | Fault, member: str, latest: bool) -> SourceRecord | Fault:
    """``item`` named by its member; if versions count, a record keeps its own key."""
    if isinstance(item, Fault):
        return Fault(place_within(member, item.where), item.reason)
    path = PurePosixPath(member)
    beside = f"{member}#{item.replaced_by}" if item.key else str(path.parent / item.replaced_by)
    key = item.key if latest and item.key else f"{member}#{item.key}" if item.key else member
    return replace(item, key=key, title=item.title or path.stem, replaced_by=beside if item.replaced_by else "")
