"""``App.update``: one call brings a collection in step with what it was imported from, or changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection
from localmed.errors import UnknownName, UsageError
from localmed.ingest import updates
from localmed.ingest.report import Report
from localmed.library.catalogue import ImportedFile
from localmed.library.state import State
from localmed.operations import changes, importing
from tests.fakes import HashedWords, described, documents, import_into, jsonl, opened, verify, write

SEPSIS = "Sepsis\n\nGive antibiotics within one hour.\n"
FEVER = "Fever\n\nGive paracetamol when the child is distressed.\n"
STROKE = "Stroke\n\nThrombolysis is given within four hours.\n"


def update(settings: Settings, name: str = "ward", retry: bool = False) -> Report:
    with opened(settings, HashedWords()) as session:
        return importing.update(session, name, retry)


def test_added_edited_and_deleted_entries_in_one_command(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    assert update(settings).generation == 0
    (corpus / "a.txt").unlink()
    write(corpus, {"b.txt": FEVER + "\nMore.\n", "sub/c.txt": STROKE})
    report = update(settings)
    assert (report.count("read"), report.count("removed"), report.count("unchanged")) == (2, 1, 0)
    assert set(documents(settings)) == {"b.txt", "c.txt"}
    verify(settings.data)


def test_files_named_singly_go_when_they_are_gone(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER, "not imported.txt": STROKE})
    import_into(settings, corpus / "a.txt", corpus / "b.txt")
    (corpus / "a.txt").unlink()
    report = update(settings)
    assert [(Path(line.path).name, line.outcome) for line in report.lines if line.outcome != "unchanged"] == [
        ("a.txt", "removed")
    ]
    assert set(documents(settings)) == {"b.txt"}
    (corpus / "b.txt").unlink()
    assert update(settings).count("removed") == 1
    with pytest.raises(UsageError, match="never imported"):
        update(settings)


def test_several_folders_and_a_folder_within_another(settings: Settings, tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "one", {"a.txt": SEPSIS, "sub/b.txt": FEVER}),
        write(tmp_path / "two", {"c.txt": STROKE}),
    )
    import_into(settings, one / "sub")
    import_into(settings, one)
    import_into(settings, two)
    shutil.rmtree(one / "sub")
    write(two, {"d.txt": "Burns\n\nCool them for twenty minutes.\n"})
    update(settings)
    assert set(documents(settings)) == {"a.txt", "c.txt", "d.txt"}


def test_a_folder_that_is_gone_changes_nothing(settings: Settings, tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {"a.txt": SEPSIS}), write(tmp_path / "two", {"b.txt": FEVER})
    import_into(settings, one, two)
    one.rename(tmp_path / "unmounted")
    write(two, {"c.txt": STROKE})
    with pytest.raises(UsageError, match=r"is gone.*mounted"):
        update(settings)
    assert set(documents(settings)) == {"a.txt", "b.txt"}
    one.mkdir()  # an empty mount point
    with pytest.raises(UsageError, match="mounted"):
        update(settings)
    assert set(documents(settings)) == {"a.txt", "b.txt"}


def test_the_folder_of_a_file_named_singly_must_be_there(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus / "a.txt")
    shutil.rmtree(corpus)
    with pytest.raises(UsageError, match="is gone"):
        update(settings)
    assert set(documents(settings)) == {"a.txt"}


def test_a_file_in_quarantine_is_tried_again_only_when_corrected(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "", "b.txt": ""})
    import_into(settings, corpus / "a.txt", corpus / "b.txt")
    assert update(settings).count("quarantined") == 2
    write(corpus, {"a.txt": SEPSIS})
    (corpus / "b.txt").unlink()
    assert update(settings).count("read") == 1
    with State(settings.data) as state:
        assert state.quarantined() == []


def test_collections_that_cannot_be_updated(settings: Settings) -> None:
    with opened(settings, HashedWords()) as session:
        changes.put_collection(session, Collection("empty", "Empty"))
        with pytest.raises(UsageError, match="never imported"):
            importing.update(session, "empty")
        with pytest.raises(UnknownName):
            importing.update(session, "nowhere")
        assert importing.imported(session) == []


def test_what_cannot_be_looked_at_is_not_gone(corpus: Path) -> None:
    too_long = corpus / ("a" * 300)
    with pytest.raises(UsageError, match="cannot be looked at"):
        updates.origins([ImportedFile("ward", str(too_long), "", "")], ())


# --- what the manifest describes, and what was removed by hand ------------------------------------------------------


def test_a_described_file_that_was_never_imported_is_named(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "sub/b.txt": FEVER})
    manifest = described(documents={"a.txt": {}, "sub/b.txt": {}, "c.txt": {"title": "Misspelt"}})

    def noted(*paths: Path) -> list[str]:
        report = import_into(settings, *paths, manifest=manifest)
        return [line.path for line in report.lines if line.outcome == "note"]

    assert noted(corpus) == ["c.txt"]
    assert noted(corpus / "a.txt") == ["c.txt"]  # what earlier imports brought is known
    write(corpus, {"c.txt": STROKE})
    assert noted(corpus) == []


def test_a_record_removed_by_hand_comes_back_with_its_file(settings: Settings, corpus: Path) -> None:
    records = [{"id": str(number), "title": f"T{number}", "text": f"Text number {number}."} for number in range(3)]
    write(corpus, {"a.jsonl": jsonl(*records), "b.txt": SEPSIS})
    import_into(settings, corpus)
    with opened(settings, HashedWords()) as session:
        changes.remove(session, [documents(settings)[name] for name in ("a.jsonl#1", "b.txt")])
    assert set(documents(settings)) == {"a.jsonl#0", "a.jsonl#2"}
    assert import_into(settings, corpus).counts["read"] == 2
    assert set(documents(settings)) == {"a.jsonl#0", "a.jsonl#1", "a.jsonl#2", "b.txt"}
    assert import_into(settings, corpus).generation == 0
    verify(settings.data)
