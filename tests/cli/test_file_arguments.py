"""What a command reads is bounded, a given file and one of ours in the data folder: an endless one ends in one line.

One command for each way in which a file is read; ``tests/lint.py`` sees that commands read files in no other way.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from types import FrameType

import pytest

from localmed.domain.errors import InputError, LimitExceeded
from localmed.process import files
from localmed.process.files import SMALL, contents
from tests.cli.conftest import Localmed

SECONDS = 30  # for a machine that others use too; alone it takes less than one
COMMANDS = (
    "replay {file}", "explain {file}", "ebm dose? --patient {file}", "verify {file}", "show 1 --answer {file}",
    "import {ends} -c ward --manifest {file}", "documents govern {file} -c ward", "calibrate {file}",
    "models add {file}", "pack trust {file}", "review import {file} --key {ends}", "review export {file} --out {out}",
    "serve --tls-cert {ends} --tls-key {file}",
)  # fmt: skip


def words(command: str, folder: Path, file: Path) -> list[str]:
    (ends := folder / "ends.txt").write_text("Paracetamol 500 mg\n")
    return [word.format(file=file, ends=ends, out=folder / "out") for word in command.split()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_refused_by_every_command_alike(copied: Localmed, tmp_path: Path, command: str) -> None:
    assert copied(*words(command, tmp_path, tmp_path / "missing.toml")).code == InputError.exit_code


@pytest.mark.parametrize(
    ("command", "kind"),
    [*product(COMMANDS, ["device"]), *product(COMMANDS[:1], ["pipe", "folder", "large"])],
)
@pytest.mark.slow
def test_an_endless_file_ends_in_one_line(copied: Localmed, tmp_path: Path, command: str, kind: str) -> None:
    endless = tmp_path / "endless.toml"
    if kind == "device":
        endless.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(endless)
    elif kind == "folder":
        endless.mkdir()
    else:
        with endless.open("wb") as file:
            file.truncate(2**40)  # of which nothing is on the disk
    signal.alarm(SECONDS)
    done = copied(*words(command, tmp_path, endless))
    signal.alarm(0)
    assert done.code in (2, 3), done
    assert "nexpected" not in done.failed(done.code)


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "large"])
def test_the_settings_are_bounded_too(
    localmed: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (SMALL + 1))
    monkeypatch.setenv("LOCALMED_CONFIG", str(tmp_path / place))
    localmed("search", "sepsis").failed(2)


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(b"12345")
    assert contents(file, 5) == b"12345"
    with pytest.raises(LimitExceeded):
        contents(file, 4)
    with pytest.raises(InputError):
        contents(tmp_path, 4)


# --- pipes and endless files in the data folder -----------------------------------------------------------------------

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
    signal.alarm(4 * SECONDS)
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
