"""A flipped bit in what an answer rests on: the same answer or ``Damaged``, never another answer without a word.

Twice: as somebody who writes into a file leaves it, and as a disk leaves it whose bits decay, which changes no time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.errors import LocalmedError
from localmed.library import generations, intact
from tests.benchmarks import flips as benchmark
from tests.fakes import HashedWords, import_into, opened, overwrite, write
from tests.words import pattern

DOSES = {
    f"{name}.txt": f"{name}\n\nGive {amount} micrograms of {name} for shock. Repeat after {minutes} minutes.\n"
    for name, amount, minutes in (("adrenaline", 500, 5), ("vasopressin", 300, 10), ("glucagon", 100, 15))
}
Shown = tuple[object, ...]


@pytest.fixture
def doses(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, DOSES))
    return settings


def shown(settings: Settings) -> list[Shown]:
    """All that a reader sees of the passages found: order, text, title, edition, status, page, file."""
    with opened(settings, HashedWords()) as session, session.workspace() as workspace:
        hits = workspace.find("dose of adrenaline for shock", SearchFilter(), 3).found.hits
        return [
            (row.passage, row.document_title, row.edition, row.status, row.source, row.file_sha256, row.kind)
            for row in workspace.mint(hits)
        ]


def flip(path: Path, place: int, bit: int) -> bytes:
    whole = path.read_bytes()
    overwrite(path, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    return whole


def flips(
    settings: Settings, paths: list[Path], number: int, damage: Callable[[Path, int, int], bytes]
) -> dict[str, list[str]]:
    """What became of the answer for ``number`` random flips in ``paths``: same, damaged, or otherwise, by file."""
    chance, before = random.Random(14), shown(settings)
    outcomes: dict[str, list[str]] = {"same": [], "damaged": [], "otherwise": []}
    for _ in range(number):
        path = chance.choice(paths)
        place, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        whole = damage(path, place, bit)
        try:
            outcome = "same" if shown(settings) == before else "otherwise"
        except LocalmedError as error:
            outcome = "damaged" if error.exit_code == 5 else "otherwise"
        except Exception as error:
            outcome = "otherwise"
            path = path.with_name(f"{path.name} {type(error).__name__}")
        outcomes[outcome].append(f"{path.name} {place}.{bit}")
        overwrite(path.with_name(path.name.split(" ")[0]), whole)
    return outcomes


def stored(settings: Settings) -> list[Path]:
    """Every file of the generation that is served, by what it is part of."""
    served = generations.current(settings.data)
    names = [*generations.read_manifest(served).files, generations.MANIFEST]
    return [served / name for name in names if (served / name).stat().st_size]


def decayed(path: Path, place: int, bit: int) -> bytes:
    """As ``flip``, with every sign of it removed that a file system keeps."""
    times = path.stat()
    whole = flip(path, place, bit)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return whole


@pytest.mark.slow
def test_what_was_written_into_is_found_before_anything_is_answered(doses: Settings) -> None:
    outcomes = flips(doses, stored(doses), 60, flip)
    assert outcomes["otherwise"] == []
    assert len(outcomes["damaged"]) > 50


@pytest.mark.slow
def test_decay_of_the_stored_texts_is_found_when_they_are_read(
    doses: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither times nor the sample tell of it here: the ends of the files and the digests beside the texts do."""
    monkeypatch.setattr(intact, "sampled", lambda *_: [])
    texts = [path for path in stored(doses) if path.suffix == ".store" or path.name == "library.sqlite"]
    assert len(texts) >= 2
    outcomes = flips(doses, texts, 60, decayed)
    assert outcomes["otherwise"] == []
    assert outcomes["damaged"]


def test_decay_of_what_only_ranks_is_found_where_the_sample_is_the_whole_library(doses: Settings) -> None:
    path = next(path for path in stored(doses) if path.suffix == ".lance")
    decayed(path, path.stat().st_size // 2, 3)
    with pytest.raises(LocalmedError) as caught:
        shown(doses)
    assert caught.value.exit_code == 5
    assert path.name in str(caught.value)


def test_the_end_of_a_file_is_read_at_every_opening(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit of a store's end can make its engine end the process, so that it is looked at before the file is opened."""
    monkeypatch.setattr(intact, "sampled", lambda *_: [])
    for path in stored(doses):
        if path.name == generations.MANIFEST:
            continue
        whole = decayed(path, path.stat().st_size - 1, 3)
        with pytest.raises(LocalmedError) as caught:
            shown(doses)
        assert path.name in str(caught.value)
        overwrite(path, whole)


def test_looks_of_an_earlier_version_are_taken_once_more(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lack the sums of the ends: every file is hashed again, and nothing is called damaged."""
    monkeypatch.setattr(intact, "END", 64)  # the files of this library are smaller than what is looked at of an end
    served = generations.current(doses.data)
    before = intact.remembered(served)
    intact.remember(served, {name: numbers[:-1] for name, numbers in before.items()})
    assert shown(doses)
    larger = {name for name, entry in generations.read_manifest(served).files.items() if entry.bytes > intact.END}
    after = intact.remembered(served)
    assert larger
    assert all(after[name][:-1] == before[name][:-1] and after[name] != before[name] for name in larger)


def test_every_block_is_in_some_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intact, "BLOCK", 1_000)
    for name, size in {"large": 4_500, "small": 300, "empty": 0}.items():
        (tmp_path / name).write_bytes(os.urandom(size))
    looks = {name: intact.hashed(tmp_path / name)[1] for name in ("large", "small", "empty")}
    assert not intact.sampled(tmp_path, looks, list(looks))
    for place in (0, 999, 3_999, 4_499):
        whole = flip(tmp_path / "large", place, 1)
        seen = [intact.sampled(tmp_path, looks, list(looks)) for _ in range(200)]
        assert ["large"] in seen
        assert [] in seen
        overwrite(tmp_path / "large", whole)


def test_a_sample_leaves_the_programs_own_chance_alone(doses: Settings) -> None:
    before = random.getstate()
    assert generations.check(generations.current(doses.data), whole=False) == []
    assert random.getstate() == before


def test_a_damaged_file_is_not_built_upon(doses: Settings, corpus: Path) -> None:
    flip(next(path for path in stored(doses) if path.suffix == ".store"), 40, 2)
    write(corpus, {"new.txt": "Text."})
    with pytest.raises(LocalmedError, match=pattern("generation.damaged.what")):
        import_into(doses, corpus)
    assert generations.numbers(doses.data) == [1]


def test_what_was_copied_back_is_hashed_once(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in stored(doses):
        overwrite(path, path.read_bytes())
        os.utime(path, ns=(0, 1))
    hashed: list[Path] = []
    hash_of = intact.hashed

    def counted(path: Path) -> tuple[str, list[int]]:
        hashed.append(path)
        return hash_of(path)

    monkeypatch.setattr(intact, "hashed", counted)
    shown(doses)
    assert len(hashed) == len(stored(doses)) - 1
    hashed.clear()
    shown(doses)
    assert hashed == []


@pytest.mark.slow
def test_no_flip_in_any_kind_of_file_changes_what_is_shown(tmp_path: Path) -> None:
    """A short run of the benchmark: one in each of eighteen kinds of files, every other as decayed."""
    outcomes = benchmark.measured(benchmark.made(tmp_path), 18, seed=2)
    assert outcomes.silent == []
    assert outcomes.unnamed == []
    assert len(outcomes.counts) == 15
    assert sum(counter["noticed"] for counter in outcomes.counts.values()) > 7
