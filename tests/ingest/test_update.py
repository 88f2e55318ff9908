"""``App.update``: one call brings a collection in step with what it was imported from, or changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from localmed.config import Settings
from localmed.domain import Collection
from localmed.domain.errors import ModelError, UnknownName, UsageError
from localmed.ingest import manifest, pipeline
from localmed.ingest.sources import Report
from localmed.library import generations
from localmed.library.catalogue import ImportedFile
from localmed.library.state import quarantined, rows
from localmed.site import changes, importing
from tests.fakes import HashedWords, described, documents, import_into, jsonl, opened, verify, write
from tests.ingest.test_pipeline import FEVER, SEPSIS, STROKE
from tests.words import pattern, phrase


def update(settings: Settings) -> Report:
    with opened(settings, HashedWords()) as session:
        return importing.update(session, "ward")


def test_added_edited_and_deleted_entries_in_one_command(settings: Settings, tmp_path: Path) -> None:
    """In two folders, one of which was imported first by a folder within it."""
    one = write(tmp_path / "one", {"a.txt": SEPSIS, "sub/b.txt": FEVER})
    import_into(settings, one / "sub")
    import_into(settings, one, two := write(tmp_path / "two", {"c.txt": STROKE}))
    assert update(settings).generation == 0
    shutil.rmtree(one / "sub")
    write(one, {"a.txt": SEPSIS + "\nMore.\n"})
    write(two, {"d.txt": "Burns\n\nCool them for twenty minutes.\n"})
    report = update(settings)
    assert (report.count("read"), report.count("removed"), report.count("unchanged")) == (2, 1, 1)
    assert set(documents(settings)) == {"a.txt", "c.txt", "d.txt"}
    verify(settings.data)


def test_files_named_singly_go_when_they_are_gone_but_not_with_their_folder(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER, "not imported.txt": STROKE})
    import_into(settings, corpus / "a.txt", corpus / "b.txt")
    (corpus / "a.txt").unlink()
    report = update(settings)
    assert [(Path(line.path).name, line.outcome) for line in report.lines if line.outcome != "unchanged"] == [
        ("a.txt", "removed")
    ]
    corpus.rename(away := corpus.with_name("unmounted"))
    with pytest.raises(UsageError, match="no longer exists"):
        update(settings)
    assert set(documents(settings)) == {"b.txt"}
    away.rename(corpus)
    (corpus / "b.txt").unlink()
    assert update(settings).count("removed") == 1
    with pytest.raises(UsageError, match=pattern("source.never_imported.what")):
        update(settings)


def test_a_folder_that_is_gone_changes_nothing(settings: Settings, tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {"a.txt": SEPSIS}), write(tmp_path / "two", {"b.txt": FEVER})
    import_into(settings, one, two)
    one.rename(tmp_path / "unmounted")
    write(two, {"c.txt": STROKE})
    for why in (r"no longer exists.*mounted", "mounted"):
        with pytest.raises(UsageError, match=why):
            update(settings)
        assert set(documents(settings)) == {"a.txt", "b.txt"}
        one.mkdir(exist_ok=True)  # an empty mount point


def test_a_file_in_quarantine_is_tried_again_only_when_corrected(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "", "b.txt": ""})
    import_into(settings, corpus / "a.txt", corpus / "b.txt")
    assert update(settings).count("quarantined") == 2
    write(corpus, {"a.txt": SEPSIS})
    (corpus / "b.txt").unlink()
    assert update(settings).count("read") == 1
    with rows(settings.data) as state:
        assert quarantined(state) == []


def test_what_cannot_be_updated_and_what_cannot_be_looked_at_is_not_gone(settings: Settings, corpus: Path) -> None:
    with opened(settings, HashedWords()) as session:
        changes.put_collection(session, Collection("empty", "Empty"))
        with pytest.raises(UsageError, match=pattern("source.never_imported.what")):
            importing.update(session, "empty")
        with pytest.raises(UnknownName):
            importing.update(session, "nowhere")
        assert importing.imported(session) == []
    with pytest.raises(UsageError, match=pattern("source.unseen")):
        pipeline.origins([ImportedFile("ward", str(corpus / ("a" * 300)), "", "")], ())


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


@pytest.mark.slow
def test_all_collections_are_one_generation_and_one_that_fails_stops_no_others(
    settings: Settings, tmp_path: Path
) -> None:
    """Three changes of three generations would have pruned what was served before the command began."""
    names = ("cardiology", "surgery", "ward", "wards-gone", "wards-empty")
    folders = {name: write(tmp_path / name, {f"{name}.txt": f"{name}\n\nText of {name}.\n"}) for name in names}
    for name, folder in folders.items():
        import_into(settings, folder, manifest=described(name))
    before = generations.current(settings.data).name
    for name, folder in folders.items():
        write(folder, {f"{name}.txt": f"{name}\n\nAnother text of {name}.\n"})
    shutil.rmtree(folders["wards-gone"])
    (folders["wards-empty"] / "wards-empty.txt").unlink()
    with opened(settings, HashedWords()) as session:
        outcomes = importing.update_all(session)
        reports = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Report)}
        failed = {name: str(outcome) for name, outcome in outcomes.items() if name not in reports}
        assert {report.generation for report in reports.values()} == {int(before) + 1}
        assert set(reports) == {"cardiology", "surgery", "ward"}
        assert "no longer exists" in failed["wards-gone"]
        assert phrase("source.holds_nothing") in failed["wards-empty"]
        with session.workspace() as workspace:
            library = workspace.library
            texts = {library.lexical.of_document(it.id)[0].text for it in library.catalogue.documents()}
        assert sum("Another" in text for text in texts) == 3
        assert len(texts) == 5
        assert len(importing.update_all(session)) == 5
        assert generations.current(settings.data).name == f"{int(before) + 1:04d}", "nothing changed"
    assert int(before) in generations.numbers(settings.data)
    verify(settings.data)


def test_an_error_in_one_collection_leaves_all_as_they_were(settings: Settings, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_into(settings, write(tmp_path / name, {f"{name}.txt": SEPSIS + name}), manifest=described(name))
        write(tmp_path / name, {f"{name}.txt": FEVER + name})

    class Failing(HashedWords):
        def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
            if any("two" in text for text in texts):
                raise ModelError("the encoder has died")
            return super().encode(texts, kind)

    with opened(settings, Failing()) as session, pytest.raises(ModelError):
        importing.update_all(session)
    assert generations.numbers(settings.data) == [1, 2]
    assert {document.title for document in documents(settings).values()} == {"Sepsis"}


def test_a_manifest_is_kept_before_what_it_made_is_served(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Served first, a crash would leave the next update to undo with the older manifest what this one did."""
    write(corpus, {"a.txt": SEPSIS})
    file = corpus.parent / "ward.toml"
    file.write_text('name = "ward"\n[documents."a.txt"]\ntitle = "Sepsis, first"\n')
    kept = settings.data / "corpora" / "ward.toml"

    def crash(*_: object) -> None:
        assert kept.read_bytes() == file.read_bytes()
        raise KeyboardInterrupt

    with opened(settings, HashedWords()) as session:
        monkeypatch.setattr(generations, "switch", crash)
        with pytest.raises(KeyboardInterrupt):
            importing.import_paths(session, [corpus], manifest.load(file), file)
        monkeypatch.undo()
        importing.import_paths(session, [corpus], manifest.load(file), file)
    assert {document.title for document in documents(settings).values()} == {"Sepsis, first"}
