"""What was served before a series of changes outlives it, until a change has served a day or was confirmed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localmed.cli.main import run
from localmed.config import LibrarySettings, Settings
from localmed.domain.errors import Damaged
from localmed.library import generations, pruning
from tests.fakes import import_into, write


def change(settings: Settings, corpus: Path, number: int) -> int:
    write(corpus, {"a.txt": f"Title {number}\n\nText number {number}.\n"})
    return import_into(settings, corpus).generation


def age(settings: Settings, hours: float) -> None:
    """Let ``hours`` pass."""
    file = generations.folder(settings.data) / generations.SERVED
    rows = json.loads(file.read_text())
    for row in rows:
        row["since"] = (datetime.fromisoformat(row["since"]) - timedelta(hours=hours)).isoformat()
    file.write_text(json.dumps(rows))


@pytest.fixture
def few(settings: Settings) -> Settings:
    return Settings(settings.data, library=LibrarySettings(keep_generations=2, writer_memory_bytes=15_000_000))


@pytest.mark.slow
def test_it_outlives_a_series_of_changes_until_one_has_served_a_day(few: Settings, corpus: Path) -> None:
    assert change(few, corpus, 1) == 1
    age(few, 30)
    for number in range(2, 7):
        change(few, corpus, number)
    assert generations.numbers(few.data) == [1, 5, 6]
    age(few, 30)
    change(few, corpus, 7)
    assert generations.numbers(few.data) == [6, 7], "6 has served a day"


def test_it_outlives_a_series_until_a_change_is_confirmed(few: Settings, corpus: Path) -> None:
    change(few, corpus, 1)
    age(few, 30)
    for number in range(2, 5):
        change(few, corpus, number)
    with pytest.raises(SystemExit) as done:
        run(["--data", str(few.data), "generations", "confirm"])
    assert done.value.code == 0
    pruning.prune(few.data, 2)
    assert generations.numbers(few.data) == [3, 4]


@pytest.mark.slow
def test_a_rollback_counts_as_what_was_served(few: Settings, corpus: Path) -> None:
    for number in (1, 2):
        change(few, corpus, number)
    generations.rollback(few.data, 1)
    age(few, 30)
    for number in (3, 4, 5):
        change(few, corpus, number)
    assert generations.numbers(few.data) == [1, 4, 5], "1 was served for long, 2 was not"


def test_where_it_cannot_be_read_nothing_is_removed(few: Settings, corpus: Path) -> None:
    for number in (1, 2):
        change(few, corpus, number)
    file = generations.folder(few.data) / generations.SERVED
    file.write_text(file.read_text()[:-5])
    with pytest.raises(Damaged, match="cannot be read"):
        pruning.prune(few.data, 2)
    change(few, corpus, 3)
    assert generations.swaps(few.data)[-1].number == 3
    assert datetime.fromisoformat(generations.swaps(few.data)[-1].since) <= datetime.now(UTC)
