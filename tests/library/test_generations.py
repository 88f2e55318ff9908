"""Generations: what is published never changes, every flipped bit is found, nobody loses what he is reading."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection, Message, SearchFilter, message
from localmed.domain.errors import Busy, Cancelled, Damaged, UnknownName
from localmed.library import generations, intact, pruning
from localmed.library.dense import COMPACT_FRAGMENTS
from localmed.library.generations import Manifest, guarded, lock_writer
from localmed.library.intact import FileEntry
from localmed.library.library import Library, build
from localmed.process.hooks import SILENT, Cancel, Hooks, following
from localmed.site import lookups
from localmed.upkeep import check, repair
from tests.cli.conftest import Localmed
from tests.fakes import (
    HashedWords,
    answers,
    encoded,
    flip,
    hashes,
    import_into,
    opened,
    overwrite,
    titles,
    verify,
    write,
)

TEXT = "Sepsis\n\nGive antibiotics within one hour.\n"


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    write(corpus, {"a.txt": TEXT, "b.txt": "Fever\n\nGive paracetamol.\n"})
    import_into(settings, corpus)
    return settings


def another(settings: Settings, corpus: Path, number: int) -> int:
    write(corpus, {"new.txt": f"New {number}\n\nText number {number}.\n"})
    return import_into(settings, corpus).generation


def name_of_served(data: Path) -> str:
    with generations.lease(data) as generation:
        return generation.name


def path_of(settings: Settings, number: int) -> Path:
    return generations.path_of(settings.data, number)


def test_a_clone_links_what_is_immutable_and_copies_the_rest(filled: Settings, corpus: Path) -> None:
    building, parent = generations.start_build(filled.data)
    served = path_of(filled, parent)
    names = {str(path.relative_to(building)) for path in building.rglob("*") if path.is_file()}
    assert names == set(generations.read_manifest(served).files)
    assert not any(name.endswith(".lock") for name in names)
    assert {"manifest.json", "lease"} & names == set()
    assert {name for name in names if not (building / name).samefile(served / name)} == {"library.sqlite"}
    assert any(name.startswith("passages.lance/") for name in names)
    assert any(name.startswith("lexical/") for name in names)


@pytest.mark.slow
def test_many_imports_change_nothing_in_an_older_generation(filled: Settings, corpus: Path, tmp_path: Path) -> None:
    """Enough of them to make both engines merge and compact."""
    keep_all = Settings(filled.data, library=LibrarySettings(keep_generations=99, writer_memory_bytes=15_000_000))
    first = hashes(path_of(filled, 1))
    for number in range(12):
        another(keep_all, corpus, number)
    (corpus / "a.txt").unlink()
    import_into(keep_all, corpus)
    with build(filled.data, HashedWords().identity, keep_all.library) as builder:
        builder.dense.compact()
        builder.publish(message("generation.made.upgrade"))
    verify(filled.data)
    assert hashes(path_of(filled, 1)) == first
    generations.rollback(filled.data, 1)
    verify(filled.data)
    assert answers(filled, "antibiotics") == {"Sepsis"}


def test_a_flipped_bit_in_any_file_is_found(filled: Settings) -> None:
    served = path_of(filled, 1)
    names = [path for path in served.rglob("*") if path.is_file() and path.stat().st_size and path.name != intact.FILE]
    assert len(names) > 8
    for path in names:
        for place in {0, path.stat().st_size // 2, path.stat().st_size - 1}:
            whole = flip(path, place, 2)
            try:
                problems = generations.check(served, whole=True)
            except Damaged:
                problems = [message("generation.incomplete.what")]
            assert problems, f"byte {place} of {path.name}"
            overwrite(path, whole)
    assert generations.check(served, whole=True) == []


def test_every_bit_of_the_manifest_counts() -> None:
    files = {"a": FileEntry(10, "0" * 64)}
    text = Manifest(1, "2024-01-01", "导入 é", "encoder", 0, 1, 2, files).to_json()
    assert Manifest.from_json(text).files == files
    for place in range(len(text)):
        for bit in range(7):
            altered = text[:place] + chr(ord(text[place]) ^ 1 << bit) + text[place + 1 :]
            with pytest.raises((ValueError, KeyError, TypeError)):
                Manifest.from_json(altered)


def test_many_small_additions_are_compacted(filled: Settings) -> None:
    with Library.open(filled.data) as library:
        document = library.catalogue.documents()[0]
        passage = library.lexical.of_document(document.id)[0]
    vectors = encoded(HashedWords(), [passage])
    with build(filled.data, HashedWords().identity, filled.library) as builder:
        builder.remove([document.id])
        builder.put(replace(document, passages=COMPACT_FRAGMENTS + 5))
        for number in range(COMPACT_FRAGMENTS + 5):
            builder.add([replace(passage, id=f"{number:032}")], vectors)
            builder._write_dense()
        builder.publish(message("generation.made.upgrade"))
    verify(filled.data)
    assert len(list((path_of(filled, 2) / "passages.lance" / "data").iterdir())) < 5


@pytest.mark.parametrize("how", ["missing", "truncated"])
def test_a_missing_or_short_file_is_told_with_a_remedy(filled: Settings, corpus: Path, how: str) -> None:
    another(filled, corpus, 1)
    served = path_of(filled, 2)
    for name in (*generations.read_manifest(served).files, "manifest.json", "lease"):
        path = served / name
        if not path.stat().st_size and how == "truncated":
            continue
        shutil.copytree(served, served.parent / "safe")
        path.unlink() if how == "missing" else path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(Damaged) as caught:
            Library.open(filled.data)
        assert "localmed repair" in caught.value.remedy
        if name != "lease":
            with pytest.raises(Damaged), build(filled.data, HashedWords().identity, filled.library):
                pass
        shutil.rmtree(served)
        (served.parent / "safe").rename(served)
    verify(filled.data)


def test_damage_is_not_built_upon(filled: Settings, corpus: Path, tmp_path: Path) -> None:
    """A flipped bit in the copied catalogue would get a new, matching hash in the next generation."""
    served = path_of(filled, 1)
    catalogue = served / "library.sqlite"
    generations.copy_checked(served, "library.sqlite", tmp_path / "whole.sqlite")
    flip(catalogue, catalogue.read_bytes().index(b"Fever"))
    with pytest.raises(Damaged):
        generations.copy_checked(served, "library.sqlite", tmp_path / "decayed.sqlite")
    with pytest.raises(Damaged, match="has changed"):
        another(filled, corpus, 1)
    assert generations.numbers(filled.data) == [1]
    with pytest.raises(Damaged):
        Library.open(filled.data)
    assert not pruning.prune(filled.data, 1)
    with (served / "lease").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody has kept a lease


def test_damaged_rows_are_not_rewritten_with_a_good_hash(filled: Settings) -> None:
    data_file = next((path_of(filled, 1) / "passages.lance" / "data").iterdir())
    with build(filled.data, HashedWords().identity, filled.library) as builder:
        flip(data_file, 0)  # Lance notices nothing
        rows = builder.dense._table.to_arrow()
        builder.dense._table.delete("true")
        builder.dense._table.add(rows)
        builder.dense.compact()
        with pytest.raises(Damaged, match="has changed"):
            builder.publish(message("generation.made.upgrade"))


def test_rollback_refuses_a_damaged_generation_and_what_it_serves_is_kept(filled: Settings, corpus: Path) -> None:
    for number in (1, 2):
        another(filled, corpus, number)
    flip(path_of(filled, 2) / "library.sqlite")
    with pytest.raises(Damaged, match="generation 2 is damaged"):
        generations.rollback(filled.data, None)
    assert generations.current(filled.data).name == "0003"
    assert generations.rollback(filled.data, 1) == 1
    assert answers(filled, "number") == set()
    assert pruning.prune(filled.data, 1) == [2]
    verify(filled.data)


def test_rollback_goes_to_what_the_current_was_built_from_unless_cancelled(filled: Settings, corpus: Path) -> None:
    another(filled, corpus, 1)
    cancel = Cancel()
    with guarded(lambda _: cancel.cancel()), following(Hooks(cancel=cancel)), pytest.raises(Cancelled):
        generations.rollback(filled.data, None)
    assert generations.current(filled.data).name == "0002"
    assert generations.rollback(filled.data, None) == 1
    with pytest.raises(UnknownName):
        generations.rollback(filled.data, None)
    assert another(filled, corpus, 2) == 3
    assert generations.rollback(filled.data, None) == 1, "2 was rolled back"
    with pytest.raises(UnknownName):
        generations.rollback(filled.data, 9)


@pytest.mark.slow
def test_small_changes_leave_what_was_imported_before_them_to_go_back_to(filled: Settings, corpus: Path) -> None:
    for number in range(2):
        another(filled, corpus, number)
    ward = Collection("ward", "Ward")
    for number in range(6):
        with build(filled.data, HashedWords().identity, filled.library) as builder:
            builder.put_collection(replace(ward, title=f"Ward {number}"))
            builder.publish(message("generation.made.collection", name="ward"))
    assert generations.numbers(filled.data) == [1, 2, 8, 9], "of the third import the last, and its parent"
    (path_of(filled, 8) / "manifest.json").write_text("{}")
    another(filled, corpus, 3)
    assert generations.numbers(filled.data) == [2, 8, 9, 10], "what cannot be read takes no place"
    assert generations.rollback(filled.data, 2) == 2
    assert answers(filled, "number") == {"New 0"}


@pytest.mark.slow
def test_a_reader_keeps_its_generation_and_sees_the_new_one_when_reopened(filled: Settings, corpus: Path) -> None:
    with Library.open(filled.data) as library:
        for number in range(5):
            another(filled, corpus, number)
        assert library.path.name == "0001"
        assert titles(library, "antibiotics number") == {"Sepsis"}
        assert generations.numbers(filled.data) == [1, 4, 5, 6]
    another(filled, corpus, 9)
    assert generations.numbers(filled.data) == [5, 6, 7]
    assert answers(filled, "number") == {"New 9"}


@pytest.mark.slow
def test_a_reader_in_another_process_keeps_its_generation(filled: Settings, corpus: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from localmed.library.library import Library\n"
        "library = Library.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(filled.data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        for number in range(3):
            another(filled, corpus, number)
        assert 1 in generations.numbers(filled.data)
        child.kill()
    another(filled, corpus, 9)
    assert 1 not in generations.numbers(filled.data)


@pytest.mark.slow
def test_no_lease_is_given_on_what_is_being_removed(filled: Settings, corpus: Path) -> None:
    """Readers open while generations come and go, one kept: each gets a whole one."""
    one = Settings(filled.data, library=LibrarySettings(keep_generations=1, writer_memory_bytes=15_000_000))
    problems: list[Message] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with generations.lease(filled.data) as generation:
                problems.extend(generations.check(generation, whole=False))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(6):
        another(one, corpus, number)
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []


def test_a_reader_that_comes_while_its_generation_is_removed_takes_the_next(filled: Settings, corpus: Path) -> None:
    another(filled, corpus, 1)
    generations.switch(filled.data, 1)
    with (path_of(filled, 1) / "lease").open("rb") as pruning, ThreadPoolExecutor(1) as reader:
        fcntl.flock(pruning, fcntl.LOCK_EX)
        leased = reader.submit(name_of_served, filled.data)
        time.sleep(0.2)
        assert not leased.done()
        generations.switch(filled.data, 2)
        (path_of(filled, 1) / "lease").unlink()
        pruning.close()
        assert leased.result(10) == "0002"


@pytest.mark.slow
def test_a_removal_that_was_interrupted_is_finished_or_mended(filled: Settings, corpus: Path) -> None:
    another(filled, corpus, 1)
    (path_of(filled, 1) / "lease").unlink()
    assert generations.rollback(filled.data, 1) == 1
    verify(filled.data)
    generations.rollback(filled.data, 2)
    (path_of(filled, 1) / "lease").unlink()
    (path_of(filled, 1) / "manifest.json").unlink()
    for number in range(2, 5):
        another(filled, corpus, number)
    assert 1 not in generations.numbers(filled.data)


def test_one_writer(filled: Settings) -> None:
    with lock_writer(filled.data), pytest.raises(Busy, match="process") as caught:
        lock_writer(filled.data)
    assert caught.value.exit_code == 4
    looking = (filled.data / "writer.lock").open()  # as the doctor does
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.1, looking.close).start()
    lock_writer(filled.data).close()


# --- the generation before a series of changes is kept until a later one has served a day or was confirmed ------------


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
    assert another(few, corpus, 1) == 1
    age(few, 30)
    for number in range(2, 7):
        another(few, corpus, number)
    assert generations.numbers(few.data) == [1, 5, 6]
    age(few, 30)
    another(few, corpus, 7)
    assert generations.numbers(few.data) == [6, 7], "6 has served a day"


def test_it_outlives_a_series_until_a_change_is_confirmed(few: Settings, corpus: Path) -> None:
    another(few, corpus, 1)
    age(few, 30)
    for number in range(2, 5):
        another(few, corpus, number)
    Localmed(few.data).ok("generations", "confirm")
    pruning.prune(few.data, 2)
    assert generations.numbers(few.data) == [3, 4]


@pytest.mark.slow
def test_a_rollback_counts_as_what_was_served(few: Settings, corpus: Path) -> None:
    for number in (1, 2):
        another(few, corpus, number)
    generations.rollback(few.data, 1)
    age(few, 30)
    for number in (3, 4, 5):
        another(few, corpus, number)
    assert generations.numbers(few.data) == [1, 4, 5], "1 was served for long, 2 was not"


def test_where_it_cannot_be_read_nothing_is_removed(few: Settings, corpus: Path) -> None:
    for number in (1, 2):
        another(few, corpus, number)
    file = generations.folder(few.data) / generations.SERVED
    file.write_text(file.read_text()[:-5])
    with pytest.raises(Damaged, match="cannot be read"):
        pruning.prune(few.data, 2)
    another(few, corpus, 3)
    assert generations.swaps(few.data)[-1].number == 3
    assert datetime.fromisoformat(generations.swaps(few.data)[-1].since) <= datetime.now(UTC)


# --- a lease is how everybody comes to a generation: it stays while it is read; one that went meanwhile is no damage --


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


def test_a_prune_while_everything_is_read_is_no_damage(two: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prune is tried before each file is hashed: what is being read stays."""
    hashed, tried = intact.hash_file, []

    def pruned_first(path: Path) -> tuple[str, list[int]]:
        tried.append(pruning.prune(two.data, 1))
        return hashed(path)

    monkeypatch.setattr(intact, "hash_file", pruned_first)
    with opened(two, HashedWords()) as session:
        assert not any(check.find_all_faults(session, None).values())
        assert not check.verify_and_mend(session, SILENT)[2]
    assert tried


def test_a_generation_that_was_listed_and_then_pruned_is_no_damage(
    two: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "numbers", lambda _: [1, 2, 3])
    with opened(two, HashedWords()) as session:
        assert check.all_generation_faults(two.data).keys() == {1, 2}
        assert [row.number for row in lookups.generations_kept(session)] == [1, 2]
        assert not check.verify_and_mend(session, SILENT)[2]


def test_a_generation_that_is_being_removed_is_there_no_more(two: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removing takes a while: nobody sees a part of it, and one that is cut off is finished later."""
    seen: list[set[int]] = []

    def slowly(folder: Path, ignore_errors: bool) -> None:
        seen.append({number for number, faults in check.all_generation_faults(two.data).items() if not faults})
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
