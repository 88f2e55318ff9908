"""A lease is how everybody comes to a generation: it stays while it is read; one that went meanwhile is no damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain import SearchFilter
from localmed.domain.errors import Damaged, UnknownName
from localmed.library import generations, intact, pruning
from localmed.process.hooks import SILENT
from localmed.site import lookups
from localmed.upkeep import check, repair
from tests.fakes import HashedWords, import_into, opened, verify, write


@pytest.fixture
def two(settings: Settings, corpus: Path) -> Settings:
    """Two generations, of which the second is served."""
    settings = replace(settings, library=LibrarySettings(writer_memory_bytes=15_000_000))
    import_into(settings, write(corpus, {"sepsis.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    import_into(settings, write(corpus, {"fever.txt": "Fever\n\nGive paracetamol.\n"}))
    assert generations.numbers(settings.data) == [1, 2]
    return settings


def test_what_is_leased_is_not_pruned_and_what_is_not_goes(two: Settings) -> None:
    with generations.lease(two.data, 1) as first, generations.lease(two.data) as served:
        assert (first.name, served.name) == ("0001", "0002")
        assert pruning.prune(two.data, 1) == []
    assert pruning.prune(two.data, 1) == [1]
    with pytest.raises(UnknownName), generations.lease(two.data, 1):
        raise AssertionError


@pytest.mark.parametrize("look", [lambda session: check.verify_and_mend(session, SILENT)[2],
                                  lambda session: [fault for faults in check.verified(session, None).values()
                                                   for fault in faults]], ids=["night", "verify"])  # fmt: skip
def test_a_prune_while_everything_is_read_is_no_damage(
    two: Settings, monkeypatch: pytest.MonkeyPatch, look: Callable[..., object]
) -> None:
    """A prune is tried before each file is hashed: what is being read stays."""
    hashed, tried = intact.hashed, []

    def pruned_first(path: Path) -> tuple[str, list[int]]:
        tried.append(pruning.prune(two.data, 1))
        return hashed(path)

    monkeypatch.setattr(intact, "hashed", pruned_first)
    with opened(two, HashedWords()) as session:
        assert not look(session)
    assert tried


def test_a_generation_that_was_listed_and_then_pruned_is_no_damage(
    two: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "numbers", lambda _: [1, 2, 3])
    with opened(two, HashedWords()) as session:
        assert check.of_generations(two.data).keys() == {1, 2}
        assert [row.number for row in lookups.generations_kept(session)] == [1, 2]
        assert not check.verify_and_mend(session, SILENT)[2]


def test_a_generation_that_is_being_removed_is_there_no_more(two: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removing takes a while: nobody sees a part of it, and one that is cut off is finished later."""
    seen: list[set[int]] = []

    def slowly(folder: Path, ignore_errors: bool) -> None:
        seen.append({number for number, faults in check.of_generations(two.data).items() if not faults})
        assert list(check.folder_of_generations(two.data)) == []

    monkeypatch.setattr(shutil, "rmtree", slowly)
    assert pruning.prune(two.data, 1) == [1]
    monkeypatch.undo()
    assert seen == [{2}]
    assert [path.name for path in sorted((two.data / "generations").iterdir())] == ["0001.going", "0002", "served.json"]
    assert pruning.prune(two.data, 1) == []
    assert [path.name for path in sorted((two.data / "generations").iterdir())] == ["0002", "served.json"]


@pytest.mark.parametrize("read", [generations.encoder, lambda data: generations.served_manifest(data).encoder])
def test_who_reads_while_another_is_served_reads_once_more(
    two: Settings, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], str]
) -> None:
    """The link was read, then another generation was served and the one before it pruned."""
    right, current, stale = generations.encoder(two.data), generations.current, [two.data / "generations" / "0000"]
    monkeypatch.setattr(generations, "current", lambda data: stale.pop() if stale else current(data))
    assert right
    assert read(two.data) == right


def test_an_answer_that_is_finished_is_given_though_the_link_is_lost_meanwhile(two: Settings) -> None:
    with opened(two, HashedWords()) as session, session.workspace() as workspace:
        found = workspace.find("antibiotics", SearchFilter(), 5)
        (two.data / "current").unlink()
    assert found.sections


def test_a_lost_lease_is_told_and_made_anew(two: Settings) -> None:
    (two.data / "generations" / "0002" / "lease").unlink()
    with opened(two, HashedWords()) as session:
        with pytest.raises(Damaged), session.workspace():
            raise AssertionError
        step = repair.plan(two.data)
        assert step is not None
        assert (step.number, step.anew, step.lost) == (2, False, ())
        repair.repair(session, step)
        with session.workspace() as workspace:
            assert workspace.library.path.name == "0002"
    assert repair.plan(two.data) is None
    verify(two.data)
