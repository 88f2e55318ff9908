"""The parent's side of parsing: files go to a child process, records and faults come back as they are read.

``Parser.parse`` yields what the reader found and, where the file as a whole failed, raises ``InputError`` (or
``LimitExceeded``, naming the bound) at that point, after the records read before it; the caller decides whether to keep
those. The next call works whatever happened: a child that crashed, hung or was abandoned is replaced. A PDF gets a
child of its own, because its library keeps memory and may be damaged by one file; the other formats share one, which
saves its start-up for each of thousands of small files.

Rules: what the child sends is checked before it is believed; the time allowed is the time spent waiting for the
child, so a slow consumer does not make its file fail, and grows with each page that OCR reads; only regular files below
``file_bytes`` are opened at all; more than ``records`` records end the file; of more than ``faults`` faults the rest
are counted in a last one.

Not covered: a ``Parser`` belongs to the thread that first parses with it (its child dies with that thread) and serves
one file at a time; only ``stop`` may be called from another. Several at once: ``ahead.py``.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from localmed.config import ReadBounds
from localmed.domain import Message, Parameter, errors, message
from localmed.domain.codec import Codec, reachable
from localmed.domain.errors import InputError, LimitExceeded, reason, received
from localmed.ingest import readers
from localmed.ingest.ocr.pages import TRIES
from localmed.ingest.parsed import FILE, Fault, FieldMapping, Item, Member, SourceRecord, Working
from localmed.library.terms import Term
from localmed.process import children

COMMAND = children.command("localmed.ingest.child")

OWN_CHILD = frozenset({"pdf", "docx", "pptx", "xlsx"})  # readers that get a fresh process for every file

# Several children share the cores: a library that starts a thread a core in each of them makes all of them slower.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_LEAST = 2**20  # bytes that a message may have however few characters a record may
_BYTES_A_CHARACTER = 16  # of a message: three of UTF-8, or one and a place of 150 bytes for every line


Reading = Callable[[int, int, bool], None]  # a page (1-based) of so many, and whether OCR reads it


class Parser(AbstractContextManager["Parser"]):
    """Parses files in child processes; a context manager that leaves no child behind."""

    def __init__(self, command: Sequence[str] = COMMAND, reading: Reading = lambda *_: None) -> None:
        """``reading`` is told of each page of a PDF before it is read."""
        self._command, self._reading = tuple(command), reading
        self._child: _Child | None = None
        self._folder: Path | None = None  # the only one that the child may read
        self._starting = threading.Lock()  # between starting a child and ``stop``
        self._stopped = False

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child, if there is one."""
        with self._starting:
            child, self._child = self._child, None
        if child is not None:
            child.kill()

    def stop(self) -> None:
        """From any thread: end the child, and start none again; the file being parsed fails."""
        with self._starting:
            self._stopped = True
            if self._child is not None:
                self._child.end()

    def parse(
        self,
        path: Path,
        reader: str = "",
        mapping: FieldMapping | None = None,
        bounds: ReadBounds | None = None,
        name: str = "",
    ) -> Iterator[SourceRecord | Fault]:
        """Yield the records and faults of ``path`` as they are read; raise ``InputError`` if the file fails.

        ``name`` is what an error calls the file, for a stored copy whose own name says nothing.
        """
        for item in self._named(path, reader, mapping or FieldMapping(), bounds or ReadBounds(), name or path.name):
            if isinstance(item, Term | Member):
                raise InputError("import.terms", name=name or path.name)
            yield item

    def members(self, path: Path, into: Path, bounds: ReadBounds, name: str) -> Iterator[Member | Fault]:
        """Unpack the archive ``path`` into the folder ``into``; yield its members and faults, as ``parse`` does."""
        for item in self._named(path, "archive", FieldMapping(options={"into": str(into)}), bounds, name):
            if isinstance(item, Member | Fault):
                yield item

    def terms(
        self, path: Path, reader: str, mapping: FieldMapping, bounds: ReadBounds, name: str
    ) -> Iterator[Term | Fault]:
        """Yield the terms and faults of ``path``, as ``parse`` does records."""
        for item in self._named(path, reader, mapping, bounds, name):
            if isinstance(item, SourceRecord | Member):
                raise InputError("import.no_terms", name=name)
            yield item

    def _named(self, path: Path, reader: str, mapping: FieldMapping, bounds: ReadBounds, name: str) -> Iterator[Item]:
        try:
            yield from self._parsed(path, reader, mapping, bounds)
        except InputError as error:
            raise renamed(error, path.name, name) from None

    def _parsed(self, path: Path, reader: str, mapping: FieldMapping, bounds: ReadBounds) -> Iterator[Item]:
        _admit(path, bounds)
        name = readers.name_of(path, reader)
        if name in OWN_CHILD or path.absolute().parent != self._folder:
            self.close()
        self._folder = path.absolute().parent
        request = {
            "path": str(path.absolute()),
            "reader": name,
            "fields": dict(mapping.fields),
            "options": dict(mapping.options),
            "bounds": dataclasses.asdict(bounds),
        }
        try:
            child = self._sent(json.dumps(request).encode("ascii") + b"\n", bounds)
            yield from _counted(child.answers(path), path, bounds)
        finally:
            if name in OWN_CHILD or not (self._child and self._child.well):
                self.close()

    def _sent(self, request: bytes, bounds: ReadBounds) -> _Child:
        """A living child that has been sent ``request``."""
        if self._child is not None and self._child.bounds != bounds:
            self.close()
        if self._child is not None:
            try:
                self._child.forget()
                self._child.send(request, bounds.file_seconds)
                return self._child
            except OSError:  # it died while idle
                self.close()
        with self._starting:
            if self._stopped:
                raise InputError("import.stopped")
            child = self._child = _Child(self._command, bounds, self._reading)
        with suppress(OSError):  # one that has ended already says why when it is read from
            child.send(request, bounds.file_seconds)
        return child


