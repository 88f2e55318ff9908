"""Parses files in several children at once, ahead of the consumer; results come in the order of the tasks.

Each child belongs to one thread, which starts it, reads from it and ends it (the kernel ends a child with the thread
that started it). At most ``ahead_files`` files, or ``WAITING_BYTES`` of them, wait before their turn, and their
records take at most ``ahead_bytes``. The task whose turn it is may use as much again and always goes on; other
children wait at their pipes, which does not count as time of their files. ``close`` (also on Ctrl-C) ends every child
at once. A task that hangs costs its own time; others go on while there is room.

Not covered: the size of one record, which ``read.record_characters`` bounds.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

import psutil

from localmed.config import IngestSettings, ReadBounds
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.parsing import COMMAND, Parser
from localmed.process import hooks

MOST_CHILDREN = 4  # by default: the one process that encodes and writes cannot keep up with more
CHILD_BYTES = 3 * 2**30  # free memory per child by default: a page of a scan takes up to 1.9 GiB
LINE_BYTES = 250  # memory of a placed line besides its text, measured
RECORD_BYTES = 1_000  # memory of a record besides its lines
WAITING_BYTES = 2 * 2**30  # of copied files before their turn: four of the largest that are read
LOOK = 0.5  # seconds between two checks whether the import was cancelled

Request = TypeVar("Request")
Begun = TypeVar("Begun")
Items = Iterator[SourceRecord | Fault]
Reading = Callable[[str, int, int, bool], None]  # (file, page from 1 or 0, number of pages, by OCR)


@dataclass(frozen=True, slots=True)
class Task:
    """A file to parse: its path, reader, name in errors, size, and the folder for OCR results."""

    path: Path
    reader: str
    name: str
    bytes: int = 0
    scans: Path | None = None


def children_of(settings: IngestSettings) -> int:
    """The number of parsing children: as set, else one per core and ``CHILD_BYTES`` free, at most ``MOST_CHILDREN``."""
    memory = psutil.virtual_memory().available
    return settings.children or max(1, min(MOST_CHILDREN, len(os.sched_getaffinity(0)), memory // CHILD_BYTES))


class _Job:
    """A task and its results so far; guarded by the lock of ``Parsers``."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.items: deque[tuple[SourceRecord | Fault, int]] = deque()
        self.bytes = 0
        self.done = self.abandoned = False
        self.error: BaseException | None = None
        self.page: tuple[int, int, bool] | None = None  # (page being read, number of pages, by OCR)


