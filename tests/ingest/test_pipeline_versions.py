"""A record that several files hold stands once, in its newest version, whatever is added, changed or taken away."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, SearchFilter, Status, message
from localmed.domain.errors import UsageError
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.ingest.pipeline import Report
from localmed.library.library import Library, build
from localmed.site import changes
from tests.fakes import HashedWords, answers, documents, import_into, opened, titles, verify, withdraw, write
from tests.words import phrase, said, words

LATEST = Manifest(Collection("pubmed", "PubMed"), "pubmed", FieldMapping(options={"versions": "latest"}))
BASE, UPDATE, LATER = "pubmed26n0001.xml", "pubmed26n0900.xml", "pubmed26n0901.xml"
LINK = '<CommentsCorrectionsList><CommentsCorrections RefType="RetractionIn"/></CommentsCorrectionsList>'


def articles(texts: dict[str, str], deleted: tuple[str, ...] = ()) -> str:
    parts = [
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article><ArticleTitle>Study {pmid}</ArticleTitle>"
        f"<Abstract><AbstractText>{text}</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
        for pmid, text in texts.items()
    ]
    pmids = "".join(f"<PMID>{pmid}</PMID>" for pmid in deleted)
    more = f"<DeleteCitation>{pmids}</DeleteCitation>" if deleted else ""
    return f"<PubmedArticleSet>{''.join(parts)}{more}</PubmedArticleSet>"


def retracted(text: str, pmid: str) -> str:
    return text.replace(f"<PMID>{pmid}</PMID><Article>", f"<PMID>{pmid}</PMID>{LINK}<Article>")


def brought(settings: Settings, folder: Path, **files: str) -> Report:
    write(folder, {f"{name}.xml": text for name, text in files.items()})
    return import_into(settings, folder, manifest=LATEST)


def held(settings: Settings) -> dict[str, tuple[str, str]]:
    """PMID -> the file it stands from, and its text."""
    verify(settings.data)
    with Library.open(settings.data) as library:
        return {
            document.key: (
                Path(document.source).name,
                " ".join(p.text for p in library.lexical.of_document(document.id)),
            )
            for document in library.catalogue.documents()
        }


FILES = {
    BASE: articles({"1": "Aspirin once.", "2": "Heparin once."}),
    UPDATE: articles({"1": "Aspirin twice.", "3": "Insulin once."}),
    LATER: articles({"1": "Aspirin thrice."}),
}
NEWEST = {
    "1": (LATER, "Aspirin thrice."),
    "2": (BASE, "Heparin once."),
    "3": (UPDATE, "Insulin once."),
}


@pytest.mark.parametrize("order", list(permutations(FILES)), ids=lambda names: "-".join(name[10:12] for name in names))
def test_the_last_file_wins_in_whatever_order_they_come(settings: Settings, corpus: Path, order: list[str]) -> None:
    for name in order:
        write(corpus, {name: FILES[name]})
        import_into(settings, corpus, manifest=LATEST)
    assert held(settings) == NEWEST
    assert import_into(settings, corpus, manifest=LATEST).generation == 0


WITHOUT_LATER = {name: FILES[name] for name in (BASE, UPDATE)}
CASES: dict[str, tuple[dict[str, str], dict[str, tuple[str, str]]]] = {
    "gone": (WITHOUT_LATER, NEWEST | {"1": (UPDATE, "Aspirin twice.")}),
    "two are gone": ({BASE: FILES[BASE]}, {"1": (BASE, "Aspirin once."), "2": (BASE, "Heparin once.")}),
    "no longer in it": (
        FILES | {LATER: articles({"4": "Morphine once."})},
        NEWEST | {"1": (UPDATE, "Aspirin twice."), "4": (LATER, "Morphine once.")},
    ),
    "goes bad": (
        FILES | {LATER: FILES[LATER][:40], BASE: articles({"1": "Aspirin never.", "2": "Heparin twice."})},
        NEWEST | {"2": (BASE, "Heparin twice.")},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_newer_version_that_goes_gives_the_older_one_back(settings: Settings, corpus: Path, case: str) -> None:
    report = import_into(settings, write(corpus, FILES), manifest=LATEST)
    assert held(settings) == NEWEST
    assert said("import.newer", count=1, name=LATER) in {words(line.detail) for line in report.lines}
    files, expected = CASES[case]
    for name in FILES.keys() - files.keys():
        (corpus / name).unlink()
    import_into(settings, write(corpus, files), manifest=LATEST)
    assert held(settings) == expected


def test_only_adding_does_not_read_older_files_again(settings: Settings, corpus: Path) -> None:
    write(corpus, {name: FILES[name] for name in (BASE, UPDATE)})
    import_into(settings, corpus, manifest=LATEST)
    write(corpus, {LATER: FILES[LATER]})
    report = import_into(settings, corpus, manifest=LATEST)
    outcomes = {Path(line.path).name: line.outcome for line in report.lines if line.outcome in ("read", "unchanged")}
    assert outcomes == {BASE: "unchanged", UPDATE: "unchanged", LATER: "read"}


def test_a_deletion_takes_the_record_away_until_its_file_goes(settings: Settings, corpus: Path) -> None:
    brought(settings, corpus, n1=articles({"1": "Aspirin.", "2": "Heparin.", "3": "Insulin."}))
    brought(settings, corpus, n2=articles({"3": "Insulin."}, deleted=("1", "9")))
    assert held(settings)["3"] == ("n2.xml", "Insulin."), "a revision with the same text is no copy"
    deleted = documents(settings)["1"]
    assert (deleted.status, deleted.passages, words(deleted.notes)) == (Status.WITHDRAWN, 0, ("deleted by PubMed",))
    assert answers(settings, "aspirin") == set()
    assert held(settings)["2"] == ("n1.xml", "Heparin.")
    brought(settings, corpus, n1=articles({"1": "Aspirin again.", "2": "Heparin."}))
    assert held(settings)["1"] == ("n2.xml", "")
    (corpus / "n2.xml").unlink()
    import_into(settings, corpus, manifest=LATEST)
    assert held(settings) == {"1": ("n1.xml", "Aspirin again."), "2": ("n1.xml", "Heparin.")}


def test_what_was_decided_about_a_record_holds_for_its_next_version(settings: Settings, corpus: Path) -> None:
    brought(settings, corpus, n1=articles({"1": "Aspirin.", "2": "Heparin."}))
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.mark(documents(settings)["1"], Status.SUPERSEDED, "", "old")
        builder.publish(message("generation.made.upgrade"))
    withdraw(settings.data, documents(settings)["2"])
    brought(settings, corpus, n2=articles({"1": "Aspirin revised.", "2": "Heparin revised."}))
    assert documents(settings)["1"].status is Status.SUPERSEDED
    with Library.open(settings.data) as library:
        assert titles(library, "aspirin heparin revised", SearchFilter()) == set()


@pytest.fixture
def corrected(settings: Settings, corpus: Path) -> dict[str, tuple[str, str]]:
    """What is held once a second file has revised, retracted and deleted records of the first."""
    brought(settings, corpus, n1=articles({"1": "Aspirin.", "2": "Heparin.", "3": "Insulin.", "4": "Morphine."}))
    later = articles({"1": "Aspirin revised.", "2": "Heparin."}, deleted=("3",))
    brought(settings, corpus, n2=retracted(later, "2"))
    versions = held(settings)
    assert {key: name for key, (name, _) in versions.items()} == dict.fromkeys("123", "n2.xml") | {"4": "n1.xml"}
    assert documents(settings)["2"].status is documents(settings)["3"].status is Status.WITHDRAWN
    return versions


@pytest.mark.slow
def test_a_file_that_is_only_away_keeps_its_versions(
    settings: Settings, corpus: Path, tmp_path: Path, corrected: dict[str, tuple[str, str]]
) -> None:
    away = (corpus / "n2.xml").rename(tmp_path / "away.xml")
    with (corpus / "n1.xml").open("a") as first:
        first.write("\n")
    import_into(settings, corpus / "n1.xml", manifest=LATEST)
    assert held(settings) == corrected
    assert documents(settings)["2"].status is documents(settings)["3"].status is Status.WITHDRAWN
    assert answers(settings, "heparin insulin") == set()
    away.rename(corpus / "n2.xml")
    import_into(settings, corpus, manifest=LATEST)
    assert held(settings) == corrected
    (corpus / "n2.xml").unlink()  # gone for good: told by the folder
    import_into(settings, corpus, manifest=LATEST)
    assert {name for name, _ in held(settings).values()} == {"n1.xml"}
    assert {document.status for document in documents(settings).values()} == {Status.CURRENT}


@pytest.mark.slow
def test_a_file_in_another_folder_takes_its_versions_along_and_back(
    settings: Settings, corpus: Path, tmp_path: Path, corrected: dict[str, tuple[str, str]]
) -> None:
    moved = tmp_path / "z" / "n2.xml"
    moved.parent.mkdir()
    (corpus / "n2.xml").rename(moved)
    import_into(settings, moved, manifest=LATEST)
    assert held(settings) == corrected
    assert {documents(settings)[key].source for key in "123"} == {str(moved)}
    moved.rename(corpus / "n2.xml")
    import_into(settings, corpus, manifest=LATEST)
    assert held(settings) == corrected
    assert {documents(settings)[key].source for key in "123"} == {str(corpus / "n2.xml")}
    assert import_into(settings, corpus, manifest=LATEST).generation == 0


def test_no_mark_lifts_a_later_retraction(settings: Settings, corpus: Path) -> None:
    text = articles({"1": "Aspirin."})
    brought(settings, corpus, n1=text)
    with opened(settings, HashedWords()) as session:
        changes.mark(session, documents(settings)["1"], Status.SUPERSEDED)
        changes.mark(session, documents(settings)["1"], Status.CURRENT)
    brought(settings, corpus, n2=retracted(text, "1"))
    assert documents(settings)["1"].status is Status.WITHDRAWN
    with opened(settings, HashedWords()) as session, pytest.raises(UsageError, match="withdrawn by its source"):
        changes.mark(session, documents(settings)["1"], Status.CURRENT)
    assert answers(settings, "aspirin") == set()
    brought(settings, corpus, n3=text)
    assert documents(settings)["1"].status is Status.CURRENT


def test_without_the_option_each_file_keeps_its_own(settings: Settings, corpus: Path) -> None:
    write(corpus, {"n1.xml": FILES[BASE], "n2.xml": articles({"1": "Aspirin twice."}, deleted=("2",))})
    report = import_into(settings, corpus, manifest=Manifest(Collection("pubmed", "PubMed"), "pubmed"))
    assert set(documents(settings)) == {"n1.xml#1", "n1.xml#2", "n2.xml#1"}
    assert any(
        line.outcome == "quarantined" and phrase("reader.pubmed_deleted") in words(line.detail) for line in report.lines
    )
    import_into(settings, corpus, manifest=LATEST)
    assert set(documents(settings)) == {"1", "2"}, "brought over"
