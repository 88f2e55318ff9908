"""The model host: a question as a command with and without it.

The library is the starter corpus's. A command is timed from the start of its process to the end of its output, in
which the answer's sentences stand checked; the first run is left out, since it reads files from the disk.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.common import Place, Row, met

CORPORA = Path(__file__).parents[2] / "corpora"
RUNS = 10
MOST_SECONDS = 1.2


def run(place: Place) -> list[Row]:
    """The rows of the model host."""
    data = library(place.work / "starter-host")
    question = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"][0]["text"]
    alone = commands(data, question)
    with hosted(data):
        with_host = commands(data, question)
    processes = f"median of {RUNS} processes, starter corpus; slowest"
    return [
        Row("localmed ask with the host running, process start to the last line", f"<= {MOST_SECONDS} s",
            f"{statistics.median(with_host):.2f} s", met(statistics.median(with_host) <= MOST_SECONDS),
            f"{processes} {max(with_host):.2f} s"),
        Row("localmed ask without a host", "-", f"{statistics.median(alone):.2f} s", "-",
            f"{processes} {max(alone):.2f} s"),
    ]  # fmt: skip


def library(data: Path) -> Path:
    """The starter corpus, imported unless it is there."""
    for manifest in sorted(CORPORA.glob("starter-*.toml")):
        documents = CORPORA / "starter" / manifest.stem.removeprefix("starter-")
        command("--data", str(data), "import", str(documents), "-c", manifest.stem, "--manifest", str(manifest))
    return data


def command(*arguments: str) -> float:
    """The wall seconds of one command."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "localmed", *arguments], check=True, capture_output=True, env=installed())
    return time.perf_counter() - began


def installed() -> dict[str, str]:
    """The environment of a command as a site has it: Python keeps what it compiled, as pip leaves it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def commands(data: Path, question: str) -> list[float]:
    """The seconds of a question, asked anew each time."""
    return [command("--data", str(data), "ask", question) for _ in range(RUNS + 1)][1:]


@contextmanager
def hosted(data: Path) -> Iterator[None]:
    """A model host for ``data``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "localmed", "--data", str(data), "host"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Ready")
        yield
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.communicate()
