"""From the files of an import to what stands in them: kept as originals, unpacked, parsed ahead in several children.

``Opening.files`` yields each file in its order with an iterator of what it holds; that raises ``InputError`` where the
file as a whole is refused, after what was read before. Rules: what is parsed is the copy, never the file, which may
change meanwhile; a member of an archive is taken whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

from localmed.config import Settings
from localmed.domain import Message
from localmed.errors import InputError
from localmed.ingest import readers
from localmed.ingest.ahead import Items, Parsers, Reading, Task
from localmed.ingest.archives import Part, Parts, called
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, SourceRecord, named
from localmed.ingest.parsing import Parser
from localmed.ingest.sources import Source
from localmed.library import originals
from localmed.library.originals import Keep

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


class Opening:
    """Opens the files of one import; a context manager that leaves no child behind."""

    def __init__(self, settings: Settings, manifest: Manifest, keep: Keep, reading: Reading = lambda *_: None) -> None:
        """``keep`` copies a file to ``<data>/files/<sha256>``; ``reading`` is told which page is being read."""
        self._settings, self._manifest, self._keep = settings, manifest, keep
        self._unpacker = Parser()
        self._parsers = Parsers(settings.ingest, manifest.mapping, settings.read, reading=reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._unpacker.close()
        finally:
            self._parsers.close()

    def files(self, sources: Iterable[Source]) -> Iterator[Opened]:
        """Each of ``sources``; its content must be taken before the next."""
        read = self._parsers.read(self._steps(sources), self._task)
        for (source, sha256), steps in groupby(read, lambda pair: (pair[0].source, pair[0].sha256)):
            yield Opened(source, sha256, self._content(steps))

    def _steps(self, sources: Iterable[Source]) -> Iterator[_Step]:
        for source in sources:
            part = Part("", "", source.path.name)
            try:
                reader = readers.name_of(source.path, self._manifest.reader)
                sha256 = self._keep(source.path, self._settings.read.file_bytes, source.opened)
                part = Part(sha256, reader, source.path.name)
                if reader == "archive":
                    yield from self._members(source, part)
                else:
                    yield _Step(source, sha256, part)
            except InputError as error:
                yield _Step(source, part.sha256, part, error)

    def _members(self, source: Source, part: Part) -> Iterator[_Step]:
        parts = Parts(self._settings, self._manifest, self._unpacker, self._keep)
        yield _Step(source, part.sha256, part, read=False)  # also one without members is a file
        for member in parts.members(part):
            outcome, step = (member, part) if isinstance(member, Fault) else (None, member)
            yield _Step(source, part.sha256, step, outcome)
        for note in parts.notes:
            yield _Step(source, part.sha256, part, note)

    def _task(self, step: _Step) -> Task | None:
        if step.outcome is not None or not step.read:
            return None
        copy = self._settings.data / "files" / step.part.sha256
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
