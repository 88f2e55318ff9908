"""The parent's side of parsing: sends files to a child process and yields records and faults as they are read.

If a file fails, ``Parser.parse`` raises ``InputError`` (``LimitExceeded`` names the bound) after the records before
it; the caller decides whether to keep those. A child that crashed, hung or was abandoned is replaced. Each PDF and
Office file gets its own child, because their libraries keep memory and one file may damage them; other formats share
one, which saves start-ups. Only the time spent waiting for the child counts, and each page read by OCR extends it.

A ``Parser`` belongs to the thread that first parses with it (its child dies with that thread) and serves one file at a
time; only ``stop`` may be called from another thread.
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

# Several children share the cores: one thread a core in each of them would slow them all down.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_LEAST = 2**20  # bytes that a message may always have
_BYTES_A_CHARACTER = 16  # of a message: three of UTF-8, or one and a place of 150 bytes for every line

Reading = Callable[[int, int, bool], None]  # (page from 1, number of pages, by OCR)


class Parser(AbstractContextManager["Parser"]):
    """Parses files in child processes; a context manager that leaves no child behind."""

    def __init__(self, command: Sequence[str] = COMMAND, reading: Reading = lambda *_: None) -> None:
        """``reading`` is called before each page of a PDF is read."""
        self._command, self._reading = tuple(command), reading
        self._child: _Child | None = None
        self._folder: Path | None = None  # the only folder that the child may read
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
        """End the child and start no other, from any thread; the file being parsed fails."""
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
        """Yield the items of ``path``, called ``name`` in errors, as they are read; raise ``InputError`` if the file
        fails.
        """
        name = name or path.name
        for item in self._items(path, reader, mapping or FieldMapping(), bounds or ReadBounds(), name):
            if isinstance(item, Term | Member):
                raise InputError("import.terms", name=name)
            yield item

    def members(self, path: Path, into: Path, bounds: ReadBounds, name: str) -> Iterator[Member | Fault]:
        """Unpack the archive ``path`` into ``into``; yield its members and faults as ``parse`` does."""
        for item in self._items(path, "archive", FieldMapping(options={"into": str(into)}), bounds, name):
            if isinstance(item, Member | Fault):
                yield item

    def terms(
        self, path: Path, reader: str, mapping: FieldMapping, bounds: ReadBounds, name: str
    ) -> Iterator[Term | Fault]:
        """Yield the terms and faults of ``path``, as ``parse`` does records."""
        for item in self._items(path, reader, mapping, bounds, name):
            if isinstance(item, SourceRecord | Member):
                raise InputError("import.no_terms", name=name)
            yield item

    def _items(self, path: Path, reader: str, mapping: FieldMapping, bounds: ReadBounds, name: str) -> Iterator[Item]:
        own_child = False
        try:
            _admit(path, bounds)
            reader = readers.name_of(path, reader)
            own_child = reader in OWN_CHILD
            if own_child or path.absolute().parent != self._folder:
                self.close()
            self._folder = path.absolute().parent
            request = {
                "path": str(path.absolute()),
                "reader": reader,
                "fields": dict(mapping.fields),
                "options": dict(mapping.options),
                "bounds": dataclasses.asdict(bounds),
            }
            child = self._send(json.dumps(request).encode("ascii") + b"\n", bounds)
            yield from _bounded(child.answers(path), path, bounds)
        except InputError as error:
            raise rename_in_error(error, path.name, name) from None
        finally:
            if own_child or not (self._child and self._child.well):
                self.close()

    def _send(self, request: bytes, bounds: ReadBounds) -> _Child:
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
        with suppress(OSError):  # if it has ended, reading from it raises the reason
            child.send(request, bounds.file_seconds)
        return child


class _Child:
    def __init__(self, command: Sequence[str], bounds: ReadBounds, reading: Reading) -> None:
        self.reading = reading
        self.bounds, self._most = bounds, max(_LEAST, bounds.record_characters * _BYTES_A_CHARACTER)
        self._process = children.Child(command, self._most, ONE_THREAD)
        self.send, self.kill, self.end = self._process.send, self._process.kill, self._process.end
        self.forget = self._process.forget
        self._left, self._pages = 0.0, 0  # seconds left for the file; pages that OCR has read
        self.well = False  # it has finished a file and may parse another

    def answers(self, path: Path) -> Iterator[Item]:
        """Yield what the child reads from ``path``, until its closing message."""
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
                self.well = not isinstance(item, LimitExceeded)  # a child that met a limit may be damaged
                raise item
            yield item

    def _work(self, working: Working) -> None:
        """Report a page. OCR adds to the time allowed; raise ``ValueError`` for more OCR pages than a file may have."""
        self.reading(working.page, working.pages, working.ocr)
        if not working.ocr:
            return
        self._pages += 1
        if self._pages > (TRIES + 1) * self.bounds.pages:  # one more: its lines are compared before it is read
            raise ValueError
        self._left += self.bounds.ocr_page_seconds

    def _line(self, path: Path) -> bytes:
        """The next message; raise ``InputError`` if it is late or the child has ended."""
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
        code = self._process.code()
        if code is None:
            return InputError("import.silent", name=path.name)
        if code == -signal.SIGXCPU:
            return LimitExceeded("import.processor", name=path.name, seconds=self.bounds.file_cpu_seconds)
        if code == -signal.SIGKILL:
            return InputError("import.killed", name=path.name)
        return InputError("import.crashed", name=path.name, how=children.outcome(code))


def _admit(path: Path, bounds: ReadBounds) -> None:
    """Refuse a file that must not be opened: a pipe or device never ends, a huge file is no document."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError("source.not_regular", name=path.name)
    if status.st_size > bounds.file_bytes:
        raise LimitExceeded("import.file_bytes", name=path.name, most=bounds.file_bytes)


def _bounded(items: Iterator[Item], path: Path, bounds: ReadBounds) -> Iterator[Item]:
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
    def decode(self, value: Any, kind: Any = Any) -> Any:
        """See ``Codec.decode``."""
        return received(value) if kind is Message else super().decode(value, kind)


_CODEC = _Received(reachable(Item | Working))


def received_item(value: Any) -> Item | Working:
    """The item in a message of the child; raise ``ValueError`` or ``TypeError`` if it is none."""
    item: Item | Working = _CODEC.decode(value)
    if isinstance(item, Member) and not item.file.isdecimal():  # a subverted child must not name other files
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


def rename_in_error(error: InputError, stored: str, name: str) -> InputError:
    """``error`` with the name of the stored copy replaced by the file's own name."""

    def change(value: Parameter) -> Parameter:
        if isinstance(value, Message):
            return change_message(value)
        if isinstance(value, tuple):
            return tuple(map(change, value))
        return value.replace(stored, name) if isinstance(value, str) else value

    def change_message(part: Message) -> Message:
        return Message(part.code, tuple((key, change(value)) for key, value in part.parameters))

    return type(error)(*map(change_message, error.messages))
