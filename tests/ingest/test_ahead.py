"""Several children parse ahead: in one order, within bounds, and none is left behind whatever ends the import."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.config import IngestSettings, ReadBounds
from localmed.domain.errors import Cancelled, InputError, LimitExceeded
from localmed.ingest import ahead, readers
from localmed.ingest.ahead import Parsers, Task
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.process.hooks import Cancel, Hooks, following
from tests.ingest.test_child import HOSTILE, ended

AS_NAMED = FieldMapping(options={"do": "as named"})
BOUNDS = ReadBounds(file_seconds=60, file_cpu_seconds=20, child_memory_bytes=512 * 2**20)


@pytest.fixture(autouse=True)
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(readers.MODULES, "hostile", "__main__")


def tasks(folder: Path, *names: str) -> list[Task]:
    """A file a name; what the reader does with it is the name up to the hyphen."""
    for name in names:
        (folder / f"{name}.txt").write_text("text")
    return [Task(folder / f"{name}.txt", "hostile", name) for name in names]


def parsers(mapping: FieldMapping = AS_NAMED, bounds: ReadBounds = BOUNDS, **settings: Any) -> Parsers:
    return Parsers(IngestSettings(**{"children": 3, **settings}), mapping, bounds, HOSTILE)


def outcomes(pool: Parsers, waiting: list[Task]) -> list[tuple[str, int, str]]:
    """Each task with its number of items and its error."""
    results = []
    for task, items in pool.read(waiting, lambda task: task):
        count, error = 0, ""
        try:
            count = sum(1 for _ in items)
        except InputError as raised:
            error = type(raised).__name__
        results.append((task.name, count, error))
    return results


def until(path: Path) -> str:
    """What stands in ``path`` once it is written."""
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    return path.read_text()


@pytest.mark.slow
def test_the_order_is_that_of_the_tasks_whichever_child_is_faster(tmp_path: Path) -> None:
    names = ["sleep-0", "nothing-1", "raise-2", "sleep-3", *(f"nothing-{number}" for number in range(4, 30))]
    waiting = tasks(tmp_path, *names)
    with parsers() as several, parsers(children=1) as one:
        assert outcomes(several, waiting) == outcomes(one, waiting)
        assert len(several._parsers) == 3
    with parsers() as again:
        results = outcomes(again, waiting)
    assert [name for name, _, _ in results] == names
    assert {name: error for name, _, error in results if error} == {"raise-2": "InputError"}


@pytest.mark.slow
def test_what_has_no_task_keeps_its_place(tmp_path: Path) -> None:
    waiting: list[Task | str] = ["before", *tasks(tmp_path, "nothing-0"), "after"]
    with parsers() as pool:
        results = [
            (place if isinstance(place, str) else place.name, len(list(items)))
            for place, items in pool.read(waiting, lambda place: place if isinstance(place, Task) else None)
        ]
    assert results == [("before", 0), ("nothing-0", 1), ("after", 0)]


def test_a_file_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    waiting = tasks(tmp_path, "hang-0", *(f"note-{number}" for number in range(20)))
    with parsers(bounds=ReadBounds(file_seconds=6, file_cpu_seconds=20)) as pool:
        results = pool.read(waiting, lambda task: task)
        _, items = next(results)
        with pytest.raises(LimitExceeded, match=r"read\.file_seconds"):
            next(items)
        assert all(task.path.with_suffix(".done").exists() for task in waiting[1:]), "read while the first one hung"
        assert [len(list(items)) for _, items in results] == [1] * 20


@pytest.mark.slow
def test_what_is_read_ahead_is_bounded(tmp_path: Path) -> None:
    mapping = FieldMapping(options={"do": "as named", "good": 5_000})
    waiting = tasks(tmp_path, "note-0", "note-1", "note-2")
    with parsers(mapping, ahead_bytes=50_000) as pool:
        results = pool.read(waiting, lambda task: task)
        _, items = next(results)
        first = next(items)
        assert isinstance(first, SourceRecord)
        time.sleep(1.0)
        most = 2 * (50_000 + 3 * ahead.memory_size(first))
        assert 0 < pool._bytes <= most
        assert sum(1 for _ in items) == 4_999, "the one whose turn it is goes on"
        assert [sum(1 for _ in items) for _, items in results] == [5_000, 5_000]
        assert pool._bytes == 0


@pytest.mark.parametrize(("waiting_bytes", "settings", "most"), [(2**40, {"ahead_files": 2}, 2), (2_500, {}, 3)])
def test_no_more_is_taken_ahead_than_allowed_and_large_files_are_not_copied_far_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting_bytes: int, settings: dict[str, Any], most: int
) -> None:
    monkeypatch.setattr(ahead, "WAITING_BYTES", waiting_bytes)
    waiting = [replace(task, bytes=1_000) for task in tasks(tmp_path, *(f"nothing-{number}" for number in range(9)))]
    requested: list[str] = []

    def noted(task: Task) -> Task:
        requested.append(task.name)
        return task

    with parsers(**settings) as pool:
        for number, (_, items) in enumerate(pool.read(waiting, noted)):
            list(items)
            assert len(requested) <= number + most
    assert requested == [task.name for task in waiting]


def test_nothing_is_left_when_it_is_closed_in_the_middle(tmp_path: Path) -> None:
    before = threading.active_count()
    with parsers() as pool:
        results = pool.read(tasks(tmp_path, "hang-0", "hang-1", "hang-2"), lambda task: task)
        next(results)
        pids = [int(until(tmp_path / f"hang-{number}.pid")) for number in range(3)]
        assert not any(ended(pid, 0) for pid in pids)
    assert all(ended(pid) for pid in pids)
    assert threading.active_count() == before


def test_ctrl_c_while_a_thread_is_being_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was followed by an error of the clean-up: that thread cannot be waited for yet."""
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        begun.append(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as starting, suppress(KeyboardInterrupt), parsers() as pool:
        starting.setattr(threading.Thread, "start", start)
        next(pool.read(tasks(tmp_path, "hang-0"), lambda task: task))
    [thread] = begun
    thread.start()  # the system comes to it after the end
    thread.join(30)
    assert not thread.is_alive()
    assert not (tmp_path / "hang-0.pid").exists()


SCRIPT = f"""
import sys
from pathlib import Path
from localmed.config import IngestSettings, ReadBounds
from localmed.ingest import readers
from localmed.ingest.ahead import Parsers, Task
from localmed.ingest.parsed import FieldMapping, named
readers.MODULES["hostile"] = "__main__"
waiting = [Task(Path(path), "hostile", path) for path in sys.argv[1:]]
mapping = FieldMapping(options={{"do": "hang"}})
with Parsers(IngestSettings(children=2), mapping, ReadBounds(), {HOSTILE!r}) as parsers:
    for _, items in parsers.read(waiting, lambda task: task):
        list(items)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_no_orphan_however_the_import_is_ended(tmp_path: Path, ending: signal.Signals) -> None:
    paths = [str(task.path) for task in tasks(tmp_path, "hang-0", "hang-1")]
    with subprocess.Popen([sys.executable, "-c", SCRIPT, *paths], stderr=subprocess.DEVNULL) as parent:
        pids = [int(until(Path(path).with_suffix(".pid"))) for path in paths]
        assert not any(ended(pid, 0) for pid in pids)
        parent.send_signal(ending)
        assert parent.wait(30) != 0
    assert all(ended(pid) for pid in pids)


def test_a_fault_of_ours_is_not_swallowed(tmp_path: Path) -> None:
    with Parsers(IngestSettings(children=1), AS_NAMED, BOUNDS, ("/does/not/exist",)) as pool:
        [(_, items)] = pool.read(tasks(tmp_path, "nothing-0"), lambda task: task)
        with pytest.raises(FileNotFoundError):
            list(items)


def test_a_cancellation_is_seen_while_a_child_reads(tmp_path: Path) -> None:
    """A text of which nothing has come yet may take its whole time: whoever waits for it can still give up."""
    cancel = Cancel()
    threading.Timer(0.3, cancel.cancel).start()
    with parsers(children=1) as pool, following(Hooks(cancel=cancel)), pytest.raises(Cancelled):
        outcomes(pool, tasks(tmp_path, "hang-0"))
