"""Backups: whole, while others write, small where little has changed; restored whole or not at all, newest wins."""

from __future__ import annotations

import errno
import io
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.config import BackupSettings, LibrarySettings, RefreshSettings, Settings
from localmed.domain import SearchFilter, message
from localmed.domain.errors import Busy, Damaged, LibraryError, LocalmedError, UnknownName, UsageError
from localmed.domain.nights import UNCHANGED
from localmed.library import generations, layout
from localmed.library.in_force import in_force
from localmed.library.library import Library
from localmed.nightly.refresh import refresh
from localmed.process import files
from localmed.process.hooks import SILENT
from localmed.site import alerts, canary_gate, changes, uploads
from localmed.site.audit import Audit
from localmed.site.session import Session
from localmed.upkeep import backup, check, packs
from localmed.upkeep import restore as restoring
from localmed.upkeep.restore import restore
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords, described, documents, flip, import_into, opened, overwrite, verify, write
from tests.site.publishing import Publisher
from tests.site.test_in_force import killed_before
from tests.strict import needs

QUESTION = "Should antibiotics be given within one hour in sepsis?"
TEXTS = {
    "sepsis.txt": "Sepsis\n\nIn sepsis antibiotics should be given within one hour.\n",
    "fever.txt": "Fever\n\nParacetamol is given for fever.\n",
}


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, TEXTS))
    with opened(settings, HashedWords()) as session:
        changes.set_access(session, "secret", ["doctors"])
    return settings


@pytest.fixture
def session(filled: Settings) -> Iterator[Session]:
    with opened(filled, HashedWords()) as session:
        yield session


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def restored(folder: Path, tmp_path: Path, settings: Settings) -> Settings:
    """A new data folder from the newest backup, whole."""
    data = tmp_path / "restored"
    restore(folder, data, "", False, SILENT)
    verify(data)
    assert not check.generation_faults(data, None)
    assert [fault.what for fault in check.faults_beside(data)] == []
    return replace(settings, data=data)


def test_the_folder_of_one_backup_is_restored_by_its_name(
    session: Session, filled: Settings, folder: Path, tmp_path: Path
) -> None:
    first = backup.make(session, folder, SILENT).name
    backup.make(session, folder, SILENT)
    restored = Localmed(tmp_path / "restored").ok("restore", str(folder / first))
    assert first in restored.out


@pytest.mark.slow
def test_a_restored_library_answers_the_same(session: Session, filled: Settings, folder: Path, tmp_path: Path) -> None:
    (filled.data / "canaries.toml").write_text(
        f'[[canary]]\nid = "hour"\nquestion = "{QUESTION}"\nmust = "cite"\ndocuments = ["sepsis.txt"]\n'
    )
    before = session.ask(QUESTION, SearchFilter())
    made = backup.make(session, folder, SILENT)
    assert not list(backup.damaged_files(folder, made))
    with opened(restored(folder, tmp_path, filled), HashedWords()) as again:
        after = again.ask(QUESTION, SearchFilter())
        assert (after.statements, after.evidence) == (before.statements, before.evidence)
        assert canary_gate.standing(again).after["hour"].passed
        assert in_force(again.data).access == {"secret": frozenset({"doctors"})}


def test_what_has_not_changed_is_one_file_of_both_backups_and_none_of_the_data_folder(
    session: Session, folder: Path
) -> None:
    first, second = (backup.make(session, folder, SILENT) for _ in range(2))
    assert first.added_bytes > 100_000
    assert second.added_bytes < first.added_bytes / 2, "the log has grown by the first, the library has not"
    original = next(file for file in second.files if file.path.startswith("files/"))
    places = [backup.place_of(folder, made, original) for made in (first, second)]
    assert places[0].samefile(places[1])
    assert not places[1].samefile(session.data / original.path), "a flipped bit would be in both"
    written_once = [file for file in second.files if not file.path.startswith("site.sqlite")]
    largest = max(written_once, key=lambda file: file.bytes)
    flip(backup.place_of(folder, second, largest))
    assert largest.path in list(backup.damaged_files(folder, second))
    assert not list(backup.damaged_files(folder, backup.make(session, folder, SILENT))), "it is copied again"


