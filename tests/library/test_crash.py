"""kill -9 at every step: the library opens, is whole, and the next import finishes without encoding twice."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.library import generations
from localmed.library.library import Library
from tests.fakes import HashedWords, documents, hashes, import_into, verify, write

ROOT = Path(__file__).parents[2]
LAST = 14  # steps, from the manifest on; each is tried, and every EARLY-th before them
EARLY = 3


class Killing:
    """Imports in a process that is killed."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.library.killed"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, data: Path, corpus: Path, kill: int = 0, **more: float) -> int:
        """Import ``corpus``, killed before step ``kill`` (0: not) or ``after`` seconds; return the steps, or -9."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"data": str(data), "paths": [str(corpus)], "kill": kill, **more}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def killing() -> Iterator[Killing]:
    made = Killing()
    yield made
    made.close()


def texts(version: int) -> dict[str, str]:
    names = range(version, version + 4)
    return {f"{number}.txt": f"Title {number}\n\nText {number} about sepsis, version {version}.\n" for number in names}


@pytest.fixture
def start(settings: Settings, corpus: Path) -> Settings:
    """A generation 1, and a corpus in which files were added, changed and removed since."""
    write(corpus, texts(1))
    import_into(settings, corpus)
    (corpus / "1.txt").unlink()
    write(corpus, texts(2))
    return settings


def copy_of(settings: Settings, target: Path) -> Settings:
    """The data folder with its hard links, symbolic link and all."""
    subprocess.run(["cp", "-a", str(settings.data), str(target)], check=True)
    return Settings(target, library=settings.library)


def check_after(settings: Settings, corpus: Path, before: dict[str, str]) -> None:
    verify(settings.data)
    held = set(documents(settings))
    old, new = {"1.txt", "2.txt", "3.txt", "4.txt"}, {"2.txt", "3.txt", "4.txt", "5.txt"}
    assert held in (old, new)
    served = generations.current(settings.data).name
    encoder = HashedWords()
    cached = _cached(settings)
    report = import_into(settings, corpus, encoder=encoder)
    if held == new:
        assert (report.generation, report.encoded) == (0, 0)
    else:
        assert report.generation > int(served)
        assert report.encoded == 2 * (4 + 4) - cached  # each passage and its one sentence
    assert not any("version 1" in text for text in encoder.encoded)
    verify(settings.data)
    assert set(documents(settings)) == new
    assert hashes(settings.data / "generations" / "0001") == before
    assert not list((settings.data / "files").glob("*.part"))
    assert not (settings.data / "generations" / "building").exists()


def _cached(settings: Settings) -> int:
    database = sqlite3.connect(settings.data / "vectors" / f"{HashedWords().identity.slug}.sqlite")
    try:
        return int(database.execute("SELECT COUNT(*) FROM vectors").fetchone()[0])
    finally:
        database.close()


@pytest.mark.slow
def test_killed_at_every_step(killing: Killing, start: Settings, corpus: Path, tmp_path: Path) -> None:
    before = hashes(start.data / "generations" / "0001")
    steps = killing(copy_of(start, tmp_path / "count").data, corpus, 0)
    assert steps > 30
    outcomes = []
    for step in (*range(1, steps - LAST, EARLY), *range(steps - LAST, steps + 1)):
        killed = copy_of(start, tmp_path / f"killed{step}")
        assert killing(killed.data, corpus, step) == -9, f"step {step} of {steps}"
        with Library.open(killed.data) as library:
            outcomes.append(library.path.name)
        check_after(killed, corpus, before)
        shutil.rmtree(killed.data, ignore_errors=True)  # Tantivy's threads may still be tidying up
    assert set(outcomes) == {"0001", "0002"}, "some steps come before the swap, some after"
    assert outcomes == sorted(outcomes), "once swapped, it stays swapped"


@pytest.mark.slow
def test_killed_at_any_moment(killing: Killing, start: Settings, corpus: Path, tmp_path: Path) -> None:
    """Also inside Lance and Tantivy, which tell nobody of their steps."""
    before = hashes(start.data / "generations" / "0001")
    chance = random.Random(1)
    outcomes = []
    for number in range(10):
        killed = copy_of(start, tmp_path / f"killed{number}")
        outcomes.append(killing(killed.data, corpus, after=chance.random() * 0.5))
        check_after(killed, corpus, before)
    assert -9 in outcomes, "an import takes longer than the shortest of these times"
