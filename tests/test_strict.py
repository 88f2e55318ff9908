"""Tests that prove promises (no network, a full disk, OCR, namespaces) cannot pass CI by being skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
EXAMPLE = """
import pytest
from tests.strict import cannot, needs
@needs(False, "what is not there")
def test_marked(): assert False
def test_ended(): cannot("it is not there")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("ci", "outcome"), [("true", "2 failed"), ("", "2 skipped")])
def test_in_ci_they_fail_in_place_of_being_skipped(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)]
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert outcome in done.stdout
