"""Tests that prove promises (no network, a full disk, OCR, namespaces) cannot pass CI by being skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROMISES = ("cli/test_network.py", "library/test_full_disk.py", "ingest/ocr/test_ocr.py", "test_confined.py")
EXAMPLE = """
import pytest
from tests.strict import cannot, needs
@needs(False, "what is not there")
def test_marked(): assert False
def test_ended(): cannot("it is not there")
"""


@pytest.mark.parametrize(("ci", "outcome"), [("true", "2 failed"), ("", "2 skipped")])
def test_in_ci_they_fail_in_place_of_being_skipped(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)]
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert outcome in done.stdout


@pytest.mark.parametrize("name", PROMISES)
def test_no_test_of_a_promise_is_skipped_by_itself(name: str) -> None:
    text = (TESTS / name).read_text("utf-8")
    assert "tests.strict" in text
    assert not re.search(r"pytest\.(skip|importorskip|mark\.skipif?)\(", text)
