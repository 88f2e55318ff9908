"""Content packs: what an import of one does, and what no publisher can build."""

from __future__ import annotations

import shutil

import pytest

from localmed.domain import Document, SearchFilter, Status
from localmed.domain.errors import InputError, UsageError
from localmed.library import layout
from localmed.site import importing, lookups
from localmed.site.session import Session
from localmed.upkeep import packs, signing
from tests.site.publishing import MANIFEST, Publisher, titles


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
