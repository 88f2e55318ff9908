"""Content packs that lie ready are taken in by the nightly refresh: withdrawals first, documents within its change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import RefreshSettings
from localmed.domain import SearchFilter, Status
from localmed.domain.errors import CanariesLost, LocalmedError
from localmed.domain.nights import SERVED, UNCHANGED
from localmed.library import generations
from localmed.nightly import nights
from localmed.nightly.refresh import refresh
from localmed.people import history
from localmed.process.hooks import Hooks
from localmed.site import alerts, canary_gate, holds, importing, lookups
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from localmed.upkeep import packs
from tests.fakes import HashedWords, described, write
from tests.site.publishing import MANIFEST, Publisher, titles

FEVER = "Fever\n\nParacetamol is given for fever.\n"
QUESTION = "Should antibiotics be given within one hour of recognition of septic shock?"
CANARY = f"""
[[canary]]
id = "sepsis"
question = "{QUESTION}"
must = "cite"
documents = ["sepsis.txt"]
says = ["one hour"]
"""


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    (tmp_path / "stick").mkdir()
    return tmp_path / "stick"


@pytest.fixture
def night(session: Session, stick: Path) -> Iterator[Session]:
    """The session of a site that looks for packs on the stick; files need not settle but those of packs."""
    settings = replace(session.settings, refresh=RefreshSettings(packs=(str(stick),), free_bytes=1))
    with Site(settings, HashedWords()) as site:
        yield Session(site, local_caller(settings))


def laid(ours: Publisher, stick: Path, version: int) -> Path:
    """A pack of what is arranged, on the stick."""
    return ours.pack(f"made-{version}", version).rename(stick / f"pack-{version}")


def test_a_pack_is_part_of_the_nights_one_generation(
    night: Session, ours: Publisher, stick: Path, tmp_path: Path
) -> None:
    importing.import_paths(night, [write(tmp_path / "ward", {"fever.txt": FEVER})], described("ward"))
    laid(ours, stick, 1)
    report = refresh(night)
    assert (report.outcome, report.generation, report.errors) == (SERVED, 2, ())
    assert titles(night) == {"fever.txt", "sepsis.txt", "warfarin.txt"}
    assert {name for name, _ in report.seconds} == {"packs", "check", "import"}
    assert dict(report.seconds)["packs"] > 0.01, "taking a pack counts"
    assert not packs.pending_packs(night.data)
    assert refresh(night).outcome == UNCHANGED


@pytest.mark.slow
def test_a_withdrawal_holds_though_the_pack_is_kept_back(night: Session, ours: Publisher, stick: Path) -> None:
    laid(ours, stick, 1)
    refresh(night)
    answer = night.ask("Is the INR checked every day?", SearchFilter())
    assert answer.evidence
    history.keep(night, "", "Is the INR checked every day?", answer)
    warfarin = next(document for document in lookups.documents(night) if "warfarin" in document.key)
    (night.data / "canaries.toml").write_text(CANARY)
    ours.write("withdrawals.toml", f'[[withdrawn]]\nfile = "{warfarin.file_sha256}"\nreason = "recalled"\n')
    (ours.source / "documents/wards/warfarin.txt").unlink()
    ours.write("documents/wards/sepsis.txt", "Sepsis\n\nNothing is known.\n")
    laid(ours, stick, 2)
    served = generations.current(night.data)
    with pytest.raises(CanariesLost):
        refresh(night)
    assert generations.current(night.data) == served
    assert lookups.document(night, warfarin.id).status is Status.WITHDRAWN
    report = nights.nights(night.data)[0]
    assert (report.withdrawn, report.recalled) == ((warfarin.title,), 1)
    assert not history.holds(night, answer)

    report = refresh(night)  # the same stick, while the change is on hold
    assert {Path(line.path).name for line in report.files if line.change == "left"} >= {"sepsis.txt"}
    holds.release(night)
    canary_gate.accept(night, ["sepsis"], "the publisher has taken the sentence back")
    assert refresh(night).outcome == SERVED
    assert titles(night) == {"sepsis.txt"}
    assert not packs.pending_packs(night.data)


def test_a_new_collection_on_hold_does_not_come_in_empty(
    night: Session, ours: Publisher, stick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_gate, "FIRST", 1)  # so that one better section is enough to lose the canary
    importing.import_paths(night, [write(tmp_path / "ward", {"fever.txt": FEVER})], described("ward"))
    malaria = "Which medicine prevents malaria in travellers?"
    (night.data / "canaries.toml").write_text(
        f'[[canary]]\nid = "f"\nquestion = "{malaria}"\nmust = "cite"\ndocuments = ["fever.txt"]\n'
    )
    ours.write("collections/travel.toml", MANIFEST.format(name="travel"))
    ours.write("documents/travel/malaria.txt", f"Malaria\n\n{malaria[:-1]}: doxycycline prevents malaria.\n")
    for name in ("sepsis", "warfarin"):
        (ours.source / f"documents/wards/{name}.txt").unlink()
    laid(ours, stick, 1)
    with pytest.raises(CanariesLost):
        refresh(night)
    assert refresh(night).outcome == UNCHANGED
    assert titles(night) == {"fever.txt"}
    assert packs.pending_packs(night.data) == ["wards"]


def test_a_refused_pack_stops_nothing_else(night: Session, ours: Publisher, stick: Path, tmp_path: Path) -> None:
    importing.import_paths(night, [write(tmp_path / "ward", {"fever.txt": FEVER})], described("ward"))
    pack = laid(ours, stick, 1)
    (pack / "content/documents/wards/sepsis.txt").write_text("Sepsis: altered.\n")
    report = refresh(night)
    assert (report.outcome, [error.code for error in report.errors]) == (UNCHANGED, ["refresh.pack_left"])
    assert [one.kind for one in alerts.alerts(night.data)] == ["refresh"]
    assert titles(night) == {"fever.txt"}
    assert not packs.pending_packs(night.data)


def test_a_pack_whose_import_was_cut_off_is_finished_without_the_stick(
    night: Session, ours: Publisher, stick: Path
) -> None:
    pack = laid(ours, stick, 1)

    def interrupt(done: float, _total: float, name: str) -> None:
        if "passages" in name and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refresh(night, Hooks(progress=interrupt))
    pack.rename(ours.folder / "pulled out")
    assert packs.pending_packs(night.data) == ["wards"]
    assert refresh(night).outcome == SERVED
    assert titles(night) == {"sepsis.txt", "warfarin.txt"}


def test_a_pack_whose_collection_cannot_be_brought_in_changes_nothing(session: Session, ours: Publisher) -> None:
    packs.import_pack(session, ours.pack("one"))
    ours.write("collections/more.toml", MANIFEST.format(name="more"))
    ours.write("documents/more/stroke.txt", "Stroke: call the team at once.\n")
    for name in ("sepsis", "warfarin"):
        (ours.source / f"documents/wards/{name}.txt").unlink()
    (ours.source / "documents/wards/.keep").write_text("")  # a folder without a document
    served = generations.current(session.data)
    with pytest.raises(LocalmedError):
        packs.import_pack(session, ours.pack("two", 2))
    assert generations.current(session.data) == served, "nothing of the pack, if not all of it"
