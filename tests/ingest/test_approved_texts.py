"""An approval is of a text: it does not pass to another one that comes under the same name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import ChunkSettings, Settings
from localmed.domain import Document
from localmed.ingest.pipeline import Report
from localmed.site import changes, lookups
from localmed.site.governing import Change
from tests.fakes import HashedWords, documents, import_into, jsonl, opened, write
from tests.words import said, words

SET = {"owner": "Dr Lin", "approver": "Dr Wu", "review_by": "2030-01", "edition": "2026-05"}
FIRST, SECOND = "Sepsis\n\nGive antibiotics within one hour.\n", "Sepsis\n\nGive antibiotics within three hours.\n"
LAPSED = said("governance.lapsed")
DATED = said("governance.dated", fields="edition, review by")


def govern(settings: Settings, document: Document, values: dict[str, str]) -> None:
    with opened(settings, HashedWords()) as session:
        changes.govern(session, [Change((document,), values)])


def notes(report: Report) -> list[str]:
    return [words(line.detail) for line in report.lines if line.outcome == "note"]


@pytest.fixture
def approved(settings: Settings, corpus: Path) -> Settings:
    """A library of one approved file."""
    import_into(settings, write(corpus, {"a.txt": FIRST}))
    govern(settings, documents(settings)["a.txt"], SET)
    return settings


def test_another_text_has_no_approver_and_that_is_said(approved: Settings, corpus: Path) -> None:
    assert notes(import_into(approved, write(corpus, {"a.txt": SECOND}))) == [LAPSED, DATED]
    after = documents(approved)["a.txt"]
    assert (after.governance.owner, after.governance.approver, after.edition) == ("Dr Lin", "", "2026-05")
    assert notes(import_into(approved, corpus)) == []
    govern(approved, after, {"owner": "Dr He"})
    assert documents(approved)["a.txt"].governance.approver == "", "another field does not approve the new text"
    assert notes(import_into(approved, write(corpus, {"a.txt": FIRST}))) == [DATED]
    assert documents(approved)["a.txt"].governance.approver == "Dr Wu", "the approved text is back"
    import_into(approved, write(corpus, {"a.txt": SECOND}))
    govern(approved, documents(approved)["a.txt"], {"approver": "Dr Zhou"})
    assert documents(approved)["a.txt"].governance.approver == "Dr Zhou"
    write(corpus, {"other.txt": "Fever"})
    (corpus / "a.txt").unlink()
    import_into(approved, corpus)
    assert notes(import_into(approved, write(corpus, {"a.txt": FIRST}))) == [LAPSED], "removed in between"
    assert documents(approved)["a.txt"].governance.approver == ""


@pytest.mark.slow
def test_a_file_that_is_moved_or_read_in_another_way_stays_approved(
    approved: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / "a.txt").rename(corpus / "moved.txt")
    import_into(approved, corpus)
    assert documents(approved)["moved.txt"].governance.approver == "Dr Wu"
    write(corpus, {"two.jsonl": jsonl({"id": "1", "text": "One."}, {"id": "2", "text": "Two."})})
    import_into(approved, corpus)
    govern(approved, documents(approved)["two.jsonl#1"], {"approver": "Dr Wu"})
    write(corpus, {"two.jsonl": jsonl({"id": "1", "text": "One."}, {"id": "2", "text": "Two, changed."})})
    assert notes(import_into(approved, corpus)) == []
    assert documents(approved)["two.jsonl#1"].governance.approver == "Dr Wu"
    monkeypatch.setattr("localmed.ingest.reading.content_of", lambda record: "another reader's" + record.key)
    before = documents(approved)["moved.txt"]
    import_into(replace(approved, chunk=ChunkSettings(900)), corpus)
    after = documents(approved)["moved.txt"]
    assert after.content != before.content
    assert after.governance.approver == "Dr Wu"


def test_an_approver_who_is_taken_back_leaves_nothing_to_lapse(approved: Settings, corpus: Path) -> None:
    govern(approved, documents(approved)["a.txt"], {"approver": "", "edition": "2026", "review_by": ""})
    lines = notes(import_into(approved, write(corpus, {"a.txt": SECOND})))
    assert lines == [said("governance.dated", fields="edition")]


def test_headings_corrected_since_ask_for_another_look(approved: Settings, corpus: Path) -> None:
    import_into(approved, write(corpus, {"b.md": "# Fever\n\n## Does\n\nParacetamol 1 g.\n"}))

    def heading(name: str, approver: str = "") -> tuple[str, bool]:
        with opened(approved, HashedWords()) as session:
            (read,) = (it for it in lookups.document_details(session, fever.id).headings if it.path[-1] == "Does")
            values = {read.field: name} | ({"approver": approver} if approver else {})
            changes.govern(session, [Change((documents(approved)["b.md"],), values)])
            lapsed = fever.id in lookups.to_review(session, "", 0)[1]
        return documents(approved)["b.md"].governance.approver, lapsed

    fever = documents(approved)["b.md"]
    govern(approved, fever, {"approver": "Dr Wu"})
    assert heading("Dose") == ("", True)
    assert heading("") == ("Dr Wu", False), "what was approved"
    assert heading("Dose", "Dr Zhou") == ("Dr Zhou", False)
    assert heading("Dosage") == ("", True)
    govern(approved, documents(approved)["b.md"], {"approver": "Dr He"})
    assert documents(approved)["b.md"].governance.approver == "Dr He"
