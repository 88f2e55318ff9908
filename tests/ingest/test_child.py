"""The parsing child does no harm: whatever a file or a reader does, one clear error, and the next file works."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.config import ReadBounds
from localmed.domain import Box, message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest import child, parsing, readers
from localmed.ingest.parsed import Block, Fault, FieldMapping, Line, SourceRecord
from localmed.ingest.parsing import Parser
from tests.process.test_confined import interfaces, namespace, needs_namespaces
from tests.words import phrase, words

HOSTILE = (sys.executable, "-P", str(Path(__file__).parent / "fixtures" / "hostile.py"))
SMALL = ReadBounds(file_seconds=20, file_cpu_seconds=20, child_memory_bytes=512 * 2**20, record_characters=4000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "note.txt"
    path.write_text("Good text.\n", encoding="utf-8")
    return path


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parser]:
    monkeypatch.setitem(readers.MODULES, "hostile", "__main__")
    with Parser(HOSTILE) as made:
        yield made


def attempt(
    parser: Parser, file: Path, do: str, bounds: ReadBounds = SMALL, good: int = 1
) -> tuple[list[SourceRecord | Fault], InputError | None]:
    """What came of a hostile parse, and the error it ended with."""
    items: list[SourceRecord | Fault] = []
    try:
        for item in parser.parse(file, "hostile", FieldMapping(options={"do": do, "good": good}), bounds):
            items.append(item)
    except InputError as error:
        return items, error
    return items, None


def pid_of(items: list[SourceRecord | Fault]) -> int:
    first = items[0]
    assert isinstance(first, SourceRecord)
    return int(first.key.split("-")[0])


def ended(pid: int, seconds: float = 5.0) -> bool:
    """Whether the process has ended, or is only waited for by nobody, within ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("do", "kind", "words", "change"),
    [
        ("hang", LimitExceeded, "read.file_seconds", {"file_seconds": 0.5}),
        ("spin", LimitExceeded, "read.file_cpu_seconds", {"file_cpu_seconds": 1}),
        ("fill", LimitExceeded, "read.child_memory_bytes", {"child_memory_bytes": 256 * 2**20}),
        ("large", LimitExceeded, "read.record_characters", {}),
        ("segfault", InputError, "SIGSEGV", {}),
        ("killed", InputError, "was killed", {}),
        ("leave", InputError, "exit code 7", {}),
        ("raise", InputError, "LookupError", {}),
        ("dial", InputError, "PermissionError", {}),
        ("lie", InputError, phrase("import.no_record"), {}),
    ],
)
@pytest.mark.slow
def test_each_way_to_fail_ends_in_one_clear_error(
    parser: Parser, file: Path, do: str, kind: type[InputError], words: str, change: dict[str, float]
) -> None:
    _, error = attempt(parser, file, do, dataclasses.replace(SMALL, **change))  # type: ignore[arg-type]
    assert type(error) is kind
    assert words in error.what
    assert error.what.startswith(file.name)
    assert "\n" not in str(error)
    assert "patient" not in str(error)
    items, error = attempt(parser, file, "nothing")
    assert (len(items), error) == (1, None)


@pytest.mark.slow
def test_records_stream_and_a_slow_consumer_is_not_a_slow_file(parser: Parser, file: Path) -> None:
    bounds = dataclasses.replace(SMALL, file_seconds=2.0)
    items = parser.parse(file, "hostile", FieldMapping(options={"do": "nothing", "good": 5_000}), bounds)
    next(items)
    time.sleep(2.2)  # longer than the bound, with the child waiting on a full pipe
    assert sum(1 for _ in items) == 4_999


def test_the_time_allowed_is_for_the_whole_file_and_pages_read_by_ocr_have_their_own(
    parser: Parser, file: Path
) -> None:
    bounds = dataclasses.replace(SMALL, file_seconds=1.0, ocr_page_seconds=1.0, record_characters=200_000)
    items, error = attempt(parser, file, "ocr", bounds)
    assert (len(items), error) == (1, None)
    _, error = attempt(parser, file, "ocr", dataclasses.replace(bounds, ocr_page_seconds=0.01))
    assert isinstance(error, LimitExceeded)
    _, error = attempt(parser, file, "ocr", dataclasses.replace(bounds, pages=1))
    assert isinstance(error, InputError)
    assert phrase("import.no_record") in error.what, "no more pages than a file may have"
    items, error = attempt(parser, file, "drip", bounds)
    assert len(items) < 40
    assert isinstance(error, LimitExceeded)


def test_an_interrupt_is_the_parents_to_handle(parser: Parser, file: Path) -> None:
    pid = pid_of(attempt(parser, file, "nothing")[0])
    for ending in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, ending)
    assert not ended(pid, 0.3)
    assert pid_of(attempt(parser, file, "nothing")[0]) == pid


def test_small_files_share_a_child_that_is_replaced_when_it_is_killed(parser: Parser, file: Path) -> None:
    first, second = (pid_of(attempt(parser, file, "nothing")[0]) for _ in range(2))
    assert first == second
    os.kill(first, signal.SIGKILL)  # idle
    ended(first)
    items = parser.parse(file, "hostile", FieldMapping(options={"do": "hang", "good": 5_000}), SMALL)
    second = pid_of([next(items)])
    assert second != first
    os.kill(second, signal.SIGKILL)  # in the middle of a file
    with pytest.raises(InputError, match="was killed"):
        list(items)
    assert attempt(parser, file, "nothing")[1] is None


