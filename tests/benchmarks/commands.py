"""Times a person waits: the command line cold, and a warm ask in one process."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from localmed.config import Settings
from localmed.domain import SearchFilter
from tests.benchmarks.common import Row, met, percentile
from tests.fakes import opened

RUNS = 5


def cold(arguments: list[str]) -> float:
    """Median seconds of a whole command, process start included."""
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "localmed", *arguments], check=True, capture_output=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def run(data: Path, questions: list[str]) -> list[Row]:
    """``--help``, cold ask and warm ask over the library in ``data``."""
    overview = cold(["--help"])
    answered = cold(["--data", str(data), "ask", questions[0]])
    times = []
    with opened(Settings(data)) as session:
        session.ask(questions[0], SearchFilter())  # loads the encoder and the indexes
        for question in questions[:100]:
            began = time.perf_counter()
            session.ask(question, SearchFilter())
            times.append((time.perf_counter() - began) * 1000)
    median, worst = statistics.median(times), percentile(times, 0.95)
    size = "over MedQuAD (32k passages)"
    processes = f"median of {RUNS} processes"
    return [
        Row("localmed --help", "<= 0.4 s", f"{overview:.2f} s", met(overview <= 0.4), processes),
        Row("localmed ask, cold", "<= 12 s, aim 6", f"{answered:.1f} s", met(answered <= 12), f"{processes}, {size}"),
        Row("warm ask, extractive answer included, p50", "<= 400 ms", f"{median:.0f} ms", met(median <= 400),
            f"100 questions in one process, {size}; p95 {worst:.0f} ms"),
    ]  # fmt: skip
