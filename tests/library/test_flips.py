"""A flipped bit in what an answer rests on: the same answer or ``Damaged``, never another answer without a word.

Twice: as somebody who writes into a file leaves it, and as a disk leaves it whose bits decay, which changes no time.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import Message, SearchFilter, message
from localmed.domain.errors import Damaged, LocalmedError, UnreadableIndex
from localmed.library import generations, intact, reading
from localmed.library.lexical import TantivyIndex
from localmed.site.session import Session
from tests.benchmarks import flips as benchmark
from tests.fakes import HashedWords, flip, import_into, opened, overwrite, write

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


def stored(settings: Settings) -> list[Path]:
    """Every file of the generation that is served, by what it is part of."""
    served = generations.current(settings.data)
    names = [*generations.read_manifest(served).files, generations.MANIFEST]
    return [served / name for name in names if (served / name).stat().st_size]


@pytest.mark.slow
def test_decay_of_the_stored_texts_is_found_when_they_are_read(
    doses: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither times nor the sample tell of it here: the ends of the files and the digests beside the texts do."""
    monkeypatch.setattr(intact, "find_decayed_sample", lambda *_: [])
    texts = [path for path in stored(doses) if path.suffix == ".store" or path.name == "library.sqlite"]
    assert len(texts) >= 2
    chance, before, codes = random.Random(14), shown(doses), list[int]()
    for _ in range(60):
        path = chance.choice(texts)
        place, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
        whole = flip(path, place, bit, decayed=True)
        try:
            assert shown(doses) == before, f"{path.name} {place}.{bit}"
        except LocalmedError as error:
            codes.append(error.exit_code)
        overwrite(path, whole)
    assert set(codes) == {5}


def test_decay_of_what_only_ranks_is_found_where_the_sample_is_the_whole_library(doses: Settings) -> None:
    path = next(path for path in stored(doses) if path.suffix == ".lance")
    flip(path, decayed=True)
    with pytest.raises(LocalmedError) as caught:
        shown(doses)
    assert caught.value.exit_code == 5
    assert path.name in str(caught.value)


def test_the_end_of_a_file_is_read_at_every_opening(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit of a store's end can make its engine end the process, so that it is looked at before the file is opened."""
    monkeypatch.setattr(intact, "find_decayed_sample", lambda *_: [])
    for path in stored(doses):
        if path.name == generations.MANIFEST:
            continue
        whole = flip(path, path.stat().st_size - 1, 3, decayed=True)
        with pytest.raises(LocalmedError) as caught:
            shown(doses)
        assert path.name in str(caught.value)
        overwrite(path, whole)


def test_looks_of_an_earlier_version_are_taken_once_more(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lack the sums of the ends: every file is hashed again, and nothing is called damaged."""
    monkeypatch.setattr(intact, "END", 64)  # the files of this library are smaller than what is looked at of an end
    served = generations.current(doses.data)
    before = intact.read_looks(served)
    intact.write_looks(served, {name: numbers[:-1] for name, numbers in before.items()})
    assert shown(doses)
    larger = {name for name, entry in generations.read_manifest(served).files.items() if entry.bytes > intact.END}
    after = intact.read_looks(served)
    assert larger
    assert all(after[name][:-1] == before[name][:-1] and after[name] != before[name] for name in larger)


def test_every_block_is_in_some_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intact, "BLOCK", 1_000)
    for name, size in {"large": 4_500, "small": 300, "empty": 0}.items():
        (tmp_path / name).write_bytes(os.urandom(size))
    looks = {name: intact.hash_file(tmp_path / name)[1] for name in ("large", "small", "empty")}
    assert not intact.find_decayed_sample(tmp_path, looks, list(looks))
    for place in (0, 999, 3_999, 4_499):
        whole = flip(tmp_path / "large", place, 1)
        seen = [intact.find_decayed_sample(tmp_path, looks, list(looks)) for _ in range(200)]
        assert ["large"] in seen
        assert [] in seen
        overwrite(tmp_path / "large", whole)


def test_a_sample_leaves_the_programs_own_chance_alone(doses: Settings) -> None:
    before = random.getstate()
    assert generations.check(generations.current(doses.data), whole=False) == []
    assert random.getstate() == before


def test_what_was_copied_back_is_hashed_once(doses: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in stored(doses):
        overwrite(path, path.read_bytes())
        os.utime(path, ns=(0, 1))
    hashed: list[Path] = []
    hash_of = intact.hash_file

    def counted(path: Path) -> tuple[str, list[int]]:
        hashed.append(path)
        return hash_of(path)

    monkeypatch.setattr(intact, "hash_file", counted)
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


# --- damage is told by what reads stored bytes, not by a fault of the program -----------------------------------------


READERS = 16


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"sepsis.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    return settings


@pytest.fixture
def whole_checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The generations that were read whole."""
    check, read = generations.check, list[Path]()

    def counted(generation: Path, whole: bool) -> list[Message]:
        if whole:
            read.append(generation)
        return check(generation, whole)

    monkeypatch.setattr(generations, "check", counted)
    return read


def failures(session: Session, work: Callable[[Any], object]) -> list[BaseException | None]:
    """What ``READERS`` at once are told."""

    def one(_: int) -> None:
        with session.workspace() as workspace:
            work(workspace)

    with ThreadPoolExecutor(READERS) as pool:
        return [future.exception() for future in [pool.submit(one, number) for number in range(READERS)]]


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), OSError("x"), TypeError("x")])
def test_a_fault_of_the_program_reads_nothing_and_is_no_damage(
    filled: Settings, whole_checks: list[Path], error: Exception
) -> None:
    def fail(_: Any) -> None:
        raise error

    with opened(filled, HashedWords()) as session:
        assert {type(one) for one in failures(session, fail)} == {type(error)}
    assert whole_checks == []


class Broken:
    """A searcher that cannot read its files."""

    num_docs = 1

    def __getattr__(self, name: str) -> Any:
        raise ValueError("corrupt")


def find(together: threading.Barrier, workspace: Any) -> object:
    together.wait(60)
    return workspace.find("antibiotics", SearchFilter(), 5)


@pytest.mark.parametrize("problems", [[message("file.changed", file="lexical/a.store")], []])
def test_what_an_engine_says_is_looked_into_once_for_all_who_ask(
    filled: Settings, monkeypatch: pytest.MonkeyPatch, problems: list[Message]
) -> None:
    check, read = generations.check, list[Path]()

    def decayed(generation: Path, whole: bool) -> list[Message]:
        if not whole:
            return check(generation, whole)
        read.append(generation)
        time.sleep(0.5)  # a real library takes minutes
        return problems

    monkeypatch.setattr(generations, "check", decayed)
    monkeypatch.setattr(reading, "_WHOLE", reading._Whole())
    opening = TantivyIndex.__init__

    def broken(index: TantivyIndex, *arguments: Any, **options: Any) -> None:
        opening(index, *arguments, **options)
        object.__setattr__(index._searcher, "_searcher", Broken())

    monkeypatch.setattr(TantivyIndex, "__init__", broken)
    with opened(filled, HashedWords()) as session:
        errors = failures(session, partial(find, threading.Barrier(READERS)))
        assert {type(error) for error in errors} <= {Damaged, UnreadableIndex}
        codes = {error.message.code for error in errors if isinstance(error, Damaged)}
        assert codes == ({"generation.damaged"} if problems else {"library.index"})
        assert len(read) <= 2, "those that asked while the first was read wait for one more"