def test_a_child_that_met_a_limit_gets_no_other_file_and_one_that_refused_does(parser: Parser, file: Path) -> None:
    first, _ = attempt(parser, file, "nothing")
    before, error = attempt(parser, file, "raise", good=3)
    assert (len(before), type(error)) == (3, InputError), "records before the failure reach the parent"
    second, _ = attempt(parser, file, "nothing")
    assert isinstance(attempt(parser, file, "large")[1], LimitExceeded)
    third, _ = attempt(parser, file, "nothing")
    assert pid_of(first) == pid_of(second) != pid_of(third)


def test_a_reader_with_its_own_child_gets_a_fresh_one_each_time(
    parser: Parser, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "OWN_CHILD", frozenset({"hostile"}))
    first, second = (pid_of(attempt(parser, file, "nothing")[0]) for _ in range(2))
    assert first != second
    assert ended(second)


def test_an_abandoned_file_takes_its_child_with_it(parser: Parser, file: Path) -> None:
    items = parser.parse(file, "hostile", FieldMapping(options={"do": "nothing", "good": 5_000}), SMALL)
    pid = pid_of([next(items)])
    items.close()  # type: ignore[attr-defined]
    assert ended(pid)
    assert len(attempt(parser, file, "nothing")[0]) == 1


def test_what_a_library_prints_does_not_reach_the_protocol(parser: Parser, file: Path) -> None:
    items, error = attempt(parser, file, "print")
    assert error is None
    assert words(items[1:]) == [("stdin", "''")]


def test_faults_and_records_are_bounded(parser: Parser, file: Path) -> None:
    items, error = attempt(parser, file, "faults", dataclasses.replace(SMALL, faults=3))
    assert error is None
    assert [words(item.where) for item in items[1:] if isinstance(item, Fault)] == [
        *(f"line {number}" for number in range(3)), "the whole file"
    ]  # fmt: skip
    assert words(items[-1]) == ("the whole file", "more refused parts, not listed: 7 (read.faults)")
    items, error = attempt(parser, file, "nothing", dataclasses.replace(SMALL, records=5), good=9)
    assert len(items) == 5
    assert isinstance(error, LimitExceeded)
    assert "read.records" in error.what


def test_what_must_not_be_opened_is_not(file: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "endless.txt"
    os.mkfifo(fifo)
    with Parser() as parser:
        for path, words in ((fifo, "not a regular file"), (tmp_path, "not a regular"), (tmp_path / "no.txt", "cannot")):
            with pytest.raises(InputError, match=words):
                list(parser.parse(path, "text"))
        with pytest.raises(LimitExceeded, match=r"read\.file_bytes"):
            list(parser.parse(file, bounds=ReadBounds(file_bytes=5)))
        [record] = parser.parse(file)
    assert isinstance(record, SourceRecord)
    assert record.blocks == (Block.of("paragraph", "Good text."),)


def test_nothing_is_lost_on_the_way() -> None:
    lines = (Line("甲\ud800", Box(2, 0.5, 1, 2, 3.25)), Line("plain"))
    numbers = message("pdf.page_numbers", count=1, pages=("3",))
    full = SourceRecord(
        "k", "t", (Block("heading", lines[1:], 2), Block("row", lines)), "2024", "zh", "u", ("a", "b"), ("c",), ("d",),
        (("retraction_in", "pmid:1"),), "withdrawn", "x", 3,
        (message("pdf.on_pages", pages=numbers, note=message("pdf.blank")),),
    )  # fmt: skip
    arrived = parsing.received_item(json.loads(child.pack(full)))
    sound = dataclasses.replace(lines[0], text="甲?")
    assert arrived == dataclasses.replace(full, blocks=(full.blocks[0], Block("row", (sound, lines[1]))))


def test_no_orphan_is_left_when_the_parent_is_killed(file: Path) -> None:
    script = f"""
from pathlib import Path
from localmed.ingest import readers
from localmed.ingest.parsing import Parser
from localmed.ingest.parsed import FieldMapping
readers.MODULES["hostile"] = "__main__"
list(Parser({HOSTILE!r}).parse(Path({str(file)!r}), "hostile", FieldMapping(options={{"do": "hang"}})))
"""
    noted = file.with_suffix(".pid")
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        end = time.monotonic() + 10
        while not (noted.exists() and noted.read_text()) and time.monotonic() < end:
            time.sleep(0.02)
        pid = int(noted.read_text())
        assert not ended(pid, 0.2)
        parent.kill()
    assert ended(pid)


@needs_namespaces
def test_the_kernel_leaves_the_child_no_network(parser: Parser, file: Path) -> None:
    pid = pid_of(attempt(parser, file, "nothing")[0])
    assert interfaces(pid) == {"lo"}
    assert namespace(pid) != namespace(os.getpid())


def test_the_child_starts_light() -> None:
    code = "import sys, localmed.ingest.child, localmed.ingest.parsing; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "onnxruntime", "lancedb", "pymupdf", "markdown_it", "charset_normalizer"} & set(loaded)
