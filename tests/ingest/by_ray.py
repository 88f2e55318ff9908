"""An import by Ray in a process of its own, as a command does: ``python -m tests.ingest.by_ray DATA FOLDER SIGNS``.

The process goes to a network of its own, from which there is no way back. Each batch that a worker encodes is told by a
file in the folder SIGNS, named by the worker's process; the first batch then waits for the file "go" there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from localmed.config import IngestSettings, LibrarySettings, Settings
from localmed.ingest import cluster
from localmed.site import importing
from tests.fakes import HashedWords, described, opened

MOST_SECONDS = 300.0  # that a worker waits for "go"
BATCH = 8  # passages


class Watched(HashedWords):
    """Tells that it encodes, and waits until it may."""

    def __init__(self, signs: Path) -> None:
        super().__init__()
        self.signs = signs

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
        (self.signs / str(os.getpid())).touch()
        ends = time.monotonic() + MOST_SECONDS
        while not (self.signs / "go").exists() and time.monotonic() < ends:
            time.sleep(0.05)
        return super().encode(texts, kind)


def settings(data: Path) -> Settings:
    return Settings(data, library=LibrarySettings(batch=BATCH))


def main(data: Path, folder: Path, signs: Path) -> None:
    with (
        cluster.workers(IngestSettings(), count=2) as workers,
        opened(settings(data), Watched(signs)) as session,
    ):
        report = importing.import_paths(session, [folder], described("starter"), engine=workers)
    assert not session.site._encoder.encoded  # type: ignore[union-attr]
    print(report.counts["passages"], report.encoded)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
