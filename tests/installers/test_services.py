"""The units: hardened as far as what localmed does lets them be, by systemd's own measure."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from localmed.cli.main import COMMANDS
from tests.strict import cannot

UNITS = Path(__file__).parents[2] / "installers" / "systemd"
MOST = {"localmed.service": 2.0, "localmed-refresh.service": 1.3}  # exposure, of 10; 9.6 without any of it


def filled(unit: str) -> str:
    values = {"PREFIX": "/opt/localmed", "DATA": "/var/lib/localmed", "USER": "localmed"}
    text = (UNITS / unit).read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


@pytest.mark.parametrize("unit", MOST)
def test_the_exposure_is_low(unit: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        cannot("systemd-analyze is not here")
    (tmp_path / unit).write_text(filled(unit))
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(tmp_path / unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "exposure level" not in done.stdout:
        cannot("systemd-analyze does not look at files here")
    exposure = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure, done
    assert float(exposure[1]) <= MOST[unit], done.stdout
    assert "ignoring" not in done.stderr, done.stderr


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        cannot("systemd-analyze is not here")
    python = tmp_path / "current" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for unit in (*MOST, "localmed-refresh.timer"):
        text = filled(unit).replace("/opt/localmed", str(tmp_path)).replace("=localmed\n", "=root\n")
        (tmp_path / unit).write_text(text)
        command = ["systemd-analyze", "verify", str(tmp_path / unit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), unit


@pytest.mark.parametrize("unit", MOST)
def test_what_the_issue_names_is_set(unit: str) -> None:
    lines = filled(unit).splitlines()
    wanted_lines = {"NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "IPAddressDeny=any", "LimitCORE=0",
                    "User=localmed", "ReadWritePaths=/var/lib/localmed"}  # fmt: skip
    assert wanted_lines <= set(lines)
    assert any(line.startswith("MemoryMax=") for line in lines)
    assert any(line.startswith("CPUWeight=") for line in lines)
    assert not [line for line in lines if re.search(r"@[A-Z_]+@", line)]
    if unit == "localmed-refresh.service":
        assert "PrivateNetwork=yes" in lines
    (started,) = [line for line in lines if line.startswith("ExecStart=")]
    assert started.split("/var/lib/localmed ")[1].split()[0] in COMMANDS
