"""Parsing in several children at once, ahead of whoever takes the results, which come in the order of the tasks.

``Parsers.read`` takes tasks as long as there is room and yields, for each in turn, what ``Parser.parse`` would: records
and faults, then perhaps its ``InputError``. So nothing that is made of them depends on which child was faster.

Rules: each child belongs to a thread of its own, which starts it, reads from it and ends it (the kernel ends a child
with the thread that started it); tasks are begun in their order; at most ``ahead_files`` are taken before their turn,
no further one once their files have ``WAITING_BYTES``, and what is read of them holds at most ``ahead_bytes``. The task
whose turn it is may hold as much again and always goes on. Beyond that a child waits at its pipe, and that is no time
of its file's. A task that hangs costs its own time; the others go on until there is no more room. ``close`` (also on
Ctrl-C) ends every child, whatever it is doing.

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
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

import psutil

from localmed.config import IngestSettings, ReadBounds
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.parsing import COMMAND, Parser
from localmed.process import hooks

MOST_CHILDREN = 4  # by default: one process encodes and writes what they read, and cannot keep up with more
CHILD_BYTES = 3 * 2**30  # of free memory for a child by default: a page of a scan takes 1.9 GiB at its worst
LINE_BYTES = 250  # of memory for a placed line beside its text, measured
WAITING_BYTES = 2 * 2**30  # of files before their turn, each copied already: four of the largest that are read
RECORD_BYTES = 1_000  # of memory for a record beside its lines
LOOK = 0.5  # seconds between two looks whether the import was cancelled, while a child reads

Request = TypeVar("Request")
Begun = TypeVar("Begun")
Items = Iterator[SourceRecord | Fault]
Reading = Callable[
    [str, int, int, bool], None
]  # a file, a page (1-based) of so many or 0 of 0, and whether OCR reads it


@dataclass(frozen=True, slots=True)
class Task:
    """A file to parse: where it lies, its reader, what errors call it, its size, and the folder for what OCR reads."""

    path: Path
    reader: str
    name: str
    bytes: int = 0
    scans: Path | None = None


def children_of(settings: IngestSettings) -> int:
    """How many children parse: what is set, else one a core and ``CHILD_BYTES`` free, at most ``MOST_CHILDREN``."""
    memory = psutil.virtual_memory().available  # what a model that is loaded holds, no child may have
    return settings.children or max(1, min(MOST_CHILDREN, len(os.sched_getaffinity(0)), memory // CHILD_BYTES))


class _Job:
    """A task and what has been read of it so far; everything is guarded by the lock of ``Parsers``."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.items: deque[tuple[SourceRecord | Fault, int]] = deque()
        self.bytes = 0
        self.done = self.abandoned = False
        self.error: BaseException | None = None
        self.page: tuple[int, int, bool] | None = None  # being read: its number, of how many, by OCR


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
        """``reading`` is told, where the items are taken, which page of the file whose turn it is is being read."""
        self._reading = reading
        self._settings, self._mapping, self._bounds, self._command = settings, mapping, bounds, command
        self._changed = threading.Condition()
        self._turn: _Job | None = None
        self._bytes = 0  # held of all jobs
        self._closed = False
        self._parsers: list[Parser] = []  # one a thread, which starts and reads its children
        self._own = threading.local()  # of a thread: its parser, its job
        self._threads = ThreadPoolExecutor(children_of(settings), "parser", self._equip)

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
        """Yield each of ``requests`` in its order with what its task comes to; one without a task comes to nothing.

        ``requests`` is read ahead. Items that are not taken before the next is asked for are dropped.
        """
        for request, job in in_turn(requests, task_of, self._put, self._settings):
            yield request, self._items(job) if job else iter(())
            if job:
                self._drop(job)

    # --- the taker's side ------------------------------------------------------------------------------------------

    def _put(self, task: Task) -> _Job:
        """Hand ``task`` to the children."""
        job = _Job(task)
        self._threads.submit(self._work, job)
        return job

    def _items(self, job: _Job) -> Items:
        """What ``job`` comes to, waited for; raises its error at its end."""
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
                seen, item = job.page, self._taken(job) if job.items else None
            if item is not None:
                yield item
            elif seen:
                self._reading(job.task.name, *seen)
        if job.error is not None:
            raise job.error

    def _taken(self, job: _Job) -> SourceRecord | Fault:
        item, size = job.items.popleft()
        job.bytes -= size
        self._bytes -= size
        return item

    def _drop(self, job: _Job) -> None:
        """Forget what was not taken of ``job``."""
        with self._changed:
            job.abandoned = True
            while job.items:
                self._taken(job)
            self._changed.notify_all()

    # --- the side of a child's thread ------------------------------------------------------------------------------

    def _equip(self) -> None:
        with self._changed:
            self._own.parser = Parser(self._command, self._told)
            self._parsers.append(self._own.parser)

    def _told(self, *page: *tuple[int, int, bool]) -> None:
        """The thread's parser reads a page."""
        with self._changed:
            self._own.job.page = page
            self._changed.notify_all()

    def _work(self, job: _Job) -> None:
        """Parse one task."""
        if self._closed:
            return
        self._own.job = job
        try:
            with closing(parsed(self._own.parser, job.task, self._mapping, self._bounds)) as items:
                for item in items:
                    if not self._hold(job, item):
                        break
        except BaseException as raised:  # raised again where the items are taken
            job.error = raised
        with self._changed:
            job.done = True
            self._changed.notify_all()

    def _hold(self, job: _Job, item: SourceRecord | Fault) -> bool:
        """Keep ``item`` until it is taken, waiting for room; False if nobody wants it any more."""
        size = size_of(item)
        with self._changed:
            self._changed.wait_for(lambda: self._has_room(job))
            if self._closed or job.abandoned:
                return False
            job.items.append((item, size))
            job.bytes += size
            self._bytes += size
            self._changed.notify_all()
            return True

    def _has_room(self, job: _Job) -> bool:
        if self._closed or job.abandoned:
            return True
        held = job.bytes if job is self._turn else self._bytes
        return held < self._settings.ahead_bytes


