"""Content packs: built, verified, imported; every attack of TUF's list and every hostile stick refused, whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain import SearchFilter, Status
from localmed.errors import InputError, LocalmedError, UsageError
from localmed.operations import importing, lookups, packs, signing, stored, trust
from localmed.session import Session, local_caller
from localmed.site import Site
from tests.fakes import HashedWords

MANIFEST = 'name = "{name}"\ntitle = "Wards"\nkind = "guideline"\n'
SEPSIS = "Sepsis: give antibiotics within one hour of recognition of septic shock.\n"
WARFARIN = "Warfarin: check the INR every day until it is stable for two days.\n"


@dataclass(frozen=True)
class Publisher:
    """Who makes packs: two keys, a root, and what they arrange."""

    folder: Path

    @property
    def keys(self) -> list[Path]:
        return [self.folder / "a.pem", self.folder / "b.pem"]

    @property
    def root(self) -> Path:
        return self.folder / "root.json"

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def write(self, name: str, text: str) -> None:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def pack(self, name: str, version: int = 1, **changes: Any) -> Path:
        out = self.folder / name
        keys = changes.get("keys", self.keys)
        packs.build(self.source, out, [self.root], keys, version, changes.get("days", 30))
        return out


def publisher(folder: Path) -> Publisher:
    folder.mkdir()
    made = Publisher(folder)
    for key in made.keys:
        signing.make_key(key)
    signing.make_root(made.root, [signing.load_key(key) for key in made.keys])
    made.write("pack.toml", 'name = "wards"\ntitle = "Ward guidelines"\n')
    made.write("collections/wards.toml", MANIFEST.format(name="wards"))
    made.write("documents/wards/sepsis.txt", SEPSIS)
    made.write("documents/wards/warfarin.txt", WARFARIN)
    return made


@pytest.fixture
def ours(tmp_path: Path) -> Publisher:
    return publisher(tmp_path / "publisher")


@pytest.fixture
def session(tmp_path: Path, ours: Publisher) -> Iterator[Session]:
    settings = Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    with Site(settings, HashedWords()) as site:
        session = Session(site, local_caller(settings))
        packs.trust_root(session, ours.root)
        yield session


def titles(session: Session) -> set[str]:
    return {Path(document.key).name for document in lookups.documents(session)}


def refused(session: Session, folder: Path) -> str:
    """The code of the one error that ``folder`` is refused with; nothing of it has arrived."""
    before = sorted((session.data / "packs").glob("*"))
    with pytest.raises(LocalmedError) as caught:
        packs.import_pack(session, folder)
    assert sorted((session.data / "packs").glob("*")) == before
    assert caught.value.exit_code in (2, 3)
    return caught.value.message.code


def test_a_pack_is_imported_in_one_generation_and_replaced_by_its_next_version(
    session: Session, ours: Publisher
) -> None:
    done = packs.import_pack(session, ours.pack("one"))
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    assert done.reports["wards"].generation == 1
    (ours.source / "documents/wards/warfarin.txt").unlink()
    ours.write("collections/more.toml", MANIFEST.format(name="more"))
    ours.write("documents/more/stroke.txt", "Stroke: call the team at once.\n")
    again = packs.import_pack(session, ours.pack("two", 2))
    assert titles(session) == {"sepsis.txt", "stroke.txt"}
    assert {report.generation for report in again.reports.values()} == {2}
    assert packs.inspect(session, ours.folder / "two").documents == 2
    assert not list(stored.top(session.data))


def test_withdrawals_are_in_force_before_the_documents_are_imported(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.import_pack(session, ours.pack("one"))
    sepsis = next(document for document in lookups.documents(session) if "sepsis" in document.key)
    (ours.source / "documents/wards/sepsis.txt").unlink()
    ours.write("withdrawals.toml", f'[[withdrawn]]\nfile = "{sepsis.file_sha256}"\nreason = "recalled"\n')
    statuses: list[Status] = []

    def imported(*_: object) -> dict[str, object]:
        statuses.append(lookups.document(session, sepsis.id).status)
        return {}

    monkeypatch.setattr(importing, "import_collections", imported)
    done = packs.import_pack(session, ours.pack("two", 2))
    assert done.withdrawn == [sepsis.title]
    assert statuses == [Status.WITHDRAWN]


def test_retracted_studies_and_texts_not_yet_there_are_withdrawn(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    content = next(document for document in lookups.documents(session) if "warfarin" in document.key).content
    ours.write("withdrawals.toml", f'[[withdrawn]]\ncontent = "{"0" * 64}"\ntitle = "Elsewhere"\nreason = "wrong"\n')
    ours.write("retractions.txt", "pmid:1  # not here\n")
    done = packs.import_pack(session, ours.pack("two", 2))
    assert done.withdrawn == ["Elsewhere"]
    ours.write("withdrawals.toml", f'[[withdrawn]]\ncontent = "{content}"\nreason = "wrong"\n')
    (ours.source / "documents/wards/warfarin.txt").write_text("Warfarin: the new edition.\n")
    packs.import_pack(session, ours.pack("three", 3))
    with session.workspace() as workspace:
        hits = workspace.search("INR every day until stable", SearchFilter(), 5).hits
    assert not [hit for hit in hits if "every day" in hit.passage.text]


# --- the attacks of TUF's list ----------------------------------------------------------------------------------------


def _tampered(folder: Path, _: Path) -> None:
    (folder / "targets/documents/wards/sepsis.txt").write_text(SEPSIS.replace("one hour", "one week"))


def _tampered_metadata(folder: Path, _: Path) -> None:
    path = folder / "metadata/targets.json"
    path.write_text(path.read_text().replace('"length":', '"length":1'))


def _rolled_back(folder: Path, before: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(before, folder)


def _mixed(folder: Path, before: Path) -> None:
    shutil.copy(before / "metadata/targets.json", folder / "metadata/targets.json")


def _mixed_snapshot(folder: Path, before: Path) -> None:
    for name in ("targets.json", "snapshot.json"):
        shutil.copy(before / "metadata" / name, folder / "metadata" / name)


def _one_key(folder: Path, _: Path) -> None:
    for name in ("targets", "snapshot", "timestamp"):
        path = folder / "metadata" / f"{name}.json"
        values = json.loads(path.read_text())
        del values["signatures"][1:]
        path.write_text(json.dumps(values))


def _one_key_twice(folder: Path, _: Path) -> None:
    _one_key(folder, folder)
    path = folder / "metadata/targets.json"
    values = json.loads(path.read_text())
    values["signatures"] *= 2
    path.write_text(json.dumps(values))


def _renamed(folder: Path, _: Path) -> None:
    path = folder / "targets/pack.toml"
    path.write_text(path.read_text().replace('"wards"', '"others"'))


ATTACKS: dict[Callable[[Path, Path], None], str] = {
    _tampered: "pack.altered",
    _tampered_metadata: "pack.signatures",
    _rolled_back: "pack.older",
    _mixed: "pack.older",
    _mixed_snapshot: "pack.older",
    _one_key: "pack.signatures",
    _one_key_twice: "pack.signatures",
    _renamed: "pack.altered",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__[1:])
def test_an_attack_is_refused(session: Session, ours: Publisher, attack: Callable[[Path, Path], None]) -> None:
    before = ours.pack("one")
    packs.import_pack(session, before)
    packs.import_pack(session, ours.pack("two", 2))
    folder = ours.pack("three", 3)
    attack(folder, before)
    assert refused(session, folder) == ATTACKS[attack]
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    packs.import_pack(session, ours.pack("four", 4))  # and the right one is taken afterwards


def test_the_wrong_root_is_refused(session: Session, tmp_path: Path) -> None:
    assert refused(session, publisher(tmp_path / "stranger").pack("one")) == "pack.signatures"


def test_without_a_root_nothing_is_taken(session: Session, ours: Publisher) -> None:
    (session.data / "trust" / "root.json").unlink()
    assert refused(session, ours.pack("one")) == "pack.no_root"


def test_one_key_is_not_enough_until_the_other_has_signed(session: Session, ours: Publisher) -> None:
    folder = ours.pack("one", keys=ours.keys[:1])
    assert refused(session, folder) == "pack.signatures"
    assert signing.add_signatures(folder, [signing.load_key(ours.keys[1])]) == 2
    packs.import_pack(session, folder)


def test_an_expired_pack_is_refused_and_what_was_imported_serves_on(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    folder = ours.pack("two", 2)
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    signing.sign_folder(folder, [ours.root], [signing.load_key(key) for key in ours.keys], 2, past)
    assert refused(session, folder) == "pack.expired"
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    assert session.search("antibiotics septic shock", SearchFilter(), 5).hits


def test_a_frozen_pack_is_refused_once_its_time_is_over(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pack again and again, so that a newer one is never seen: taken while it holds, no longer."""
    folder = ours.pack("one", days=1)
    packs.import_pack(session, folder)
    packs.import_pack(session, folder)
    import tuf.ngclient._internal.trusted_metadata_set as inside

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=2)

    monkeypatch.setattr(inside.datetime, "datetime", Later)
    assert refused(session, folder) == "pack.expired"


