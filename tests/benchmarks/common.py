"""What the benchmarks share: where the data is, how a figure is written down, timing."""

from __future__ import annotations

import os
import platform
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from localmed.library.library import Library
from localmed.site.session import Session

DEFAULT_DATA = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Row:
    """One line of RESULTS.md: a figure, its target, what was measured, and how."""

    what: str
    target: str
    measured: str
    met: str  # yes, no, or - where there is no target
    how: str


@dataclass(frozen=True)
class Place:
    """Where the real data lies and where a benchmark may write."""

    data: Path
    work: Path
    every: int = 1  # of MedQuAD's files is imported

    def medquad(self) -> Path:
        """The unpacked MedQuAD records."""
        folder = self.work / "medquad"
        if not folder.exists():
            with tarfile.open(self.data / "medquad" / "medquad_sets1-9_xml.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        return folder


def met(condition: bool) -> str:
    """For ``Row.met``."""
    return "yes" if condition else "**no**"


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def peak_memory() -> int:
    """The highest resident memory of this process so far, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def machine() -> str:
    """The machine in one line."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, no GPU, Python {platform.python_version()}"


def work_folder() -> Path:
    """A fresh folder for one benchmark run."""
    return Path(tempfile.mkdtemp(prefix="localmed-benchmark-"))


def library(session: Session) -> Library:
    """The generation being served now, open until the benchmark ends."""
    return Library.open(session.data)
