"""Imports keep the library in step with the folder: nothing twice, nothing lost, nothing that should be gone."""

from __future__ import annotations

import cProfile
import json
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, SearchFilter, Status, message
from localmed.domain.errors import UsageError
from localmed.ingest.parsed import FieldMapping
from localmed.library.library import Library, build
from tests.fakes import HashedWords, answers, described, documents, encoded, import_into, jsonl, verify, write
from tests.words import phrase, words

SEPSIS = "Sepsis\n\nGive antibiotics within one hour.\n"
FEVER = "Fever\n\nGive paracetamol when the child is distressed.\n"
STROKE = "Stroke\n\nThrombolysis is given within four hours.\n"
UNTITLED = "Give oxygen when the saturation is below 92 percent. Repeat the measurement after ten minutes.\n"


def test_the_same_folder_twice_changes_nothing(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "sub/b.txt": FEVER, "c.jsonl": jsonl({"id": "1", "text": "Insulin is cooled."})})
    first = import_into(settings, corpus)
    before = documents(settings)
    assert first.generation == 1
    assert first.counts["read"] == 3
    again = import_into(settings, corpus)
    assert again.generation == 0
    assert again.counts["unchanged"] == 3
    assert documents(settings) == before
    verify(settings.data)


def test_passage_ids_survive_a_library_made_anew(settings: Settings, corpus: Path, tmp_path: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    other = Settings(tmp_path / "other")
    import_into(other, corpus)
    with Library.open(settings.data) as one, Library.open(other.data) as two:
        assert {passage.id for passage in one.lexical.all_passages()} == {
            passage.id for passage in two.lexical.all_passages()
        }


def test_a_changed_file_replaces_its_passages(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    document = documents(settings)["a.txt"].id
    write(corpus, {"a.txt": SEPSIS.replace("one hour", "thirty minutes")})
    report = import_into(settings, corpus)
    assert (report.count("read"), report.count("unchanged"), report.generation) == (1, 1, 2)
    assert documents(settings)["a.txt"].id == document
    with Library.open(settings.data) as library:
        assert [passage.text for passage in library.lexical.of_document(document)] == [
            "Sepsis\nGive antibiotics within thirty minutes."
        ]
    verify(settings.data)


def test_a_removed_file_disappears_everywhere(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    (corpus / "a.txt").unlink()
    report = import_into(settings, corpus)
    assert report.counts["removed"] == 1
    assert answers(settings, "antibiotics within one hour") == set()
    assert set(documents(settings)) == {"b.txt"}
    verify(settings.data)


def test_a_removed_subfolder_disappears_however_it_was_imported(settings: Settings, corpus: Path) -> None:
    write(corpus, {"sub/a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus / "sub")
    import_into(settings, corpus)
    (corpus / "sub" / "a.txt").unlink()
    import_into(settings, corpus)
    assert set(documents(settings)) == {"b.txt"}


def test_a_file_named_first_and_then_found_in_its_folder_belongs_to_it(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus / "a.txt")
    import_into(settings, corpus)
    (corpus / "a.txt").unlink()
    import_into(settings, corpus)
    assert set(documents(settings)) == {"b.txt"}


def test_another_folder_is_left_alone(settings: Settings, tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {"a.txt": SEPSIS}), write(tmp_path / "one-more", {"b.txt": FEVER})
    import_into(settings, one)
    import_into(settings, two)
    assert set(documents(settings)) == {"a.txt", "b.txt"}
    (one / "a.txt").unlink()
    import_into(settings, two)
    assert set(documents(settings)) == {"a.txt", "b.txt"}


def test_an_empty_folder_is_refused(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus)
    (corpus / "a.txt").unlink()
    with pytest.raises(UsageError, match="mounted"):
        import_into(settings, corpus)
    assert set(documents(settings)) == {"a.txt"}


def test_a_folder_and_its_file_named_together_count_once(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "sub/b.txt": FEVER})
    report = import_into(settings, corpus, corpus / "a.txt", corpus / "sub", corpus / "sub" / ".." / "a.txt")
    assert report.counts["documents"] == 2
    verify(settings.data)


# --- the same content more than once ---------------------------------------------------------------------------------


def test_a_copy_is_stored_once_and_comes_back_when_the_first_goes(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "copy.txt": SEPSIS, "b.txt": FEVER})
    report = import_into(settings, corpus)
    assert any(phrase("import.same_content") in words(line.detail) for line in report.lines)
    assert set(documents(settings)) == {"a.txt", "b.txt"}
    verify(settings.data)
    assert import_into(settings, corpus).generation == 0
    (corpus / "a.txt").unlink()
    import_into(settings, corpus)
    assert set(documents(settings)) == {"copy.txt", "b.txt"}
    verify(settings.data)


def test_a_copy_without_a_title_is_a_copy_too(settings: Settings, corpus: Path) -> None:
    write(corpus, {"first.txt": UNTITLED, "second.txt": UNTITLED})
    import_into(settings, corpus)
    assert set(documents(settings)) == {"first.txt"}


def test_a_title_from_the_manifest_does_not_make_other_content(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": UNTITLED})
    import_into(settings, corpus)
    before = documents(settings)["a.txt"]
    import_into(settings, corpus, manifest=described(documents={"a.txt": {"title": "Oxygen"}}))
    after = documents(settings)["a.txt"]
    assert (before.content, "a", "Oxygen") == (after.content, before.title, after.title)
    verify(settings.data)


def test_a_moved_file_is_stored_under_its_new_path_only(settings: Settings, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, old)
    new = tmp_path / "new"
    old.rename(new)
    import_into(settings, new)
    with Library.open(settings.data) as library:
        assert {document.source for document in library.catalogue.documents()} == {
            str(new / "a.txt"),
            str(new / "b.txt"),
        }
        assert library.catalogue.files("ward", str(old)) == {}
    verify(settings.data)
    assert answers(settings, "antibiotics") == {"Sepsis"}


def test_a_moved_record_leaves_the_others_of_its_file(settings: Settings, tmp_path: Path) -> None:
    records = [{"id": str(number), "title": f"T{number}", "text": f"Text number {number}."} for number in range(3)]
    old = write(tmp_path / "old", {"all.jsonl": jsonl(*records)})
    import_into(settings, old)
    (old / "all.jsonl").unlink()
    new = write(tmp_path / "new", {"one.jsonl": jsonl(records[1])})
    import_into(settings, new)
    assert set(documents(settings)) == {"all.jsonl#0", "all.jsonl#2", "one.jsonl#1"}
    verify(settings.data)


def test_two_files_that_exchange_their_texts(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    write(corpus, {"a.txt": FEVER, "b.txt": SEPSIS})
    import_into(settings, corpus)
    assert {name: document.title for name, document in documents(settings).items()} == {
        "a.txt": "Fever",
        "b.txt": "Sepsis",
    }
    verify(settings.data)


@pytest.mark.parametrize(("changed", "copy"), [("a.txt", "b.txt"), ("b.txt", "a.txt")])
def test_a_text_renamed_while_its_file_gets_another(settings: Settings, corpus: Path, changed: str, copy: str) -> None:
    write(corpus, {changed: SEPSIS})
    import_into(settings, corpus)
    write(corpus, {changed: FEVER, copy: SEPSIS})
    import_into(settings, corpus)
    assert {name: document.title for name, document in documents(settings).items()} == {
        changed: "Fever",
        copy: "Sepsis",
    }
    verify(settings.data)


def test_a_known_file_keeps_its_document_when_everything_is_read_again(settings: Settings, corpus: Path) -> None:
    write(corpus, {"z.txt": SEPSIS})
    import_into(settings, corpus)
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus, manifest=described(mapping=FieldMapping(options={"again": 1})))
    assert set(documents(settings)) == {"z.txt"}


def test_two_collections_may_hold_the_same_file(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus)
    import_into(settings, corpus, manifest=described("clinic"))
    assert answers(settings, "antibiotics", SearchFilter(collections=("clinic",))) == {"Sepsis"}
    verify(settings.data)
    with Library.open(settings.data) as library:
        assert library.manifest.documents == 2


def test_a_record_twice_in_one_file_is_stored_once_and_that_is_settled(settings: Settings, corpus: Path) -> None:
    record = {"title": "Sepsis", "text": "Give antibiotics."}
    write(
        corpus, {"a.jsonl": jsonl(record | {"id": "1"}, record | {"id": "2"}, record | {"id": "3", "text": "Other."})}
    )
    report = import_into(settings, corpus)
    assert report.counts["documents"] == 2
    assert import_into(settings, corpus).generation == 0
    write(corpus, {"a.jsonl": jsonl({"id": "9", "text": "New."})})
    import_into(settings, corpus)
    assert set(documents(settings)) == {"a.jsonl#9"}
    verify(settings.data)


def test_a_file_of_which_a_part_is_a_copy_goes_when_it_is_removed(settings: Settings, corpus: Path) -> None:
    shared = {"title": "Sepsis", "text": "Give antibiotics."}
    write(corpus, {"a.jsonl": jsonl(shared | {"id": "1"})})
    write(corpus, {"b.jsonl": jsonl(shared | {"id": "1"}, {"id": "2", "title": "Fever", "text": "Paracetamol."})})
    import_into(settings, corpus)
    assert set(documents(settings)) == {"a.jsonl#1", "b.jsonl#2"}
    assert import_into(settings, corpus).generation == 0
    (corpus / "b.jsonl").unlink()
    import_into(settings, corpus)
    assert set(documents(settings)) == {"a.jsonl#1"}
    assert answers(settings, "paracetamol") == set()


# --- the builder -----------------------------------------------------------------------------------------------------


def test_removing_and_adding_the_same_document_leaves_the_new_passages(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    encoder = HashedWords()
    with Library.open(settings.data) as library:
        document = next(document for document in library.catalogue.documents() if document.title == "Sepsis")
        passages = library.lexical.of_document(document.id)
    vectors = encoded(encoder, passages)
    with build(settings.data, encoder.identity, settings.library) as builder:
        for _ in range(3):
            builder.remove([document.id])
            builder.put(document)
            builder.add(passages, vectors)
        builder.publish(message("generation.made.upgrade"))
    verify(settings.data)


def test_what_is_not_published_leaves_nothing(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus)

    def interrupted() -> None:
        with build(settings.data, HashedWords().identity, settings.library) as builder:
            builder.put_collection(Collection("new", "New"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in (settings.data / "generations").iterdir() if path.is_dir()] == ["0001"]
    write(corpus, {"a.txt": FEVER})
    assert import_into(settings, corpus).generation == 2


def test_a_librarians_mark_outlives_a_changed_file(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus)
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.mark(builder.catalogue.of_file("ward", str(corpus / "a.txt"))[0], Status.SUPERSEDED, "", "old")
        builder.publish(message("generation.made.upgrade"))
    write(corpus, {"a.txt": SEPSIS + "\nMore.\n"})
    import_into(settings, corpus)
    assert documents(settings)["a.txt"].status is Status.SUPERSEDED
    assert answers(settings, "antibiotics") == set()


@pytest.mark.slow
def test_four_times_the_records_of_a_file_take_no_sixteen_times_the_calls(tmp_path: Path) -> None:
    calls = []
    for count in (50, 500, 2_000):  # the first imports what is imported once
        rows = [{"id": f"{number}", "title": f"T{number}", "text": f"Give {number} mg."} for number in range(count)]
        folder = write(tmp_path / f"{count}", {"x.json": json.dumps(rows)})
        with cProfile.Profile() as profile:
            import_into(Settings(tmp_path / f"data{count}"), folder)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[2] < 6 * calls[1]
