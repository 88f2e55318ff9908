"""Fuzz: thousands of mutated PDFs, XML and Office files, each parsed in the limited child as an import does.

    python -m tests.benchmarks.fuzz [--data DIR] [--count 2000] [--work FOLDER]

Counted are the outcomes: records, records with faults, refused with a reason, a limit reached. None other is allowed,
such as an exception that is not ours, a file that takes longer than its time, or a process left behind. The memory of
the parent is measured after the first hundred files and at the end. With ``--data`` the seeds are real files as well as
our own; with ``--work`` the run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from localmed.config import ReadBounds
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest.parsed import Fault, FieldMapping
from localmed.ingest.parsing import Parser
from tests.benchmarks.common import Place, Row, met, work_folder
from tests.benchmarks.mutations import mutated, seeds

COUNT = 2_000
SHARES = {".pdf": 8, ".xml": 6, ".docx": 4, ".xlsx": 1, ".pptx": 1}  # of twenty files
LARGEST_SEED = 400_000  # bytes of a real file: a mutated file has 4 MiB at most
ENDING = 30  # seconds that a process may take to end
# Lower than the defaults, or the hostile ones take hours. OCR sees a drawn page, whatever the file was: it is left out.
BOUNDS = ReadBounds(file_seconds=60.0, file_cpu_seconds=40, ocr=False)
MAPPING = FieldMapping({"title": "title", "text": "p"}, {"record": "record"})
SLACK = 20.0  # seconds beyond a file's time for starting and ending its child
FLAT = 64 * 2**20  # bytes that the parent may grow by between file 100 and the last
WARM = 100
CHILD = "localmed.ingest.child"  # what reads files; other tests of this process may have started others meanwhile


def run(place: Place, count: int = COUNT) -> list[Row]:
    """The rows of the results."""
    kept = place.work / "fuzz.jsonl"
    done = [json.loads(line) for line in kept.read_text("utf-8").splitlines()] if kept.exists() else []
    memory: list[int] = []
    own = psutil.Process()
    before = own.children(recursive=True)
    with kept.open("a", encoding="utf-8") as log, Parser() as parser:
        for case in _cases(place, count, len(done)):
            outcome = _tried(parser, *case)
            done.append(outcome)
            log.write(json.dumps(outcome) + "\n")
            log.flush()
            gc.collect()
            memory.append(own.memory_info().rss)
    since = [child for child in own.children(recursive=True) if child not in before]
    _, late = psutil.wait_procs(since, timeout=ENDING)
    left = [child for child in late if child.status() != psutil.STATUS_ZOMBIE and CHILD in child.cmdline()]
    return _rows(done, memory, len(left))


def _cases(place: Place, count: int, done: int) -> Iterator[tuple[Path, str, str]]:
    """The mutated files from number ``done`` on: (file, its ending, the change)."""
    sound = seeds(place.work / "fuzz-seeds")
    for path in sorted(place.data.rglob("*")) if place.data.is_dir() else []:
        ending = ".xml" if path.suffix == ".nxml" else path.suffix
        if ending in sound and path.is_file() and 0 < path.stat().st_size <= LARGEST_SEED:
            sound[ending].append(path.read_bytes())
    endings = [ending for ending, share in SHARES.items() for _ in range(share)]
    for number in range(done, count):
        ending = endings[number % len(endings)]
        of_kind = sound[ending]
        seed = of_kind[(number // len(endings)) % len(of_kind)]
        change, content = mutated(seed, ending, of_kind, number // len(endings) * 7 + number % len(endings))
        file = place.work / f"case{ending}"
        file.write_bytes(content)
        yield file, ending, change


def _tried(parser: Parser, file: Path, ending: str, change: str) -> dict[str, Any]:
    """What one file came to."""
    began, records, faults = time.monotonic(), 0, 0
    detail = ""
    try:
        for item in parser.parse(file, "", MAPPING, BOUNDS):
            faults, records = faults + isinstance(item, Fault), records + (not isinstance(item, Fault))
        outcome = "records and faults" if records and faults else "records" if records else "faults alone"
    except LimitExceeded as error:
        outcome, detail = "limit", error.what
    except InputError as error:
        outcome, detail = ("crashed" if "process crashed" in error.what else "refused"), error.what
        outcome = "reader failed" if "the reader failed" in detail else outcome
    except Exception as error:  # what the run is there to find
        outcome, detail = "not ours", type(error).__name__
    seconds = time.monotonic() - began
    late = seconds > BOUNDS.file_seconds + SLACK
    return {"ending": ending, "change": change, "outcome": outcome, "seconds": seconds, "late": late, "detail": detail}


def _rows(done: list[dict[str, Any]], memory: list[int], left: int) -> list[Row]:
    bad = sum(result["outcome"] == "not ours" or result["late"] for result in done)
    grown = (memory[-1] - memory[min(WARM, len(memory) - 1)]) if memory else 0
    sound = not bad and not left and grown <= FLAT
    how = [f"slowest {max(result['seconds'] for result in done):.0f} s", f"parent grew by {grown / 2**20:.0f} MiB"]
    for ending in SHARES:
        counts = Counter(result["outcome"] for result in done if result["ending"] == ending)
        how.append(f"{ending[1:]}: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    measured = f"{len(done):,} files, {bad} without a stated outcome or late, {left} processes left"
    return [Row("fuzz of PDF, XML, DOCX, XLSX, PPTX", "2,000 files, 0, 0", measured, met(sound), "; ".join(how))]


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--work", type=Path)
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args()
    work = options.work or work_folder()
    work.mkdir(parents=True, exist_ok=True)
    data = options.data if options.data != Path() else work / "none"
    for row in run(Place(data, work), options.count):
        print(f"{row.what}: {row.measured} ({row.met})\n  " + row.how.replace("; ", "\n  "))


if __name__ == "__main__":
    main()
