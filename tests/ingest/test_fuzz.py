"""A short run of the fuzz (``tests/benchmarks/fuzz.py`` is the long one), and what it once found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import fuzz
from tests.benchmarks.common import Place

COUNT = 60


@pytest.mark.slow
def test_every_mutated_file_ends_with_a_stated_outcome(tmp_path: Path) -> None:
    place = Place(tmp_path / "none", tmp_path)
    fuzz.run(place, COUNT // 2)
    begun = (tmp_path / "fuzz.jsonl").read_text("utf-8")
    [row] = fuzz.run(place, COUNT)
    assert (tmp_path / "fuzz.jsonl").read_text("utf-8").startswith(begun), "it goes on where it was stopped"
    assert row.met == "yes", (row.measured, row.how)
    assert row.measured.startswith(f"{COUNT} files, 0 without")
    for ending in fuzz.SHARES:
        assert f"{ending[1:]}: " in row.how
