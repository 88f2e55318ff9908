"""``localmed doctor`` as a command: its lines, its JSON and its exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import COMMAND, Localmed, environment


def test_without_a_library_and_with_one(copied: Localmed, tmp_path: Path) -> None:
    empty = Localmed(tmp_path / "none")
    assert "nothing has been imported yet" in empty.ok("doctor").out
    assert not empty.data.exists()
    copied.data.chmod(0o700)
    ran = copied.ok("doctor", "--full", "--json")
    levels = {check["name"]: check["level"] for check in ran.json["checks"]}
    assert levels["library"] == levels["audit"] == levels["rights"] == "ok"
    assert levels["quarantine"] == ran.json["worst"] == "warning"  # broken.pdf


def test_a_problem_and_its_exit_code(copied: Localmed) -> None:
    copied.data.chmod(0o755)
    ran = copied("doctor")
    assert ran.code == 5
    assert "problem  rights: other accounts can read" in ran.out
    assert f": chmod 700 {copied.data}" in " ".join(ran.out.split())
    assert copied("doctor", "--json").json["worst"] == "problem"


def test_settings_that_cannot_be_read(copied: Localmed) -> None:
    (copied.data / "localmed.toml").write_text("[search]\nrrf = 3")
    ran = copied("doctor")
    assert ran.code == 5
    assert ran.out.startswith("problem  settings: ")
    assert ran.err == ""


def test_a_library_that_cannot_be_imported(copied: Localmed, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tantivy.py").write_text("import some_missing_library")
    command = [*COMMAND, "--data", str(copied.data), "doctor"]
    variables = environment() | {"PYTHONPATH": str(tmp_path / "broken")}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False, timeout=60)
    assert done.returncode == 5, done
    assert done.stdout.startswith("problem  software packages: some_missing_library cannot be imported")
    assert not done.stderr
