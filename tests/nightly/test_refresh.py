"""The nightly refresh: one change, looked at before it is served; what keeps it back stays back until somebody acts."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localmed.config import BackupSettings, RefreshSettings, Settings
from localmed.domain import Message, SearchFilter
from localmed.domain.errors import Busy, CanariesLost, Cancelled, Damaged, LibraryError, UnknownName
from localmed.domain.nights import FAILED, INTERRUPTED, KEPT_BACK, SERVED, UNCHANGED, Night
from localmed.library import generations
from localmed.nightly import nights
from localmed.nightly.refresh import refresh
from localmed.process.hooks import Cancel, Hooks
from localmed.site import alerts, canary_gate, changes, holds, importing
from localmed.site.audit import Audit
from localmed.site.session import Session
from localmed.site.site import Site
from localmed.upkeep import backup
from tests.fakes import HashedWords, described, documents, flip, opened, verify, write
from tests.site.asked import CANARIES, SEPSIS

FEVER = "Fever\n\nParacetamol is given for fever.\n"


@pytest.fixture
def watched(settings: Settings, corpus: Path) -> Settings:
    """Two collections imported from folders, canaries, and a refresh that waits for no file to settle."""
    settings = replace(settings, refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1))
    write(corpus, {"ward/sepsis.txt": SEPSIS, "ward/fever.txt": FEVER, "house/rules.txt": "Rules\n\nWash hands.\n"})
    with opened(settings, HashedWords()) as session:
        for name in ("ward", "house"):
            importing.import_paths(session, [corpus / name], described(name))
    (settings.data / "canaries.toml").write_text(CANARIES)
    return settings


@pytest.fixture
def session(watched: Settings) -> Iterator[Session]:
    with opened(watched, HashedWords()) as session:
        yield session


def settled(settings: Settings) -> None:
    """Nothing that a change could leave half done."""
    verify(settings.data)
    assert not (settings.data / "generations" / "building").exists()


def files_by(night: Night, change: str) -> set[str]:
    return {Path(line.path).name for line in night.files if line.change == change}


@pytest.mark.slow
def test_all_collections_become_one_generation(session: Session, watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/new.txt": "Gout\n\nColchicine is given in gout.\n", "ward/fever.txt": FEVER + "\nRest.\n"})
    (corpus / "house" / "rules.txt").unlink()
    write(corpus, {"house/other.txt": "Other\n\nKnock first.\n"})
    before = int(generations.current(watched.data).name)
    night = refresh(session)
    assert (night.outcome, night.before, night.generation) == (SERVED, before, before + 1)
    assert files_by(night, "added") == {"new.txt", "other.txt"}
    assert files_by(night, "changed") == {"fever.txt"}
    assert files_by(night, "removed") == {"rules.txt"}
    assert night.canaries == 2
    assert not night.moved
    assert {name for name, _ in night.seconds} == {"check", "import"}
    assert nights.nights(watched.data)[0] == night, "the report is kept as it was returned"
    assert refresh(session).outcome == UNCHANGED
    assert int(generations.current(watched.data).name) == before + 1
    settled(watched)


@pytest.mark.slow
def test_a_lost_must_cite_keeps_the_night_back_of_which_a_backup_is_made(
    watched: Settings, corpus: Path, tmp_path: Path
) -> None:
    served = generations.current(watched.data)
    (corpus / "ward" / "sepsis.txt").unlink()
    nightly = replace(watched, backup=BackupSettings(folder=str(tmp_path / "backups")))
    with opened(nightly, HashedWords()) as session, pytest.raises(CanariesLost) as lost:
        refresh(session)
    assert lost.value.exit_code == 7
    assert generations.current(watched.data) == served
    settled(watched)
    night = nights.nights(watched.data)[0]
    assert (night.outcome, [line.id for line in night.moved]) == (KEPT_BACK, ["sepsis-hour"])
    assert {one.kind for one in alerts.alerts(watched.data)} == {"refresh", "canaries", "holds"}
    assert [(Path(one.path).name, one.sha256) for one in holds.holds(watched.data)] == [("sepsis.txt", "")]
    made = backup.read(tmp_path / "backups")
    assert (night.backup, made.generation) == (made.name, int(served.name)), "of what is served"
    assert not list(backup.damaged_files(tmp_path / "backups", made))


@pytest.mark.slow
def test_what_was_kept_back_is_left_until_it_is_released(session: Session, watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/sepsis.txt": "Sepsis\n\nNothing is known.\n"})
    with pytest.raises(CanariesLost):
        refresh(session)
    write(corpus, {"ward/fever.txt": FEVER + "\nRest.\n"})
    night = refresh(session)
    assert (night.outcome, files_by(night, "left"), files_by(night, "changed")) == (
        SERVED,
        {"sepsis.txt"},
        {"fever.txt"},
    )
    assert [one.kind for one in alerts.alerts(watched.data)] == ["holds"]
    with pytest.raises(UnknownName):
        holds.release(session, ["/nowhere.txt"])
    assert holds.release(session) == 1
    with pytest.raises(CanariesLost):
        refresh(session)
    write(corpus, {"ward/sepsis.txt": SEPSIS + "\nMeasure lactate.\n"})
    assert files_by(refresh(session), "changed") == {"sepsis.txt"}, "other bytes are tried though it is on hold"
    write(corpus, {"ward/sepsis.txt": "Sepsis\n\nNothing is known.\n"})
    holds.release(session)
    canary_gate.accept(session, ["sepsis-hour"], "the guideline was taken back by its authors")
    assert refresh(session).outcome == SERVED
    assert not holds.holds(watched.data)
    with Audit(watched.data) as log:
        noted = [(entry.action, entry.outcome) for entry in log.entries()]
    assert ("canary accept", "accepted") in noted
    assert ("hold release", "released") in noted
    assert ("refresh", "failed: CanariesLost") in noted


@pytest.mark.slow
def test_a_rollback_is_looked_at_and_sticks(session: Session, watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/gout.txt": "Gout\n\nColchicine is given in gout.\n"})
    refresh(session)
    changes.rollback(session, None)
    assert "gout.txt" not in documents(watched)
    night = refresh(session)
    assert (night.outcome, files_by(night, "left")) == (UNCHANGED, {"gout.txt"})
    assert "gout.txt" not in documents(watched)
    holds.release(session)
    assert files_by(refresh(session), "added") == {"gout.txt"}


@pytest.mark.slow
def test_a_rollback_that_would_lose_a_canary_is_kept_back(session: Session, watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/gout.txt": "Gout\n\nColchicine is given in gout.\n"})
    refresh(session)
    served = generations.current(watched.data)
    mine = (
        '[[canary]]\nid = "gout"\nquestion = "Is colchicine given in gout?"\nmust = "cite"\ndocuments = ["gout.txt"]\n'
    )
    (watched.data / "canaries.toml").write_text(mine)
    with pytest.raises(CanariesLost):
        changes.rollback(session, None)
    assert generations.current(watched.data) == served
    assert not holds.holds(watched.data), "what is served is nobody's mistake"


@pytest.mark.slow
def test_what_was_served_before_the_nights_is_never_pruned(session: Session, watched: Settings, corpus: Path) -> None:
    folder = generations.folder(watched.data)
    (folder / "served.json").write_text('[{"number": 2, "since": "2026-01-01T00:00:00+00:00"}]')
    for number in range(5):
        write(corpus, {"ward/fever.txt": f"{FEVER}\nNight {number}.\n"})
        assert refresh(session).outcome == SERVED
    assert 2 in generations.numbers(watched.data), "served for long; no night after it has served a day"


@pytest.mark.slow
def test_a_file_that_is_being_written_is_left(watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/fever.txt": FEVER + "\nHalf of a sen"})
    slow = replace(watched, refresh=replace(watched.refresh, settle_seconds=3600.0))
    with opened(slow, HashedWords()) as session:
        night = refresh(session)
    assert (night.outcome, files_by(night, "left") & {"fever.txt"}) == (UNCHANGED, {"fever.txt"})
    with opened(watched, HashedWords()) as session:
        assert files_by(refresh(session), "changed") == {"fever.txt"}


class Waiting(HashedWords):
    """An encoder that says when it began to encode passages, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.may_go_on = threading.Event(), threading.Event()

    def encode(self, texts, kind):  # type: ignore[no-untyped-def]
        if kind == "passage":
            self.began.set()
            assert self.may_go_on.wait(60)
        return np.asarray(super().encode(texts, kind), np.float32)