def in_turn(
    requests: Iterable[Request],
    task_of: Callable[[Request], Task | None],
    begin: Callable[[Task], Begun],
    settings: IngestSettings,
) -> Iterator[tuple[Request, Begun | None]]:
    """Each of ``requests`` with what ``begin`` made of its task, which is called for as many as may wait ahead."""
    left, window = iter(requests), deque[tuple[Request, int, Begun | None]]()
    while True:
        while len(window) < settings.ahead_files and sum(size for _, size, _ in window) < WAITING_BYTES:
            if not (more := list(islice(left, 1))):
                break
            task = task_of(more[0])
            window.append((more[0], task.bytes if task else 0, begin(task) if task else None))
        if not window:
            return
        request, _, begun = window.popleft()
        yield request, begun


def parsed(
    parser: Parser, task: Task, mapping: FieldMapping, bounds: ReadBounds
) -> Generator[SourceRecord | Fault, None, None]:
    """What ``parser`` makes of ``task``; raise ``InputError`` as it does."""
    if task.scans:
        task.scans.mkdir(parents=True, exist_ok=True, mode=0o700)
        mapping = replace(mapping, options={**mapping.options, "scans": str(task.scans)})
    items = parser.parse(task.path, task.reader, mapping, bounds, task.name)
    try:
        with closing(cast(Generator[SourceRecord | Fault], items)):
            yield from items
    finally:
        if task.scans:
            with suppress(OSError):  # it keeps something
                task.scans.rmdir()


def size_of(item: SourceRecord | Fault) -> int:
    """About how many bytes of memory ``item`` takes."""
    if isinstance(item, Fault):
        return RECORD_BYTES
    lines = (line for block in item.blocks for line in block.lines)
    return RECORD_BYTES + sum(LINE_BYTES + 2 * len(line.text) for line in lines)
