"""``localmed evidence``: what is there, what is missing, and that nobody altered it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed
from tests.words import phrase


@pytest.fixture
def written(localmed: Localmed, tmp_path: Path) -> Path:
    localmed.ok("pack", "key", str(tmp_path / "key.pem"))
    for name in ("tests.xml", "egress.html", "results.json"):
        (tmp_path / name).write_text("{}")
    attached = (
        word for name in ("tests.xml", "egress.html", "results.json") for word in ("--attach", str(tmp_path / name))
    )
    out = tmp_path / "evidence"
    ran = localmed.ok("evidence", str(out), *attached, "--key", str(tmp_path / "key.pem"), "--json")
    assert {name for name, there in ran.json.items() if not there} == {"sbom", "wcag"}
    return out


def test_the_folder_is_whole_and_signed(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    pages = {"index.html", "attributes.html", "card.html", "hazards.html"}
    assert pages | {"models.json", "corpus.json", "change.json"} <= names
    assert {"tests.xml", "egress.html", "benchmarks.json"} <= names
    for line in (written / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((written / name).read_bytes()).hexdigest() == digest
        names.remove(name)
    assert names == {"SHA256SUMS", "SHA256SUMS.sig", "SHA256SUMS.pem"}
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "SHA256SUMS.pem", "-rawin", "-in", "SHA256SUMS",
               "-sigfile", "SHA256SUMS.sig"]  # fmt: skip
    assert subprocess.run(command, cwd=written, capture_output=True, check=False, timeout=60).returncode == 0
    with (written / "SHA256SUMS").open("a") as file:
        file.write("\n")
    assert subprocess.run(command, cwd=written, capture_output=True, check=False, timeout=60).returncode != 0


def test_it_says_what_is_there_and_what_is_missing(written: Path) -> None:
    (corpus,) = json.loads((written / "corpus.json").read_text())
    assert corpus["collection"]["licence"] == "test"
    assert corpus["status"] == {"current": corpus["documents"] - 1, "superseded": 1}
    assert json.loads((written / "change.json").read_text())["generations"][0]["served"]
    assert "wcag" in (written / "index.html").read_text()
    assert "still answers" in (written / "hazards.html").read_text()


def test_what_is_no_part_or_there_already_is_refused(localmed: Localmed, written: Path, tmp_path: Path) -> None:
    assert "already" in localmed("evidence", str(written)).failed(2)
    (tmp_path / "notes.txt").write_text("x")
    refused = localmed("evidence", str(tmp_path / "other"), "--attach", str(tmp_path / "notes.txt")).failed(3)
    assert phrase("evidence.no_part") in refused
    assert not (tmp_path / "other").exists()
