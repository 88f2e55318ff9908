"""A lost link is damage until it was put right; what all generations share is made good from the originals."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import BackupSettings, RefreshSettings, Settings
from localmed.domain import Message, SearchFilter, Status
from localmed.domain.errors import Damaged, NoLibrary
from localmed.domain.nights import UNCHANGED
from localmed.library import generations, originals, pruning
from localmed.library.in_force import in_force
from localmed.library.library import Library
from localmed.nightly.refresh import refresh
from localmed.process.hooks import SILENT
from localmed.site import changes, importing
from localmed.site.session import Session
from localmed.upkeep import backup, repair
from tests.cli.conftest import Localmed
from tests.fakes import (
    HashedWords,
    answers,
    described,
    documents,
    flip,
    hashes,
    import_into,
    jsonl,
    opened,
    overwrite,
    verify,
    withdraw,
    write,
)
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


def test_without_the_link_nothing_is_answered_built_or_removed(filled: Settings, corpus: Path) -> None:
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
            assert "localmed repair" in Localmed(filled.data)(*command).failed(Damaged.exit_code)


def test_repair_serves_what_was_served_and_the_withdrawal_holds(filled: Settings) -> None:
    (filled.data / "current").unlink()
    assert "use generation 1" in Localmed(filled.data).ok("repair", "--yes").out
    assert generations.current(filled.data).name == "0001"
    verify(filled.data)
    assert answers(filled, "antibiotics") == {"Fever"}
    assert "nothing to repair" in Localmed(filled.data).ok("repair").out


def test_repair_takes_no_generation_that_is_damaged(filled: Settings) -> None:
    flip(generations.path_of(filled.data, 1) / "library.sqlite")
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
def test_what_is_lost_is_shown_and_asked_about(filled: Settings, lost: bool) -> None:
    localmed = Localmed(filled.data)
    generations.switch(filled.data, 2)
    overwrite(generations.path_of(filled.data, 2) / "library.sqlite", b"damaged")
    assert "localmed repair" in localmed("ask", "antibiotics").failed(Damaged.exit_code)
    if lost:
        (filled.data / "current").unlink()
    asked = localmed("repair", stdin="n\n")
    assert asked.code == 130
    out = asked.out
    assert out.count("generation 0002 is damaged") == 1
    assert "Without generation 2 this change is lost" in out
    assert "import into ward" in out
    assert "Do this?" in out
    assert "Done" not in out
    assert localmed.ok("repair", "--yes").out.endswith("use generation 1, which is intact\nDone\n")


def test_what_a_backup_has_whole_is_copied_from_it(filled: Settings, tmp_path: Path) -> None:
    """A file of the generation in use, its catalogue, and an original that is gone: nothing is lost."""
    folder = tmp_path / "backups"
    settings = replace(filled, backup=BackupSettings(folder=str(folder)))
    (filled.data / "localmed.toml").write_text(f'[backup]\nfolder = "{folder}"\n')
    with opened(settings) as session:
        backup.make(session, folder, SILENT)
    served = generations.current(filled.data)
    overwrite(served / "library.sqlite", b"damaged")
    next((filled.data / "files").iterdir()).unlink()
    assert "0001/library.sqlite" in Localmed(filled.data).ok("repair", "--yes").out
    verify(filled.data)
    assert generations.current(filled.data) == served
    assert answers(filled, "antibiotics") == {"Fever"}
    assert said("generation.repair_nothing") in Localmed(filled.data).ok("repair").out


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


# --- made anew from its originals and the stored vectors, where every generation shares the damage --------------------


QUESTION = "Should antibiotics be given within one hour in sepsis?"
LEAFLETS = {
    "a.txt": "Sepsis\n\nIn sepsis antibiotics should be given within one hour.\n",
    "b.txt": "Sepsis at home\n\nIn sepsis antibiotics should be given within one hour, said the old house rule.\n",
    "c": jsonl(*({"id": str(n), "title": f"Leaf {n}", "text": f"Leaflet {n} on fever."} for n in range(5))),
}


@pytest.fixture
def marked(settings: Settings, corpus: Path) -> Settings:
    """Two generations, a mark and a withdrawal; the folder that it came from is gone."""
    settings = replace(settings, refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1))
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, LEAFLETS)], described("ward"))
        importing.import_paths(session, [write(corpus, {"d.txt": "Stroke\n\nThrombolysis.\n"})], described("ward"))
        with session.workspace() as workspace:
            catalogue = workspace.library.catalogue
            named = {Path(one.source).name: one for one in catalogue.documents()}
        changes.withdraw(session, named["b.txt"], True, "test")
        changes.mark(session, named["d.txt"], Status.SUPERSEDED, "", "test")
    shutil.rmtree(corpus)
    return settings


@pytest.fixture
def damaged(marked: Settings) -> Settings:
    """A bit is flipped in the stored texts and in the vectors, which all generations share."""
    served = generations.current(marked.data)
    for files in ("lexical/*.store", "passages.lance/data/*.lance"):
        for path in served.glob(files):
            flip(path, decayed=True)
    return marked


@pytest.fixture
def session(damaged: Settings) -> Iterator[Session]:
    with opened(damaged, HashedWords()) as session:
        yield session


def answer(settings: Settings) -> tuple[object, ...]:
    with opened(settings, HashedWords()) as session:
        made = session.ask(QUESTION, SearchFilter())
        return made.status, made.receipts, made.evidence


@pytest.mark.slow
def test_repair_makes_it_anew_from_the_originals(marked: Settings, request: pytest.FixtureRequest) -> None:
    before, known = answer(marked), documents(marked)
    session = request.getfixturevalue("session")
    with pytest.raises(Damaged):
        session.ask(QUESTION, SearchFilter())
    step = repair.plan(marked.data)
    assert step is not None
    assert step.anew
    assert step.number == int(generations.current(marked.data).name)
    with opened(marked, encoder := HashedWords()) as other:
        repair.repair(other, step)
    assert not encoder.encoded, "vectors come from the cache"
    verify(marked.data)
    assert answer(marked) == before
    assert documents(marked) == known, "with the mark"
    assert [*in_force(marked.data).withdrawals.values()][-1].withdrawn
    assert repair.plan(marked.data) is None


@pytest.mark.slow
def test_the_night_makes_it_anew(marked: Settings, session: Session) -> None:
    night = refresh(session)
    assert isinstance(night.mended[-1], Message)
    assert night.mended[-1].code == "generation.made.rebuild"
    assert night.outcome == UNCHANGED
    assert answer(marked)[1]


@pytest.mark.parametrize("harm", ["original gone", "original damaged", "catalogue"])
def test_what_has_no_whole_source_is_not_made_anew(damaged: Settings, harm: str) -> None:
    original = max((damaged.data / "files").iterdir(), key=lambda path: path.stat().st_size)
    if harm == "original gone":
        original.unlink()
    elif harm == "original damaged":
        flip(original, decayed=True)
    else:
        for number in generations.numbers(damaged.data):
            flip(generations.path_of(damaged.data, number) / "library.sqlite", decayed=True)
    with pytest.raises(Damaged):
        repair.plan(damaged.data)
