"""A short run of the fuzz (``tests/benchmarks/fuzz.py`` is the long one), and what it once found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.benchmarks import fuzz, mutations
from tests.benchmarks.common import Place

COUNT = 60


@pytest.mark.slow
def test_every_mutated_file_ends_with_a_stated_outcome(tmp_path: Path) -> None:
    [row] = fuzz.run(Place(tmp_path / "none", tmp_path), COUNT)
    assert row.met == "yes", (row.measured, row.how)
    assert row.measured.startswith(f"{COUNT} files, 0 without")
    for ending in fuzz.SHARES:
        assert f"{ending[1:]}: " in row.how


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    place = Place(tmp_path / "none", tmp_path)
    fuzz.run(place, 2)
    before = (tmp_path / "fuzz.jsonl").read_text("utf-8")
    fuzz.run(place, 3)
    after = (tmp_path / "fuzz.jsonl").read_text("utf-8")
    assert after.startswith(before)
    assert len(after.splitlines()) == 3


@pytest.mark.slow
def test_mutations_are_the_same_each_time_and_differ_from_each_other(tmp_path: Path) -> None:
    sound = mutations.seeds(tmp_path)
    for ending in fuzz.SHARES:
        seed = sound[ending][0]
        made = [mutations.mutated(seed, ending, sound[ending], number) for number in range(30)]
        assert made == [mutations.mutated(seed, ending, sound[ending], number) for number in range(30)]
        assert len({content for _, content in made}) > 25
        assert len(Counter(name for name, _ in made)) >= 11
        assert all(len(content) <= mutations.MOST_BYTES for _, content in made)