class _Child:
    """The process and what it reads."""

    def __init__(self, command: Sequence[str], bounds: ReadBounds, reading: Reading) -> None:
        self.reading = reading
        self.bounds, self._most = bounds, max(_LEAST, bounds.record_characters * _BYTES_A_CHARACTER)
        self._process = children.Child(command, self._most, ONE_THREAD)
        self.send, self.kill, self.end = self._process.send, self._process.kill, self._process.end
        self.forget = self._process.forget
        self._left, self._pages = 0.0, 0  # seconds, of the file's and of the pages' that OCR reads; those pages
        self.well = False  # it has finished a file, and may be given another

    def answers(self, path: Path) -> Iterator[Item]:
        """What the child makes of ``path``, up to its closing message."""
        self._left, self._pages, self.well = self.bounds.file_seconds, 0, False
        while True:
            line = self._line(path)
            try:
                value = json.loads(line)
                if value == ["done"]:
                    self.well = True
                    return
                item = _error(*value) if isinstance(value, list) else received_item(value)
                if isinstance(item, Working):
                    self._work(item)
                    continue
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                raise InputError("import.no_record", name=path.name) from None
            if isinstance(item, InputError):
                # It was the file; but a child that met a limit (memory) is not trusted with another.
                self.well = not isinstance(item, LimitExceeded)
                raise item
            yield item

    def _work(self, working: Working) -> None:
        """Tell of a page; more time if OCR reads it, or tries again; raise ``ValueError`` for more than a file has."""
        self.reading(working.page, working.pages, working.ocr)
        if not working.ocr:
            return
        self._pages += 1
        if self._pages > (TRIES + 1) * self.bounds.pages:  # its lines are compared before it is read
            raise ValueError
        self._left += self.bounds.ocr_page_seconds

    def _line(self, path: Path) -> bytes:
        """The next message; raise ``InputError`` if none comes in the time left or the child has ended."""
        began = time.monotonic()
        try:
            line = self._process.line(self._left) if self._left > 0 else None
        except children.TooLong:
            raise LimitExceeded("import.message_bytes", name=path.name, most=self._most // 2**20) from None
        except BrokenPipeError:
            raise self._ending(path) from None
        if line is None:
            raise LimitExceeded("import.slow", name=path.name, seconds=self.bounds.file_seconds)
        self._left -= time.monotonic() - began
        return line

    def _ending(self, path: Path) -> InputError:
        """Why the child ended in the middle of ``path``."""
        code = self._process.code()
        if code is None:
            return InputError("import.silent", name=path.name)
        if code == -signal.SIGXCPU:
            return LimitExceeded("import.processor", name=path.name, seconds=self.bounds.file_cpu_seconds)
        if code == -signal.SIGKILL:
            return InputError("import.killed", name=path.name)
        return InputError("import.crashed", name=path.name, how=children.outcome(code))


def _admit(path: Path, bounds: ReadBounds) -> None:
    """Refuse what must not even be opened: a pipe or device would never end, a huge file is no document."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError("source.not_regular", name=path.name)
    if status.st_size > bounds.file_bytes:
        raise LimitExceeded("import.file_bytes", name=path.name, most=bounds.file_bytes)


def _counted(items: Iterator[Item], path: Path, bounds: ReadBounds) -> Iterator[Item]:
    """``items`` with the bounds on their number kept."""
    records = faults = 0
    for item in items:
        if isinstance(item, Fault):
            faults += 1
            if faults > bounds.faults:
                continue
        elif (records := records + 1) > bounds.records:
            raise LimitExceeded("import.records", name=path.name, most=bounds.records)
        yield item
    if faults > bounds.faults:
        yield Fault(FILE, message("import.more_faults", count=faults - bounds.faults))


class _Received(Codec):
    """Reads what another process wrote: its messages are cut short."""

    def decode(self, value: Any, kind: Any = Any) -> Any:
        """See ``Codec``."""
        return received(value) if kind is Message else super().decode(value, kind)


_CODEC = _Received(reachable(Item | Working))


def received_item(value: Any) -> Item | Working:
    """What the child's message holds; raise ``ValueError`` or ``TypeError`` where it is none of that."""
    item: Item | Working = _CODEC.decode(value)
    if isinstance(item, Member) and not item.file.isdecimal():  # whoever has taken the child over names no other file
        raise ValueError
    if isinstance(item, SourceRecord):
        lines = (line for block in item.blocks for line in block.lines)
        if not all(line.ocr is None or 0 <= line.ocr <= 1 for line in lines):
            raise ValueError
    elif not isinstance(item, Term | Member | Fault | Working):
        raise TypeError
    return item


def _error(kind: str, entry: Any) -> InputError:
    error = errors.from_json(entry, InputError)
    if kind != "error" or not isinstance(error, InputError):
        raise TypeError
    return error


def renamed(error: InputError, stored: str, name: str) -> InputError:
    """``error`` of a copy called ``stored``, said of the file that people call ``name``."""
    return type(error)(*(_called(part, stored, name) for part in error.messages))


def _called(part: Message, stored: str, name: str) -> Message:
    return Message(part.code, tuple((key, _calling(value, stored, name)) for key, value in part.parameters))


def _calling(value: Parameter, stored: str, name: str) -> Parameter:
    if isinstance(value, Message):
        return _called(value, stored, name)
    if isinstance(value, tuple):
        return tuple(_calling(item, stored, name) for item in value)
    return value.replace(stored, name) if isinstance(value, str) else value
