"""A file that a command reads is bounded by what is read of it: an endless one ends in one line within seconds.

One command for each way in which a file is read; ``tests/lint.py`` sees that commands read files in no other way.
"""

from __future__ import annotations

import os
import signal
from itertools import product
from pathlib import Path

import pytest

from localmed.domain.errors import InputError, LimitExceeded
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