@pytest.mark.slow
def test_a_withdrawal_holds_at_once_while_a_refresh_goes_on(watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/gout.txt": "Gout\n\nColchicine is given in gout.\n"})
    encoder, ends = Waiting(), []
    with Site(watched, encoder) as site, opened(watched, HashedWords()) as reader:
        night = threading.Thread(target=lambda: ends.append(refresh(Session(site, reader.caller))))
        night.start()
        assert encoder.began.wait(60)
        question = "Is paracetamol given for fever?"
        assert reader.ask(question, SearchFilter()).evidence
        start = time.monotonic()
        changes.withdraw(reader, documents(watched)["fever.txt"], True, "wrong")
        assert not [one for one in reader.ask(question, SearchFilter()).evidence if one.document_title == "Fever"]
        assert time.monotonic() - start < 60
        with pytest.raises(Busy):
            refresh(reader)
        encoder.may_go_on.set()
        night.join(120)
        assert [one.outcome for one in ends] == [SERVED]
        assert not [one for one in reader.ask(question, SearchFilter()).evidence if one.document_title == "Fever"]
        assert nights.nights(watched.data)[0].withdrawn == ("Fever",)


@pytest.mark.slow
def test_an_interrupted_refresh_leaves_what_was_served_and_goes_on(watched: Settings, corpus: Path) -> None:
    served = generations.current(watched.data)
    write(corpus, {f"ward/{number}.txt": f"Title {number}\n\nText {number}.\n" for number in range(3)})

    def interrupt(done: float, _total: float, name: str) -> None:
        if "passages" in name and done:
            raise KeyboardInterrupt

    with opened(watched, HashedWords()) as session, pytest.raises(KeyboardInterrupt):
        refresh(session, Hooks(progress=interrupt))
    assert nights.nights(watched.data)[0].outcome == INTERRUPTED
    assert generations.current(watched.data) == served
    settled(watched)
    encoder = HashedWords()
    with opened(watched, encoder) as session:
        assert refresh(session).outcome == SERVED
    assert not [text for text in encoder.encoded if "Text 1" in text], "encoded before the interruption"


def test_a_nearly_full_disk_begins_nothing(watched: Settings) -> None:
    full = replace(watched, refresh=replace(watched.refresh, free_bytes=2**60))
    with opened(full, HashedWords()) as session, pytest.raises(LibraryError):
        refresh(session)
    assert {one.kind for one in alerts.alerts(watched.data)} == {"disk", "refresh"}
    with opened(watched, HashedWords()) as session:
        refresh(session)
    assert not alerts.alerts(watched.data)


def test_a_flipped_bit_is_found_at_night_and_nothing_answers_from_it(session: Session, watched: Settings) -> None:
    served = generations.current(watched.data)
    path = next(path for path in sorted((served / "lexical").iterdir()) if path.suffix == ".store")
    flip(path, decayed=True)
    shutil.rmtree(watched.data / "files")  # from which it would be made anew
    with pytest.raises(Damaged):
        refresh(session)
    assert "damage" in {one.kind for one in alerts.alerts(watched.data)}
    with pytest.raises(Damaged):
        session.ask("Should antibiotics be given within one hour in sepsis?", SearchFilter())


def test_a_setting_that_loses_a_canary_is_told(watched: Settings) -> None:
    with opened(watched, HashedWords()) as session:
        assert not canary_gate.standing(session).lost
    leaflets = replace(watched.tiers, presets={"leaflets": (("leaflet",),)})
    losing = replace(watched, tiers=leaflets, ask=replace(watched.ask, preset="leaflets"))
    with opened(losing, HashedWords()) as session:
        assert canary_gate.standing(session).lost == ("sepsis-hour",)
    assert [one.kind for one in alerts.alerts(watched.data)] == ["canaries"]
    with opened(watched, HashedWords()) as session:
        assert not canary_gate.standing(session).lost
    assert not alerts.alerts(watched.data)


def test_a_librarians_import_is_waited_for(watched: Settings, corpus: Path) -> None:
    write(corpus, {"ward/new.txt": "Gout\n\nColchicine is given in gout.\n"})
    busy, told = generations.lock_writer(watched.data), list[str]()

    def started(step: Message) -> None:
        told.append(step.code)
        if step.code == "refresh.waiting":
            threading.Timer(0.5, busy.close).start()

    with opened(watched, HashedWords()) as session:
        assert refresh(session, Hooks(started=started)).outcome == SERVED
    assert told.count("refresh.waiting") == 1


def test_an_import_is_not_waited_for_for_ever_nor_by_whoever_gives_up(watched: Settings) -> None:
    cancel = Cancel()
    hooks = Hooks(started=lambda step: cancel.cancel() if step.code == "refresh.waiting" else None, cancel=cancel)
    hasty = replace(watched, refresh=replace(watched.refresh, wait_seconds=0.7))
    with generations.lock_writer(watched.data):
        with opened(hasty, HashedWords()) as session, pytest.raises(Busy):
            refresh(session)
        with opened(watched, HashedWords()) as session, pytest.raises(Cancelled):
            refresh(session, hooks)


def test_a_fault_of_the_program_at_night_is_told_and_a_backup_made(
    watched: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a patient's name")

    monkeypatch.setattr(canary_gate, "standing", fail)
    nightly = replace(watched, backup=BackupSettings(folder=str(tmp_path / "backups")))
    with opened(nightly, HashedWords()) as session, pytest.raises(RuntimeError):
        refresh(session)
    night = nights.nights(watched.data)[0]
    assert (night.outcome, night.backup) == (FAILED, backup.read(tmp_path / "backups").name)
    told = alerts.alerts(watched.data)
    assert [one.kind for one in told] == ["refresh"]
    assert "patient" not in repr((night, told))


def test_what_was_reinstated_is_not_told_as_withdrawn(session: Session, watched: Settings) -> None:
    listed = {it.title: it for it in documents(watched).values()}
    for title in ("Sepsis", "Fever"):
        changes.withdraw(session, listed[title], True, "recalled")
    changes.withdraw(session, listed["Sepsis"], False, "a mistake")
    assert refresh(session).withdrawn == ("Fever",)


def test_an_import_that_loses_a_canary_is_kept_back_and_told_until_a_change_passes(
    session: Session, watched: Settings, corpus: Path
) -> None:
    served = generations.current(watched.data)
    write(corpus, {"ward/sepsis.txt": "Sepsis\n\nNothing is known.\n"})
    with pytest.raises(CanariesLost):
        importing.import_paths(session, [corpus / "ward"], described("ward"))
    assert generations.current(watched.data) == served
    settled(watched)
    assert "canaries" in {one.kind for one in alerts.alerts(watched.data)}
    write(corpus, {"ward/sepsis.txt": SEPSIS, "ward/gout.txt": "Gout\n\nColchicine is given in gout.\n"})
    importing.import_paths(session, [corpus / "ward"], described("ward"))
    assert "canaries" not in {one.kind for one in alerts.alerts(watched.data)}
