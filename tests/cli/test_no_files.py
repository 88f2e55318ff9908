"""What lies in the data folder in place of a file of ours, and would never end or never begin, is neither waited for
nor read without end.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from types import FrameType

import pytest

from localmed.process import files
from tests.cli.conftest import Localmed

SECONDS = 120  # an answer takes one; who opens a pipe waits for ever
KEPT = ("audit.key", "in_force.json", "generations/served.json", "current/manifest.json", "current/lease")
DATABASES = ("site.sqlite", "current/library.sqlite")
QUESTION = "What is the maximum dose of paracetamol in adults?"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.fixture
def impatient() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits for a file that never begins or never ends")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("name", "make"), list(zip([*KEPT, *DATABASES], cycle((pipe, endless)), strict=False)))
@pytest.mark.slow
def test_an_answer_waits_for_nothing(copied: Localmed, name: str, make: Callable[[Path], None]) -> None:
    path = copied.data / name
    path.unlink(missing_ok=True)
    make(path)
    ran = copied("ask", "--json", QUESTION)
    if ran.code:
        assert ran.failed(ran.code)
        assert ran.code != 1, ran
    else:
        assert "4 g" in ran.out


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("make", [pipe, endless])
def test_it_is_told_as_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file")
    for read in (files.own_bytes, files.open_own):
        with pytest.raises(OSError, match="No such device"):
            read(tmp_path / "file")


def test_no_more_is_read_than_a_file_of_ours_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    monkeypatch.setattr(files, "OWN", 5)
    assert files.own_bytes(tmp_path / "file") == b"12345"
    monkeypatch.setattr(files, "OWN", 4)
    with pytest.raises(OSError, match="No such device"):
        files.own_bytes(tmp_path / "file")
