"""What it costs a reader of groups that nothing hidden is counted: searches beside those of a reader of everything.

    python -m tests.benchmarks.groups --data DIR

MedQuAD's records in two collections of about equal size, one of which is hidden from the reader. Term frequencies are
then counted among what may be read, and the best passages scored again from those. Both ask the same questions by
turns, so that other work on the machine slows both. Times are of the processor; words instead of the real encoder,
whose time is the same for both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localmed.config import NONE, Settings
from localmed.domain import SearchFilter
from localmed.ingest.manifest import Manifest, load
from localmed.site import changes, importing
from localmed.site.session import Session
from tests.benchmarks import known_item
from tests.benchmarks.common import DEFAULT_DATA, Place, Row, library, percentile, work_folder
from tests.fakes import HashedWords, opened, reader_of

CORPUS = Path(__file__).parents[2] / "corpora" / "medquad.toml"
FOLDERS = 2  # collections, of every other folder each
QUESTIONS = 100
LIMIT = 10


def run(place: Place, every: int = 4) -> list[Row]:
    """The rows of the results; only each ``every``-th file is imported."""
    with tempfile.TemporaryDirectory(dir=place.work) as folder:
        return rows(measured(place, Settings(Path(folder) / "data"), every))


def measured(place: Place, settings: Settings, every: int) -> tuple[list[float], list[float], int]:
    """Milliseconds of each search of a reader of everything and of one of groups, and how many passages there are."""
    questions = [question for question, _ in known_item.samples(known_item.medquad_questions(place.medquad()))[0]]
    files = sorted(place.medquad().rglob("*.xml"))[::every]
    with opened(settings, HashedWords(), uses={"reranker": NONE}) as session:
        for number in range(FOLDERS):
            importing.import_paths(session, files[number::FOLDERS], _manifest(f"half-{number}"))
        changes.set_access(session, "half-1", ["research"])
        reader = Session(session.site, reader_of("ward"))
        times: tuple[list[float], list[float]] = ([], [])
        for question in ("diabetes", *questions[:QUESTIONS]):
            for caller, taken in zip((session, reader), times, strict=True):
                began = time.process_time()
                caller.find(question, SearchFilter(), LIMIT, LIMIT)
                taken.append((time.process_time() - began) * 1000)
        return times[0][1:], times[1][1:], len(library(session).lexical)


def _manifest(name: str) -> Manifest:
    manifest = load(CORPUS)
    return replace(manifest, collection=replace(manifest.collection, name=name, title=name))


def rows(result: tuple[Sequence[float], Sequence[float], int]) -> list[Row]:
    """One row: both medians."""
    whole, grouped, passages = result
    more = statistics.median(grouped) - statistics.median(whole)
    return [
        Row(
            "search by a reader of groups, half of the library hidden, p50",
            "-",
            f"{statistics.median(grouped):.1f} ms ({more:+.1f} ms)",
            "-",
            f"{len(whole)} MedQuAD questions by turns, {passages} passages, processor time without models; "
            f"p95 {percentile(grouped, 0.95):.0f} against {percentile(whole, 0.95):.0f} ms of a reader of everything",
        )
    ]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--every", type=int, default=4)
    options = parser.parse_args()
    for row in run(Place(options.data, work_folder()), options.every):
        print(row)


if __name__ == "__main__":
    main()