def test_a_new_root_is_followed_and_the_old_keys_no_longer_sign(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    old = [signing.load_key(key) for key in ours.keys]
    fresh = [ours.folder / "c.pem", ours.folder / "d.pem"]
    for key in fresh:
        signing.make_key(key)
    second = ours.folder / "root2.json"
    signing.make_root(second, [signing.load_key(key) for key in fresh], ours.root, old)
    packs.build(ours.source, ours.folder / "two", [ours.root, second], fresh, 2, 30)
    packs.import_pack(session, ours.folder / "two")
    assert refused(session, ours.pack("three", 3)) == "pack.signatures"


# --- hostile sticks ---------------------------------------------------------------------------------------------------


def _link(folder: Path) -> None:
    path = folder / "targets/documents/wards/sepsis.txt"
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")


def _linked_folder(folder: Path) -> None:
    path = folder / "targets/documents"
    path.rename(folder.parent / "outside")
    path.symlink_to(folder.parent / "outside")


def _device(folder: Path) -> None:
    path = folder / "targets/documents/wards/sepsis.txt"
    path.unlink()
    os.mkfifo(path)


def _gone(folder: Path) -> None:
    (folder / "targets/documents/wards/sepsis.txt").unlink()


def _longer(folder: Path) -> None:
    with (folder / "targets/documents/wards/sepsis.txt").open("a") as file:
        file.truncate(2**40)  # a terabyte of nothing, which is not read to its end


STICKS: dict[Callable[[Path], None], str] = {
    _link: "pack.not_regular",
    _linked_folder: "pack.not_regular",
    _device: "pack.not_regular",
    _gone: "pack.incomplete",
    _longer: "pack.altered",
}


@pytest.mark.parametrize("harm", STICKS, ids=lambda harm: harm.__name__[1:])
def test_a_hostile_stick_is_refused(session: Session, ours: Publisher, harm: Callable[[Path], None]) -> None:
    folder = ours.pack("one")
    harm(folder)
    assert refused(session, folder) == STICKS[harm]


@pytest.mark.parametrize("name", ["../../outside", "/etc/outside", "a/../../b", "a//b", "a\\b", "documents/x/..", ""])
def test_a_path_out_of_the_pack_is_refused_though_it_is_signed(
    session: Session, ours: Publisher, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "names_in", lambda _: ["pack.toml"])
    from tuf.api.metadata import TargetFile

    folder = ours.folder / "one"
    (folder / "targets").mkdir(parents=True)
    shutil.copy(ours.source / "pack.toml", folder / "targets")
    described = TargetFile.from_file(name, str(ours.source / "pack.toml"))
    monkeypatch.setattr(TargetFile, "from_file", classmethod(lambda *_: described))
    monkeypatch.setattr(signing, "names_in", lambda _: [name or "x"])
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    signing.sign_folder(folder, [ours.root], [signing.load_key(key) for key in ours.keys], 1, soon)
    if not name:
        described.path = name
    assert refused(session, folder) in ("pack.path", "pack.lacks")
    assert not (session.data.parent / "outside").exists()


def test_a_stick_pulled_out_half_way_leaves_what_was_and_the_next_try_goes_on(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.import_pack(session, ours.pack("one"))
    ours.write("documents/wards/zoster.txt", "Zoster: aciclovir within 72 hours.\n")
    folder = ours.pack("two", 2)
    copy = trust.copy_described

    def pulled(source: Path, name: str, described: trust.Described, target: Path) -> None:
        if name.endswith("zoster.txt"):
            raise InputError("pack.incomplete", folder=name)
        copy(source, name, described, target)

    with monkeypatch.context() as patched:
        patched.setattr(trust, "copy_described", pulled)
        assert refused(session, folder) == "pack.incomplete"
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    packs.import_pack(session, folder)
    assert "zoster.txt" in titles(session)


def test_a_zip_bomb_in_a_signed_pack_ends_in_quarantine(session: Session, ours: Publisher) -> None:
    import zipfile

    with zipfile.ZipFile(ours.source / "documents/wards/bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"{number}.txt", b"0" * 40_000_000)
    done = packs.import_pack(session, ours.pack("one"))
    assert done.reports["wards"].count("quarantined")
    assert {"sepsis.txt", "warfarin.txt"} <= titles(session)


# --- the clock --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "code"), [(3653, "pack.expired"), (-3653, "pack.clock")])
def test_a_clock_ten_years_off_lets_nothing_in(
    session: Session, ours: Publisher, days: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tuf.ngclient._internal.trusted_metadata_set as inside

    packs.import_pack(session, ours.pack("one"))
    folder = ours.pack("two", 2)

    class Off(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr(inside.datetime, "datetime", Off)
    monkeypatch.setattr(trust, "datetime", Off)
    assert refused(session, folder) == code
    assert session.search("antibiotics septic shock", SearchFilter(), 5).hits


def test_too_little_room_is_told_before_anything_is_copied(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SPARE", 1e15)
    assert refused(session, ours.pack("one")) == "pack.no_room"


# --- the publisher ----------------------------------------------------------------------------------------------------


def test_a_pack_that_no_site_could_import_is_not_built(ours: Publisher) -> None:
    from localmed.library.intact import sha256_of

    ours.write("documents/unknown/x.txt", "x")
    with pytest.raises(InputError, match="manifest"):
        ours.pack("one")
    shutil.rmtree(ours.source / "documents/unknown")
    digest = sha256_of(ours.source / "documents/wards/sepsis.txt")
    ours.write("withdrawals.toml", f'[[withdrawn]]\nfile = "{digest}"\nreason = "recalled"\n')
    with pytest.raises(InputError, match="same pack"):
        ours.pack("one")
    assert not (ours.folder / "one").exists()


def test_keys_are_kept_apart_and_never_written_over(ours: Publisher) -> None:
    assert (ours.keys[0].stat().st_mode & 0o777) == 0o600
    with pytest.raises(UsageError, match="already"):
        signing.make_key(ours.keys[0])
    with pytest.raises(UsageError, match="different keys"):
        signing.make_root(ours.folder / "r.json", [signing.load_key(ours.keys[0])] * 2)
