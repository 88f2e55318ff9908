"""An import by Ray against the single process: whether the library is the same, and how fast workers are.

Each import is a process of its own: ``python -m tests.benchmarks.by_ray FOLDER DATA WORKERS ENCODER`` (0 workers: the
single process; encoders: e5, hashed) prints its seconds, Ray's start included and apart.

The libraries are compared over all of MedQuAD with hashed words for vectors, since the same batches are encoded by the
same code whatever the encoder; over a part of it with e5, bit by bit, where also the speed is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from localmed.config import IngestSettings, LibrarySettings, SearchSettings, Settings
from localmed.domain import SearchFilter
from localmed.domain.ports import Embedder
from localmed.ingest import cluster
from localmed.library.library import Library
from localmed.models.e5 import E5
from localmed.retrieval.search import HybridSearch
from localmed.site import importing
from tests.benchmarks import known_item
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.importing import thinned
from tests.benchmarks.known_item import MEDQUAD
from tests.fakes import HashedWords, opened

EVERY = 48  # files of MedQuAD for the speed: some 700 passages
BATCH = 64  # of them are encoded together there: with the usual 1,024 there would be one batch, for one worker
QUERIES = 1_000


def encoder(name: str) -> Embedder:
    return E5() if name == "e5" else HashedWords()


def once(folder: Path, data: Path, count: int, name: str) -> None:
    """Import ``folder`` by ``count`` workers, and print the seconds of all, and of Ray's start."""
    began = time.perf_counter()
    settings = Settings(data, library=LibrarySettings(batch=BATCH) if name == "e5" else LibrarySettings())
    if not count:
        with opened(settings, encoder(name)) as session:
            importing.import_paths(session, [folder], MEDQUAD)
            print(time.perf_counter() - began, 0.0)
        return
    with cluster.workers(IngestSettings(), count=count) as workers, opened(settings, encoder(name)) as session:
        started = time.perf_counter() - began
        importing.import_paths(session, [folder], MEDQUAD, engine=workers)
        print(time.perf_counter() - began, started)


def imported(folder: Path, data: Path, count: int, name: str) -> tuple[float, float]:
    """The seconds of an import in a process of its own, and of Ray's start."""
    command = [sys.executable, "-m", "tests.benchmarks.by_ray", str(folder), str(data), str(count), name]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}  # noqa: PTH109
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    seconds, started = map(float, done.stdout.split())
    return seconds, started


def differing(one: Path, other: Path) -> tuple[int, int]:
    """How many passages differ or are in one library only, and how many vectors do, bit by bit."""
    with Library.open(one) as first, Library.open(other) as second:
        here, there = ({p.id: p for p in library.lexical.all_passages()} for library in (first, second))
        passages = sum(here.get(name) != there.get(name) for name in here.keys() | there.keys())
        names, vectors = sorted(here.keys() & there.keys()), 0
        for start in range(0, len(names), 1000):
            part = names[start : start + 1000]
            mine, theirs = first.dense.vectors_of(part), second.dense.vectors_of(part)
            vectors += sum(not np.array_equal(mine[name], theirs[name]) for name in part)
    return passages, vectors


def searches(one: Path, other: Path, questions: list[str], name: str) -> int:
    """Of how many ``questions`` the hits differ, in passages, order or scores."""
    settings, model = SearchSettings(), encoder(name)
    with Library.open(one) as first, Library.open(other) as second:
        pair = [HybridSearch(library, model, settings) for library in (first, second)]
        return sum(
            len({repr(side.search(question, SearchFilter(), settings.results)) for side in pair}) > 1
            for question in questions
        )


def run(place: Place) -> list[Row]:
    """The same library, and the speed."""
    return [*_same(place), *_fast(place)]


def _same(place: Place) -> list[Row]:
    one, other = place.work / "alone", place.work / "by-ray"
    alone, _ = imported(place.medquad(), one, 0, "hashed")
    by_ray, _ = imported(place.medquad(), other, 2, "hashed")
    reported, tuning = known_item.samples(known_item.medquad_questions(place.medquad()))
    questions = [question for question, _ in (*reported, *tuning)][:QUERIES]
    passages, vectors = differing(one, other)
    hits = searches(one, other, questions, "hashed")
    with Library.open(one) as library:
        count = library.manifest.passages
    how = (
        f"{count:,} passages, {len(questions):,} questions by words and vectors; passages that differ "
        f"{passages}, vectors {vectors}; hashed words for vectors: single process {alone:.0f} s, Ray with 2 workers "
        f"{by_ray:.0f} s"
    )
    return [Row("import by Ray: questions with other hits than after the single process's", "0", str(hits),
                met(not hits and not passages and not vectors), how)]  # fmt: skip


def _fast(place: Place) -> list[Row]:
    folder, speeds, starts = thinned(place, EVERY), {}, {}
    for count in (0, 1, 2):
        data = place.work / f"speed-{count}"
        seconds, starts[count] = imported(folder, data, count, "e5")
        with Library.open(data) as library:
            passages = library.manifest.passages
        speeds[count] = passages / (seconds - starts[count])
    differ = differing(place.work / "speed-0", place.work / "speed-2")
    gain = speeds[2] / speeds[1]
    how = (
        f"{passages:,} passages in batches of {BATCH}, e5, {os.cpu_count()} cores, "
        f"without Ray's start ({starts[2]:.0f} s): one worker "
        f"{speeds[1]:.1f}, two {speeds[2]:.1f}, the single process with all cores {speeds[0]:.1f} passages/s; passages "
        f"that differ {differ[0]}, vectors {differ[1]}"
    )
    return [Row("import by Ray: two workers against one", ">= 1.6x", f"{gain:.2f}x", met(gain >= 1.6), how),
            Row("import by Ray: two workers against the single process, which uses both cores already", "-",
                f"{speeds[2] / speeds[0]:.2f}x", "-", "the same imports")]  # fmt: skip


if __name__ == "__main__":
    once(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