def test_without_hard_links_everything_is_copied(
    session: Session, filled: Settings, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*paths: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    alerts.tell(session.settings, "backup", message("backup.failed", kind="28"))
    first, second = (backup.make(session, folder, SILENT) for _ in range(2))
    assert second.added_bytes == second.bytes >= first.bytes
    assert not alerts.alerts(restored(folder, tmp_path, filled).data), "this backup did not fail"


def test_a_file_is_fetched_from_the_newest_backup_that_has_it_whole(
    session: Session, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", shutil.copyfile)
    oldest, middle, newest = (backup.make(session, folder, SILENT) for _ in range(3))
    original = next(file for file in newest.files if file.path.startswith("files/"))
    (folder / newest.name / backup.MANIFEST).write_text("{}")
    backup.place_of(folder, middle, original).write_bytes(b"decayed")
    backup.fetch(folder, original.sha256, tmp_path / "mended")
    assert (tmp_path / "mended").read_bytes() == backup.place_of(folder, oldest, original).read_bytes()


def test_a_damaged_original_is_named_and_takes_no_place_of_a_good_copy(filled: Settings, folder: Path) -> None:
    nightly = replace(
        filled,
        refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1, verify=False),
        backup=BackupSettings(folder=str(folder)),
    )
    with opened(nightly, HashedWords()) as session:
        original = next((session.data / "files").iterdir())
        good, name = original.read_bytes(), f"files/{original.name}"
        overwrite(original, b"decayed")
        without = backup.make(session, folder, SILENT)
        assert without.damaged == (name,)
        assert name not in {file.path for file in without.files}, "nothing whole of it is at hand"
        assert list(backup.damaged_files(folder, without)) == [name], "what it should hold and does not"
        overwrite(original, good)
        assert not backup.make(session, folder, SILENT).damaged
        overwrite(original, b"decayed")
        made = backup.read(folder, backup.make(session, folder, SILENT).name)
        assert made.damaged == (name,)
        [stored] = [file for file in made.files if file.path == name]
        assert backup.place_of(folder, made, stored).read_bytes() == good
        assert not list(backup.damaged_files(folder, made))
        night = refresh(session)
        assert [error.code for error in night.errors] == ["backup.originals"]
        assert night.backup
        assert "backup" in {alert.kind for alert in alerts.alerts(session.data)}
    ran = Localmed(filled.data)("backup", "--folder", str(folder))
    assert (ran.code, "localmed repair" in ran.err) == (5, True)
    backup.fetch(folder, original.name, original)
    Localmed(filled.data).ok("backup", "--folder", str(folder))


def bad_sector(monkeypatch: pytest.MonkeyPatch, bad: Path) -> None:
    """From now on the disk does not give the file ``bad``."""
    opening, reading = Path.open, files.open_own

    def opened_path(path: Path, *how: Any, **more: Any) -> Any:
        if path == bad:
            raise OSError(errno.EIO, "bad sector")
        return opening(path, *how, **more)

    def opened_own(path: Path) -> Any:
        return opened_path(path) if path == bad else reading(path)

    monkeypatch.setattr(Path, "open", opened_path)
    monkeypatch.setattr(files, "open_own", opened_own)


@pytest.mark.parametrize("name", ["corpora/ward.toml", "audit.key", "generations/0001/library.sqlite"])
def test_a_file_that_cannot_be_read_is_told_by_its_name(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (session.data / "corpora").mkdir(exist_ok=True)
    (session.data / "corpora" / "ward.toml").write_text('name = "ward"\n')
    bad_sector(monkeypatch, session.data / name)
    with pytest.raises(Damaged) as raised:
        backup.make(session, folder, SILENT)
    assert name in str(raised.value)
    assert str(folder) not in str(raised.value)


@pytest.mark.parametrize("harm", ["gone", "unreadable"])
def test_an_original_that_is_gone_or_unreadable_is_named_and_its_good_copy_is_kept(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    original = next((session.data / "files").iterdir())
    name, good = f"files/{original.name}", original.read_bytes()
    backup.make(session, folder, SILENT)
    if harm == "gone":
        original.unlink()
    else:
        bad_sector(monkeypatch, original)
    made = backup.make(session, folder, SILENT)
    [stored] = [file for file in made.files if file.path == name]
    assert (made.damaged, backup.place_of(folder, made, stored).read_bytes()) == ((name,), good)


def test_an_original_that_is_pruned_meanwhile_is_no_damage(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = session.data / "files" / ("0" * 64)
    foreign.write_bytes(b"of no generation")
    contents = layout.contents

    def listed(path: Path) -> list[Path]:
        found = list(contents(path))
        foreign.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(layout, "contents", listed)
    assert not backup.make(session, folder, SILENT).damaged


def test_a_folder_that_is_in_use_or_cannot_be_moved_is_told_and_stays(
    session: Session, filled: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup.make(session, folder, SILENT)
    with Library.open(filled.data), pytest.raises(Busy):
        restore(folder, filled.data, "", True, SILENT)
    assert generations.current(filled.data).exists()
    session.site.close()

    def busy(*paths: object) -> None:
        raise OSError(errno.EBUSY, "a mount of its own")

    monkeypatch.setattr(files, "exchange", busy)
    with pytest.raises(LibraryError):
        restore(folder, filled.data, "", True, SILENT)
    assert [path.name for path in filled.data.parent.glob(".*")] == []
    verify(filled.data)


def test_what_was_cut_off_or_names_a_place_outside_is_no_backup(session: Session, folder: Path) -> None:
    whole = backup.make(session, folder, SILENT)
    (folder / backup.BUILDING / "data").mkdir(parents=True)
    assert backup.backups(folder) == [whole.name]
    made = backup.make(session, folder, SILENT)
    assert not (folder / backup.BUILDING).exists()
    forged = replace(made, files=(replace(made.files[0], path="../../elsewhere"), *made.files[1:]))
    (folder / made.name / backup.MANIFEST).write_bytes(backup.to_bytes(forged))
    with pytest.raises(Damaged):
        backup.read(folder)


def test_a_backup_of_an_earlier_version_is_told(folder: Path) -> None:
    (folder / "blocks").mkdir(parents=True)
    (folder / "20260101T000000.json").write_text("{}")
    for name in ("", "20260101T000000"):
        with pytest.raises(Damaged) as told:
            backup.read(folder, name)
        assert told.value.messages[0].code.startswith("backup.older")


def of_the_guide() -> Iterator[list[str]]:
    """The commands of restic in the administrator's guide."""
    guide = (Path(__file__).parents[2] / "docs" / "administrator.md").read_text("utf-8")
    return (line.split() for line in guide.splitlines() if line.startswith("restic "))


@pytest.mark.slow
@needs(shutil.which("restic") is not None, "restic")
def test_restic_takes_the_folder_and_gives_it_back(
    session: Session, filled: Settings, folder: Path, tmp_path: Path
) -> None:
    """The guide's commands in their order, with this test's folders in the place of the hospital's."""
    backup.make(session, folder, SILENT)
    (tmp_path / "password").write_text("of the safe")
    own = {"/mnt/backup/localmed": str(folder), "/tmp/fetched": str(tmp_path / "fetched")}
    environment = {"RESTIC_REPOSITORY": str(tmp_path / "repository"), "HOME": str(tmp_path),
                   "RESTIC_PASSWORD_FILE": str(tmp_path / "password")}  # fmt: skip
    commands = list(of_the_guide())
    assert [command[1] for command in commands] == ["init", "backup", "forget", "restore"]
    for _, *arguments in commands:
        subprocess.run(["restic", *(own.get(one, one) for one in arguments)], check=True, env=environment, timeout=120)
    fetched = tmp_path / "fetched" / folder.relative_to("/")
    settings = restored(fetched, tmp_path, filled)
    with opened(settings, HashedWords()) as again:
        assert again.ask(QUESTION, SearchFilter()).evidence


def test_only_the_newest_stay_with_what_they_name(filled: Settings, folder: Path, corpus: Path) -> None:
    few = replace(filled, backup=BackupSettings(keep=2))
    with opened(few, HashedWords()) as session:
        names = [backup.make(session, folder, SILENT).name for _ in range(4)]
        assert backup.backups(folder) == names[2:]
        assert {path.name for path in folder.iterdir() if path.is_dir()} == set(names[2:])
        (folder / names[3]).rename(folder / "20990101T000000")  # of a clock that was ahead
        made = backup.make(session, folder, SILENT)
    assert backup.backups(folder) == ["20990101T000000", made.name]


def test_a_backup_while_others_withdraw_is_whole(
    session: Session, filled: Settings, folder: Path, tmp_path: Path
) -> None:
    ended, document = threading.Event(), documents(filled)["fever.txt"]

    def toggle() -> None:
        with opened(filled, HashedWords()) as other:
            state = False
            while not ended.is_set():
                state = not state
                changes.withdraw(other, document, state, "again")

    busy = threading.Thread(target=toggle)
    busy.start()
    try:
        for number in range(3):
            backup.make(session, folder, SILENT)
            assert restored(folder, tmp_path / f"{number}", filled)
    finally:
        ended.set()
        busy.join(60)


def test_what_is_being_read_is_not_removed(
    filled: Settings, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup is made, of which only the newest stay, while an older one is restored."""
    one = replace(filled, backup=BackupSettings(keep=1))
    with opened(one, HashedWords()) as session:
        first, write = backup.make(session, folder, SILENT), backup.write
        made: list[backup.Backup] = []

        def meanwhile(*arguments: Any) -> None:
            if not made:
                changes.set_access(session, "other", ["nurses"])
                made.append(backup.make(session, folder, SILENT))
            write(*arguments)

        monkeypatch.setattr(backup, "write", meanwhile)
        restore(folder, tmp_path / "restored", first.name, False, SILENT)
        assert backup.backups(folder) == [first.name, made[0].name]
        last = backup.make(session, folder, SILENT)
    assert backup.backups(folder) == [last.name], "once nobody reads it"


@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "manifest"])
def test_a_damaged_backup_is_refused(session: Session, folder: Path, tmp_path: Path, harm: str) -> None:
    made = backup.make(session, folder, SILENT)
    largest = max(made.files, key=lambda file: file.bytes)
    manifest = folder / made.name / backup.MANIFEST
    path = manifest if harm == "manifest" else backup.place_of(folder, made, largest)
    if harm == "remove":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:-10])
    else:
        flip(path)
    with pytest.raises(Damaged):
        restore(folder, tmp_path / "restored", "", False, SILENT)
    assert not (tmp_path / "restored").exists()
    assert not [*tmp_path.glob(".restored*")]
    if harm != "manifest":
        assert list(backup.damaged_files(folder, made))
        with pytest.raises(UnknownName):
            restore(folder, tmp_path / "restored", "19990101T000000", False, SILENT)


@pytest.mark.parametrize("journal", ["whole", "lost"])
def test_what_was_withdrawn_since_stays_withdrawn(
    session: Session, filled: Settings, folder: Path, journal: str
) -> None:
    backup.make(session, folder, SILENT)
    changes.withdraw(session, documents(filled)["sepsis.txt"], True, "wrong dose")
    session.site.close()
    if journal == "lost":
        (filled.data / "site.sqlite").write_bytes(b"nothing of a journal")
    with pytest.raises(UsageError):
        restore(folder, filled.data, "", False, SILENT)
    result = restore(folder, filled.data, "", True, SILENT)
    assert (result.kept_log, result.withdrawn) == ((True, 0) if journal == "whole" else (False, 1))
    assert Path(result.beside).is_dir()
    assert not cites_sepsis(filled)
    with Audit(filled.data) as log:
        assert "withdraw" in [entry.action for entry in log.entries()]
        assert not log.verify()


@pytest.mark.slow
@pytest.mark.parametrize("one_step", [True, False])
def test_a_restore_that_is_killed_leaves_what_was_or_what_is(
    filled: Settings, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_step: bool
) -> None:
    """What was withdrawn after the backup stays withdrawn, whenever it is killed, and the next restore ends it."""
    with opened(filled, HashedWords()) as session:
        backup.make(session, folder, SILENT)
        changes.withdraw(session, documents(filled)["sepsis.txt"], True, "wrong dose")
    if not one_step:
        monkeypatch.setattr(files, "CDLL", lambda *_, **__: None)
    killed = 0
    for step in range(1, 400):
        home = tmp_path / f"home{step}"
        copy = replace(filled, data=home / "data")
        shutil.copytree(filled.data, copy.data, symlinks=True)
        if not killed_before(step, lambda data=copy.data: restore(folder, data, "", True, SILENT)):  # type: ignore[misc]
            break
        killed += 1
        if copy.data.exists() or one_step:
            assert not cites_sepsis(copy), step
        restore(folder, copy.data, "", True, SILENT)
        assert not cites_sepsis(copy), step
        assert {path.name[:12] for path in home.iterdir()} <= {"data", "data.before-"}
        shutil.rmtree(home)
    assert 10 < killed < 399


def cites_sepsis(settings: Settings) -> bool:
    with opened(settings, HashedWords()) as session:
        return any(one.document_title == "Sepsis" for one in session.ask(QUESTION, SearchFilter()).evidence)


def test_a_full_disk_leaves_no_backup(session: Session, folder: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(LocalmedError):
            backup.make(session, folder, SILENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not backup.backups(folder)
    assert backup.make(session, folder, SILENT).name in backup.backups(folder)


def test_a_folder_that_is_a_file_is_told(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LibraryError):
        backup.make(session, tmp_path / "file", SILENT)
    with pytest.raises(UsageError):
        backup.make(session, session.data / "backups", SILENT)


def test_the_night_mends_from_the_backup(filled: Settings, folder: Path) -> None:
    nightly = replace(
        filled,
        refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1),
        backup=BackupSettings(folder=str(folder)),
    )
    with opened(nightly, HashedWords()) as session:
        alerts.tell(nightly, "refresh", message("hold.standing", count=1))
        assert refresh(session).backup in backup.backups(folder)
        restored_state = restored(folder, folder.parent, nightly)
        assert not alerts.alerts(restored_state.data), "what was over is not brought back"
        served = generations.current(filled.data)
        original = next((filled.data / "files").iterdir())
        for path in (next((served / "lexical").glob("*.store")), original):
            flip(path, decayed=True)
        night = refresh(session)
        assert (len(night.faults), len(night.mended)) == (2, 2)
        assert session.ask(QUESTION, SearchFilter()).evidence
    verify(filled.data)
    shutil.rmtree(folder)


def test_uploads_and_packs_come_back_and_the_next_night_finds_them(
    tmp_path: Path, session_of_packs: Session, ours: Publisher, folder: Path
) -> None:
    session = session_of_packs
    packs.import_pack(session, ours.pack("one"))
    changes.put_collection(session, described("sent").collection)
    waiting = uploads.accept(session, "sent", "fever.txt", io.BytesIO(TEXTS["fever.txt"].encode()))
    uploads.note_look(session, waiting, message("hold.standing", count=1), True)
    uploads.publish(session, [uploads.upload(session, waiting.id)])
    left = uploads.accept(session, "sent", "gout.txt", io.BytesIO(b"Gout\n\nColchicine.\n"))
    backup.make(session, folder, SILENT)
    session.site.close()
    shutil.rmtree(session.data)
    restore(folder, session.data, "", False, SILENT)
    night = refresh(session)
    assert (night.outcome, night.errors, night.faults) == (UNCHANGED, (), ())
    assert uploads.file_of(session, uploads.upload(session, left.id)).read_text() == "Gout\n\nColchicine.\n"
    assert packs.import_pack(session, ours.pack("two", 2))
    with pytest.raises(LocalmedError):
        packs.import_pack(session, tmp_path / "publisher" / "one")


@pytest.fixture
def session_of_packs(tmp_path: Path, ours: Publisher) -> Iterator[Session]:
    settings = Settings(
        tmp_path / "data",
        library=LibrarySettings(writer_memory_bytes=15_000_000),
        refresh=RefreshSettings(settle_seconds=0.0, free_bytes=1),
    )
    with opened(settings, HashedWords()) as session:
        packs.trust_root(session, ours.root)
        yield session


def test_a_data_folder_that_is_a_link_is_restored_where_it_leads(
    session: Session, filled: Settings, folder: Path, tmp_path: Path
) -> None:
    backup.make(session, folder, SILENT)
    session.site.close()
    disk = tmp_path / "disk"
    disk.mkdir()
    filled.data.rename(disk / "data")
    filled.data.symlink_to(disk / "data")
    result = restore(folder, filled.data, "", True, SILENT)
    assert filled.data.is_symlink()
    assert Path(result.beside).parent == disk
    verify(filled.data)


def test_a_withdrawal_that_is_made_while_a_restore_ends_is_not_lost(
    session: Session, filled: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup.make(session, folder, SILENT)
    document, last_step = documents(filled)["sepsis.txt"], restoring._with_the_key_at_hand

    def meanwhile(fresh: Path) -> None:
        changes.withdraw(session, document, True, "wrong dose")
        session.site.close()
        last_step(fresh)

    monkeypatch.setattr(restoring, "_with_the_key_at_hand", meanwhile)
    with pytest.raises(Busy):
        restore(folder, filled.data, "", True, SILENT)
    monkeypatch.undo()
    assert not cites_sepsis(filled)


def test_two_restores_beside_each_other_do_not_meet(
    session: Session, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup.make(session, folder, SILENT)
    data, written = tmp_path / "new", restoring._verify

    def second(fresh: Path) -> None:
        with pytest.raises(Busy):
            restore(folder, data, "", False, SILENT)
        written(fresh)

    monkeypatch.setattr(restoring, "_verify", second)
    restore(folder, data, "", False, SILENT)
    verify(data)
    names = [{path.name for path in (place / "files").iterdir()} for place in (data, session.data)]
    assert names[0] == names[1]


def test_the_folder_of_the_settings_is_one_place_for_everybody(
    filled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/of-ours")
    assert backup.folder_of(replace(filled, backup=BackupSettings(folder="~/b"))) == Path("/home/of-ours/b")
    assert backup.folder_of(replace(filled, backup=BackupSettings(folder=""))) is None
