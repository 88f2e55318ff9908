"""A lost link is damage: nothing is answered, built or removed until it was put right, and that loses nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.cli.main import run
from localmed.config import BackupSettings, Settings
from localmed.domain.errors import Damaged, NoLibrary
from localmed.library import generations, originals, pruning
from localmed.library.library import Library
from localmed.process.hooks import SILENT
from localmed.upkeep import backup, repair
from tests.fakes import answers, documents, hashes, import_into, opened, overwrite, verify, withdraw, write
from tests.words import pattern, said

TEXTS = {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n", "b.txt": "Fever\n\nGive antibiotics rarely.\n"}


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    """Two generations, of which the first is served again, and a withdrawal."""
    import_into(settings, write(corpus, TEXTS))
    import_into(settings, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    generations.rollback(settings.data, 1)
    withdraw(settings.data, documents(settings)["a.txt"])
    return settings


def code(settings: Settings, *command: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["--data", str(settings.data), *command])
    return int(ended.value.code or 0)


def test_without_the_link_nothing_is_answered_built_or_removed(
    filled: Settings, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled.data / "current").unlink()
    for lost in (False, True):
        if lost:
            (filled.data / "in_force.json").unlink()
        before = hashes(filled.data)
        calls: list[Callable[[], object]] = [
            lambda: Library.open(filled.data),
            lambda: import_into(filled, corpus),
            lambda: pruning.prune(filled.data, 1),
            lambda: originals.prune(filled.data) if generations.current(filled.data) else None,
        ]
        for call in calls:
            with pytest.raises(Damaged, match="localmed repair"):
                call()
        assert hashes(filled.data) == before
        for command in (
            ("ask", "antibiotics"),
            ("generations", "prune", "--yes"),
            ("import", str(corpus), "-c", "ward"),
        ):
            assert code(filled, *command) == Damaged.exit_code
            assert "localmed repair" in capsys.readouterr().err


def test_repair_serves_what_was_served_and_the_withdrawal_holds(
    filled: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled.data / "current").unlink()
    assert code(filled, "repair", "--yes") == 0
    assert "use generation 1" in capsys.readouterr().out
    assert generations.current(filled.data).name == "0001"
    verify(filled.data)
    assert answers(filled, "antibiotics") == {"Fever"}
    assert code(filled, "repair") == 0
    assert "nothing to repair" in capsys.readouterr().out


def test_repair_takes_no_generation_that_is_damaged(filled: Settings) -> None:
    catalogue = generations.path_of(filled.data, 1) / "library.sqlite"
    whole = catalogue.read_bytes()
    overwrite(catalogue, whole[:-1] + bytes([whole[-1] ^ 1]))
    for lost in (False, True):
        if lost:
            (filled.data / "current").unlink()
        step = repair.plan(filled.data)
        assert step is not None
        assert step.number == 2
    (generations.path_of(filled.data, 2) / "manifest.json").unlink()
    with pytest.raises(Damaged, match="backup"):
        repair.plan(filled.data)


@pytest.mark.parametrize("lost", [False, True])
def test_what_is_lost_is_shown_and_asked_about(
    filled: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    generations.switch(filled.data, 2)
    overwrite(generations.path_of(filled.data, 2) / "library.sqlite", b"damaged")
    assert code(filled, "ask", "antibiotics") == Damaged.exit_code
    assert "localmed repair" in capsys.readouterr().err
    if lost:
        (filled.data / "current").unlink()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert code(filled, "repair") == 130
    out = capsys.readouterr().out
    assert out.count("generation 0002 is damaged") == 1
    assert "Without generation 2 this change is lost" in out
    assert "import into ward" in out
    assert "Do this?" in out
    assert "Done" not in out
    assert code(filled, "repair", "--yes") == 0
    assert capsys.readouterr().out.endswith("use generation 1, which is intact\nDone\n")


def test_what_a_backup_has_whole_is_copied_from_it(
    filled: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of the generation in use, its catalogue, and an original that is gone: nothing is lost."""
    folder = tmp_path / "backups"
    settings = replace(filled, backup=BackupSettings(folder=str(folder)))
    (filled.data / "localmed.toml").write_text(f'[backup]\nfolder = "{folder}"\n')
    with opened(settings) as session:
        backup.make(session, folder, SILENT)
    served = generations.current(filled.data)
    overwrite(served / "library.sqlite", b"damaged")
    next((filled.data / "files").iterdir()).unlink()
    assert code(filled, "repair", "--yes") == 0
    assert "0001/library.sqlite" in capsys.readouterr().out
    verify(filled.data)
    assert generations.current(filled.data) == served
    assert answers(filled, "antibiotics") == {"Fever"}
    assert code(filled, "repair") == 0
    assert said("generation.repair_nothing") in capsys.readouterr().out


def test_generations_that_are_gone_beside_withdrawals_are_damage(filled: Settings, corpus: Path) -> None:
    (filled.data / "current").unlink()
    generations.folder(filled.data).rename(filled.data.parent / "lost")
    for call in (lambda: Library.open(filled.data), lambda: import_into(filled, corpus)):
        with pytest.raises(Damaged, match=pattern("generation.all_lost")):
            call()


def test_a_first_import_cut_off_before_it_is_served_is_finished_by_the_next(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(generations, "switch", crash)
    with pytest.raises(KeyboardInterrupt):
        import_into(settings, write(corpus, TEXTS))
    monkeypatch.undo()
    with pytest.raises(NoLibrary):
        Library.open(settings.data)
    assert import_into(settings, corpus).count("unchanged") == len(TEXTS)
    verify(settings.data)
    assert answers(settings, "antibiotics") == {"Sepsis", "Fever"}
