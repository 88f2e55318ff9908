"""Parsing throughput: the PDFs in two children against one, as an import reads them (``ingest/ahead.py``).

The PDFs with a text layer, each twice (a folder has more than four), large ones first as in an import. Both ways run in
turn, and each round gives one ratio; the median of them is reported. Beside it stands what the machine had to give: two
processes that only count against one, in the same rounds. Where others use the cores that is below 2, and so is the
rest.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from localmed.config import IngestSettings, ReadBounds
from localmed.ingest.ahead import Parsers, Task
from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.sources import Source, largest_first
from tests.benchmarks.common import Place, Row, met

FOLDERS = ("pdf_en", "pdf_layout", "pdf_zh")
TIMES = 2  # that each PDF is parsed in a round
ROUNDS = 3
COUNT = "sum(range(100_000_000))"  # about a second


def run(place: Place) -> list[Row]:
    """The row of the results."""
    tasks = _tasks(place.data)
    _seconds(tasks, 2)  # the file cache
    pairs, room = [], []
    for _ in range(ROUNDS):
        pairs.append((_seconds(tasks, 1), _seconds(tasks, 2)))
        room.append(2 * _counting(1) / _counting(2))
    ratio = statistics.median(one / two for one, two in pairs)
    one, two = (statistics.median(seconds) for seconds in zip(*pairs, strict=True))
    pages = sum(_pages(tasks)) / two
    how = (
        f"{len(tasks)} PDFs, median of {ROUNDS} alternating rounds: {one:.1f} s in one child, {two:.1f} s in two "
        f"({pages:.0f} pages/s); two processes that only count: {statistics.median(room):.2f}x; "
        f"{len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[1]:.1f}"
    )
    return [Row("parsing PDFs in two children against one", ">= 1.7x", f"{ratio:.2f}x", met(ratio >= 1.7), how)]


def _tasks(data: Path) -> list[Task]:
    paths = [path for folder in FOLDERS for path in sorted((data / folder).glob("*.pdf"))]
    written = [Source(path, "") for path in paths if "imageonly" not in path.name] * TIMES  # scans measure OCR
    return [Task(task.path, "pdf", task.path.name) for task in sorted(written, key=largest_first)]


def _seconds(tasks: list[Task], children: int) -> float:
    began = time.perf_counter()
    _pages(tasks, children)
    return time.perf_counter() - began


def _counting(processes: int) -> float:
    """The seconds that as many processes take, side by side, to count each to the same number."""
    began = time.perf_counter()
    started = [subprocess.Popen([sys.executable, "-c", COUNT]) for _ in range(processes)]
    for process in started:
        process.wait()
    return time.perf_counter() - began


def _pages(tasks: list[Task], children: int = 2) -> list[int]:
    """The pages of each PDF, read in as many children."""
    bounds = ReadBounds(ocr=False)  # text pages are measured; OCR has figures of its own
    with Parsers(IngestSettings(children=children), FieldMapping(), bounds) as parsers:
        return [
            sum(item.pages for item in items if isinstance(item, SourceRecord))
            for _, items in parsers.read(tasks, lambda task: task)
        ]
