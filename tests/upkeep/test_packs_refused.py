"""Content packs: every attack of TUF's list, every hostile stick and a clock ten years off are refused, whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localmed.domain import SearchFilter
from localmed.domain.errors import InputError
from localmed.site.session import Session
from localmed.upkeep import packs, signing, trust
from tests.site.publishing import SEPSIS, Publisher, publisher, refused, titles

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
    assert session.find("antibiotics septic shock", SearchFilter(), 5, 5).found.hits


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


def _missing(folder: Path) -> None:
    (folder / "targets/documents/wards/sepsis.txt").unlink()


def _longer(folder: Path) -> None:
    with (folder / "targets/documents/wards/sepsis.txt").open("a") as file:
        file.truncate(2**40)  # a terabyte of nothing, which is not read to its end


STICKS: dict[Callable[[Path], None], str] = {
    _link: "pack.not_regular",
    _linked_folder: "pack.not_regular",
    _device: "pack.not_regular",
    _missing: "pack.incomplete",
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


@pytest.mark.slow
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
    assert session.find("antibiotics septic shock", SearchFilter(), 5, 5).found.hits


def test_too_little_room_is_told_before_anything_is_copied(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SPARE", 1e15)
    assert refused(session, ours.pack("one")) == "pack.no_room"
