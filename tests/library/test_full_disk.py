"""A full disk: one clear error, the old generation still answers, and the next import works once there is space."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, RefreshSettings, Settings
from localmed.domain.errors import Busy, LibraryError, LocalmedError
from localmed.domain.nights import SERVED
from localmed.library.vectors import VectorCache
from localmed.nightly.refresh import refresh
from localmed.process.files import told_if_full
from tests.fakes import HashedWords, answers, documents, import_into, opened, verify, write
from tests.strict import cannot
from tests.words import pattern


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Settings]:
    """A data folder on a file system of 6 MiB."""
    data = tmp_path / "small"
    data.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(data)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        cannot("may not mount a file system")
    try:
        yield Settings(data / "localmed", library=LibrarySettings(writer_memory_bytes=15_000_000))
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


def free(settings: Settings) -> int:
    state = os.statvfs(settings.data)
    return state.f_bavail * state.f_frsize


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 4_096, 40_000, 90_000, 120_000, 160_000, 220_000, 300_000])
def test_a_full_disk(small: Settings, corpus: Path, left: int) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"})
    import_into(small, corpus)
    # about 600 kB are needed: with ``left`` bytes the import runs out of space early or late
    many = {f"{number}.txt": f"Title {number}\n\n" + f"Word{number} " * 300 for number in range(60)}
    write(corpus, many)
    filler = small.data.parent / "filler"
    filler.write_bytes(bytes(max(free(small) - left, 0)))
    with pytest.raises(LibraryError) as caught:
        import_into(small, corpus)
    assert "space" in str(caught.value)
    assert answers(small, "antibiotics") == {"Sepsis"}
    verify(small.data)
    assert not (small.data / "generations" / "building").exists()
    filler.unlink()
    import_into(small, corpus)
    assert len(documents(small)) == 61
    verify(small.data)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "x"),
        OSError(errno.EDQUOT, "x"),
        sqlite3.OperationalError("database or disk is full"),
        RuntimeError("lance error: LanceError(IO): No space left on device (os error 28)"),
        ValueError("An error occurred: 'File too large'"),
    ],
)
def test_each_way_of_saying_it_is_understood(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(LibraryError, match=pattern("library.full")) as caught, told_if_full(tmp_path):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "x"), ValueError("x"), Busy("x"), KeyboardInterrupt()])
def test_other_errors_stay_what_they_are(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, told_if_full(tmp_path):
        raise error
    assert caught.value is error


def test_a_full_disk_for_the_vectors_alone(small: Settings) -> None:
    with closing(VectorCache(small.data / "vectors", HashedWords())) as cache:
        cache.encode(["one"])
    (small.data.parent / "filler").write_bytes(bytes(free(small) - 100_000))
    with closing(VectorCache(small.data / "vectors", HashedWords())) as cache:
        with pytest.raises(Exception, match="full"):
            cache.encode([f"text {number}" for number in range(3000)])
        assert len(cache.encode(["one"])) == 1


def test_a_night_on_a_disk_that_became_read_only(small: Settings, corpus: Path) -> None:
    import_into(small, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    write(corpus, {"b.txt": "Fever\n\nWait.\n"})
    settings, disk = replace(small, refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1)), str(small.data.parent)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        with pytest.raises(LocalmedError), opened(settings, HashedWords()) as session:
            refresh(session)
        assert answers(small, "antibiotics") == {"Sepsis"}
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    verify(small.data)
    with opened(settings, HashedWords()) as session:
        assert refresh(session).outcome == SERVED
