"""Content packs: what an import of one does, what no publisher can build, what is refused."""

from __future__ import annotations

import shutil
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localmed.domain import Document, SearchFilter, Status
from localmed.domain.errors import InputError, UsageError
from localmed.library import layout
from localmed.library.intact import sha256_of
from localmed.site import importing, lookups
from localmed.site.session import Session
from localmed.upkeep import packs, signing, verifier
from localmed.upkeep.verifier import Manifest, Refused
from tests.site.publishing import MANIFEST, Publisher, key_pair, publisher, refused, titles


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
    assert len(packs.inspect(session, ours.folder / "two").documents) == 2
    assert not layout.unknown(session.data)


def test_withdrawals_are_in_force_before_the_documents_are_imported(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.import_pack(session, ours.pack("one"))
    sepsis = next(document for document in lookups.documents(session) if "sepsis" in document.key)
    (ours.source / "documents/wards/sepsis.txt").unlink()
    ours.write("withdrawals.toml", f'[[withdrawn]]\nfile = "{sepsis.file_sha256}"\nreason = "recalled"\n')
    statuses: list[Status] = []

    def imported(*_: object, **__: object) -> dict[str, object]:
        statuses.append(lookups.document(session, sepsis.id).status)
        return {}

    monkeypatch.setattr(importing, "import_together", imported)
    done = packs.import_pack(session, ours.pack("two", 2))
    assert done.withdrawn == [sepsis.title]
    assert statuses == [Status.WITHDRAWN]


@pytest.mark.slow
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
        hits = workspace.find("INR every day until stable", SearchFilter(), 5).found.hits
    assert not [hit for hit in hits if "every day" in hit.passage.text]


def test_a_retracted_study_is_withdrawn_by_its_identifier(session: Session, ours: Publisher) -> None:
    ours.write("retractions.txt", "# of this year\n\nPMID:1  # retracted in March\n")
    [withdrawal] = packs.inspect(session, ours.pack("one")).withdrawals
    names = ("pmid:1", "doi:1")
    studies = [Document(name, "wards", name, "", "en", "", "", "", "", identifiers=(name,)) for name in names]
    assert [study.id for study in studies if withdrawal.names(study)] == ["pmid:1"]


# --- the publisher ----------------------------------------------------------------------------------------------------


def test_a_pack_that_no_site_could_import_is_not_built(ours: Publisher) -> None:
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


# --- packs that are refused arrive in no part, and what was imported serves on; the rules: test_verifier.py -----------


def test_an_altered_pack_and_an_older_one_are_refused(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    packs.import_pack(session, ours.pack("two", 2))
    folder = ours.pack("three", 3)
    (folder / "content/documents/wards/sepsis.txt").write_text("Sepsis: within one week.\n")
    assert refused(session, folder) == "pack.altered"
    assert refused(session, ours.folder / "one") == "pack.older"
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    packs.import_pack(session, ours.pack("four", 4))  # and the right one is taken afterwards


def test_without_a_root_nothing_is_taken(session: Session, ours: Publisher) -> None:
    (session.data / packs.TRUST).unlink()
    assert refused(session, ours.pack("one")) == "pack.no_root"


def test_one_key_is_not_enough_until_the_other_has_signed(session: Session, ours: Publisher) -> None:
    folder = ours.pack("one", keys=ours.keys[:1])
    assert refused(session, folder) == "pack.signatures"
    assert signing.add_signatures(folder, [signing.load_key(ours.keys[1])]) == 2
    packs.import_pack(session, folder)


def test_a_new_root_is_followed_and_the_old_keys_no_longer_sign(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    second = ours.folder / "new/root2.json"
    fresh = key_pair(second.parent)
    signing.make_root(second, fresh, ours.root, [signing.load_key(key) for key in ours.keys])
    keys = [second.parent / "a.pem", second.parent / "b.pem"]
    for name, version in (("two", 2), ("again", 1)):
        packs.build(ours.source, ours.folder / name, second, keys, version, 30)
    packs.import_pack(session, ours.folder / "two")
    assert refused(session, ours.pack("three", 3)) == "pack.signatures"
    packs.trust_root(session, ours.root)  # as a bundle that is older does
    assert refused(session, ours.folder / "three") == "pack.signatures"
    assert refused(session, ours.folder / "again") == "pack.older"


def test_another_publisher_begins_anew(session: Session, ours: Publisher, tmp_path: Path) -> None:
    packs.import_pack(session, ours.pack("two", 2))
    other = publisher(tmp_path / "other")
    assert refused(session, other.pack("one")) == "pack.signatures"
    packs.trust_root(session, other.root)
    packs.import_pack(session, other.folder / "one")
    assert refused(session, ours.folder / "two") == "pack.signatures"


@pytest.mark.parametrize(("days", "code"), [(3653, "pack.expired"), (-3653, "pack.clock")])
def test_a_clock_ten_years_off_lets_nothing_in(
    session: Session, ours: Publisher, days: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the pack that was taken, shown again and again so that a newer one is never seen."""
    old = ours.folder / "old"
    packs.import_pack(session, ours.pack("one"))
    ours.pack("old", 2)
    signers = [signing.load_key(key) for key in ours.keys]
    signing.sign_folder(old, ours.root, signers, "pack", "wards", 2, 30, datetime.now(UTC) - timedelta(days=3660))

    class Off(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=days)

    assert refused(session, old) == "pack.expired"
    monkeypatch.setattr(verifier, "datetime", Off)
    for folder in (old, ours.folder / "one", ours.pack("three", 3)):
        assert refused(session, folder) == code
    assert session.find("antibiotics septic shock", SearchFilter(), 5, 5).found.hits


def test_a_stick_pulled_out_half_way_leaves_what_was_and_the_next_try_goes_on(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs.import_pack(session, ours.pack("one"))
    ours.write("documents/wards/zoster.txt", "Zoster: aciclovir within 72 hours.\n")
    folder = ours.pack("two", 2)
    copy = Manifest.copy

    def pulled(manifest: Manifest, name: str, target: Path) -> None:
        if name.endswith("zoster.txt"):
            raise Refused("pack.incomplete", name=name)
        copy(manifest, name, target)

    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "copy", pulled)
        assert refused(session, folder) == "pack.incomplete"
    assert titles(session) == {"sepsis.txt", "warfarin.txt"}
    packs.import_pack(session, folder)
    assert "zoster.txt" in titles(session)


@pytest.mark.slow
def test_a_zip_bomb_in_a_signed_pack_ends_in_quarantine(session: Session, ours: Publisher) -> None:
    with zipfile.ZipFile(ours.source / "documents/wards/bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"{number}.txt", b"0" * 40_000_000)
    done = packs.import_pack(session, ours.pack("one"))
    assert done.reports["wards"].count("quarantined")
    assert {"sepsis.txt", "warfarin.txt"} <= titles(session)


def test_too_little_room_is_told_before_anything_is_copied(
    session: Session, ours: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SPARE", 1e15)
    assert refused(session, ours.pack("one")) == "pack.no_room"