class Parsers(AbstractContextManager["Parsers"]):
    """Parses tasks in child processes; a context manager that leaves no child and no thread behind."""

    def __init__(
        self,
        settings: IngestSettings,
        mapping: FieldMapping,
        bounds: ReadBounds,
        command: Sequence[str] = COMMAND,
        reading: Reading = lambda *_: None,
    ) -> None:
        """``reading`` is called, in the consumer's thread, before each page of the file whose turn it is."""
        self._reading = reading
        self._settings, self._mapping, self._bounds, self._command = settings, mapping, bounds, command
        self._changed = threading.Condition()
        self._turn: _Job | None = None
        self._bytes = 0  # of all jobs' items
        self._closed = False
        self._parsers: list[Parser] = []  # one a thread
        self._own = threading.local()  # a thread's parser and job
        self._threads = ThreadPoolExecutor(children_of(settings), "parser", self._start_thread)

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children and their threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for parser in self._parsers:
            parser.stop()
        self._threads.shutdown(cancel_futures=True)
        for parser in self._parsers:
            parser.close()

    def read(
        self, requests: Iterable[Request], task_of: Callable[[Request], Task | None]
    ) -> Iterator[tuple[Request, Items]]:
        """Yield ``requests``, read ahead, in order with the items of their tasks; unconsumed items are dropped."""
        for request, job in begin_ahead(requests, task_of, self._begin, self._settings):
            yield request, self._items(job) if job else iter(())
            if job:
                with self._changed:
                    job.abandoned = True
                    while job.items:
                        self._pop(job)
                    self._changed.notify_all()

    # --- the consumer's side ---------------------------------------------------------------------------------------

    def _begin(self, task: Task) -> _Job:
        job = _Job(task)
        self._threads.submit(self._work, job)
        return job

    def _items(self, job: _Job) -> Items:
        """Wait for the items of ``job`` and yield them; raise its error at the end."""
        self._reading(job.task.name, *(job.page or (0, 0, False)))
        seen = job.page
        while True:
            with self._changed:
                self._turn = job
                self._changed.notify_all()
                while not (job.items or job.done or job.page != seen):
                    self._changed.wait(LOOK)
                    hooks.check()
                if job.done and not job.items:
                    break
                seen, item = job.page, self._pop(job) if job.items else None
            if item is not None:
                yield item
            elif seen:
                self._reading(job.task.name, *seen)
        if job.error is not None:
            raise job.error

    def _pop(self, job: _Job) -> SourceRecord | Fault:
        item, size = job.items.popleft()
        job.bytes -= size
        self._bytes -= size
        return item

    # --- a child's thread -----------------------------------------------------------------------------------------

    def _start_thread(self) -> None:
        with self._changed:
            self._own.parser = Parser(self._command, self._announce)
            self._parsers.append(self._own.parser)

    def _announce(self, *page: *tuple[int, int, bool]) -> None:
        with self._changed:
            self._own.job.page = page
            self._changed.notify_all()

    def _work(self, job: _Job) -> None:
        if self._closed:
            return
        self._own.job = job
        try:
            with closing(parse_task(self._own.parser, job.task, self._mapping, self._bounds)) as items:
                for item in items:
                    if not self._store(job, item):
                        break
        except BaseException as raised:  # raised again in the consumer's thread
            job.error = raised
        with self._changed:
            job.done = True
            self._changed.notify_all()

    def _store(self, job: _Job, item: SourceRecord | Fault) -> bool:
        """Keep ``item`` until it is consumed, waiting for room; False if it is no longer wanted."""
        size = memory_size(item)
        with self._changed:
            while not (unwanted := self._closed or job.abandoned):
                if (job.bytes if job is self._turn else self._bytes) < self._settings.ahead_bytes:
                    break
                self._changed.wait()
            if unwanted:
                return False
            job.items.append((item, size))
            job.bytes += size
            self._bytes += size
            self._changed.notify_all()
            return True


def begin_ahead(
    requests: Iterable[Request],
    task_of: Callable[[Request], Task | None],
    begin: Callable[[Task], Begun],
    settings: IngestSettings,
) -> Iterator[tuple[Request, Begun | None]]:
    """Yield each request with ``begin`` of its task, which is called ahead for as many as may wait."""
    window = deque[tuple[Request, int, Begun | None]]()
    for request in requests:
        task = task_of(request)
        window.append((request, task.bytes if task else 0, begin(task) if task else None))
        while len(window) >= settings.ahead_files or sum(size for _, size, _ in window) >= WAITING_BYTES:
            first, _, begun = window.popleft()
            yield first, begun
    yield from ((request, begun) for request, _, begun in window)


def parse_task(
    parser: Parser, task: Task, mapping: FieldMapping, bounds: ReadBounds
) -> Generator[SourceRecord | Fault, None, None]:
    """Yield what ``parser`` reads of ``task``; raise ``InputError`` as it does."""
    if task.scans:
        task.scans.mkdir(parents=True, exist_ok=True, mode=0o700)
        mapping = replace(mapping, options={**mapping.options, "scans": str(task.scans)})
    items = parser.parse(task.path, task.reader, mapping, bounds, task.name)
    try:
        with closing(cast(Generator[SourceRecord | Fault], items)):
            yield from items
    finally:
        if task.scans:
            with suppress(OSError):  # it is not empty
                task.scans.rmdir()


def memory_size(item: SourceRecord | Fault) -> int:
    """The approximate memory of ``item`` in bytes."""
    if isinstance(item, Fault):
        return RECORD_BYTES
    lines = (line for block in item.blocks for line in block.lines)
    return RECORD_BYTES + sum(LINE_BYTES + 2 * len(line.text) for line in lines)
