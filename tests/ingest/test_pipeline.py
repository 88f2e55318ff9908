"""Imports keep the library in step with the folder: nothing twice, nothing lost, nothing that should be gone."""

from __future__ import annotations

import cProfile
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, SearchFilter, Status, message
from localmed.domain.errors import UsageError
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.library.library import Library, build
from tests.fakes import HashedWords, answers, described, documents, encoded, import_into, jsonl, verify, write
from tests.words import phrase, words

SEPSIS = "Sepsis\n\nGive antibiotics within one hour.\n"
FEVER = "Fever\n\nGive paracetamol when the child is distressed.\n"
STROKE = "Stroke\n\nThrombolysis is given within four hours.\n"
UNTITLED = "Give oxygen when the saturation is below 92 percent. Repeat the measurement after ten minutes.\n"


def in_step(
    settings: Settings, corpus: Path, *states: Mapping[str, str], manifest: Manifest | None = None
) -> dict[str, str]:
    """The titles of what is stored, by name, after imports of ``corpus`` with the files of each of ``states`` alone."""
    for files in states:
        for path in [path for path in corpus.rglob("*") if path.is_file()]:
            path.unlink()
        write(corpus, files)
        import_into(settings, corpus, manifest=manifest)
        assert import_into(settings, corpus, manifest=manifest).generation == 0
        verify(settings.data)
    held = {name: document.title for name, document in documents(settings).items()}
    with Library.open(settings.data) as library:
        assert {passage.title for passage in library.lexical.all_passages()} == set(held.values())
    return held


def record(number: int, text: str = "") -> str:
    return jsonl({"id": str(number), "title": f"T{number}", "text": text or f"Text number {number}."})


SAME = '{"id": "%s", "title": "Same", "text": "Give antibiotics."}\n'
BROKEN = '[{"id": "1", "title": "Whole", "text": "Text of the first."}, {"id": "2", "te'
WHOLE = '[{"id": "9", "title": "Whole", "text": "Text of the first."}]'


@pytest.mark.parametrize(
    ("states", "held"),
    [
        ([{"a.txt": SEPSIS, "sub/b.txt": FEVER}, {"a.txt": STROKE}], {"a.txt": "Stroke"}),
        ([{"a.txt": SEPSIS, "copy.txt": SEPSIS, "b.txt": FEVER}], {"a.txt": "Sepsis", "b.txt": "Fever"}),
        ([{"a.txt": SEPSIS, "copy.txt": SEPSIS}, {"copy.txt": SEPSIS}], {"copy.txt": "Sepsis"}),
        ([{"first.txt": UNTITLED, "second.txt": UNTITLED}], {"first.txt": "first"}),
        ([{"a.txt": SEPSIS, "b.txt": FEVER}, {"a.txt": FEVER, "b.txt": SEPSIS}], {"a.txt": "Fever", "b.txt": "Sepsis"}),
        ([{"a.txt": SEPSIS}, {"a.txt": FEVER, "b.txt": SEPSIS}], {"a.txt": "Fever", "b.txt": "Sepsis"}),
        ([{"b.txt": SEPSIS}, {"b.txt": FEVER, "a.txt": SEPSIS}], {"b.txt": "Fever", "a.txt": "Sepsis"}),
        ([{"a.jsonl": SAME % 1 + SAME % 2 + record(3)}], {"a.jsonl#1": "Same", "a.jsonl#3": "T3"}),
        ([{"a.jsonl": SAME % 1 + SAME % 2}, {"a.jsonl": record(9)}], {"a.jsonl#9": "T9"}),
        ([{"a.jsonl": SAME % 1, "b.jsonl": SAME % 1 + record(2)}], {"a.jsonl#1": "Same", "b.jsonl#2": "T2"}),
        ([{"a.jsonl": SAME % 1, "b.jsonl": SAME % 1 + record(2)}, {"a.jsonl": SAME % 1}], {"a.jsonl#1": "Same"}),
        ([{"a.txt": STROKE, "b.txt": SEPSIS}, {"a.txt": SEPSIS, "b.txt": ""}], {"a.txt": "Sepsis"}),
        ([{"a.txt": SEPSIS, "b.jsonl": record(1)}, {"a.txt": "", "b.jsonl": "no json\nat all\n"}],
         {"a.txt": "Sepsis", "b.jsonl#1": "T1"}),
        ([{"a.json": BROKEN, "z.json": WHOLE}], {"z.json#9": "Whole"}),
        ([{"a.jsonl": '{"id": "1", \n' + record(2)}], {"a.jsonl#2": "T2"}),
    ],
    ids=["changed and removed", "a copy", "a copy whose first goes", "a copy without a title", "exchanged",
         "renamed downwards", "renamed upwards", "twice in a file", "twice, then gone", "partly a copy",
         "partly a copy, then gone", "the text of one that goes bad", "gone bad", "broken in the middle",
         "broken at the first line"],
)  # fmt: skip
def test_the_library_is_in_step_with_the_folder(
    settings: Settings, corpus: Path, states: list[dict[str, str]], held: dict[str, str]
) -> None:
    assert in_step(settings, corpus, *states) == held


def test_a_changed_file_keeps_its_document_and_a_library_made_anew_its_passages(
    settings: Settings, corpus: Path, tmp_path: Path
) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER})
    assert import_into(settings, corpus).counts["read"] == 2
    document = documents(settings)["a.txt"].id
    write(corpus, {"a.txt": SEPSIS.replace("one hour", "thirty minutes")})
    report = import_into(settings, corpus)
    assert (report.count("read"), report.count("unchanged"), report.generation) == (1, 1, 2)
    assert documents(settings)["a.txt"].id == document
    other = Settings(tmp_path / "other")
    import_into(other, corpus)
    with Library.open(settings.data) as one, Library.open(other.data) as two:
        assert [passage.text for passage in one.lexical.of_document(document)] == [
            "Sepsis\nGive antibiotics within thirty minutes."
        ]
        made, anew = (sorted(passage.id for passage in it.lexical.all_passages()) for it in (one, two))
        assert made == anew


@pytest.mark.parametrize("first", ["sub", "sub/a.txt"])
def test_what_was_imported_by_itself_first_belongs_to_its_folder(settings: Settings, corpus: Path, first: str) -> None:
    write(corpus, {"sub/a.txt": SEPSIS, "b.txt": FEVER})
    import_into(settings, corpus / first)
    import_into(settings, corpus)
    (corpus / "sub" / "a.txt").unlink()
    assert import_into(settings, corpus).counts["removed"] == 1
    assert set(documents(settings)) == {"b.txt"}
    assert answers(settings, "antibiotics within one hour") == set()


def test_another_folder_is_left_alone_and_an_empty_one_is_refused(settings: Settings, tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {"a.txt": SEPSIS}), write(tmp_path / "one-more", {"b.txt": FEVER})
    import_into(settings, one)
    import_into(settings, two)
    (one / "a.txt").unlink()
    import_into(settings, two)
    with pytest.raises(UsageError, match="mounted"):
        import_into(settings, one)
    assert set(documents(settings)) == {"a.txt", "b.txt"}


def test_a_folder_and_its_file_named_together_count_once(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "sub/b.txt": FEVER})
    report = import_into(settings, corpus, corpus / "a.txt", corpus / "sub", corpus / "sub" / ".." / "a.txt")
    assert report.counts["documents"] == 2
    assert not any(phrase("import.same_content") in words(line.detail) for line in report.lines)


# --- the same content more than once ---------------------------------------------------------------------------------


def test_a_copy_is_told_and_a_title_from_the_manifest_does_not_make_other_content(
    settings: Settings, corpus: Path
) -> None:
    write(corpus, {"a.txt": UNTITLED, "b.txt": UNTITLED})
    report = import_into(settings, corpus)
    assert any(phrase("import.same_content") in words(line.detail) for line in report.lines)
    before = documents(settings)["a.txt"]
    import_into(settings, corpus, manifest=described(documents={"a.txt": {"title": "Oxygen"}}))
    after = documents(settings)["a.txt"]
    assert (before.content, "a", "Oxygen") == (after.content, before.title, after.title)
    verify(settings.data)


def test_a_moved_file_or_record_is_stored_under_its_new_path_only(settings: Settings, tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a.txt": SEPSIS, "all.jsonl": record(0) + record(1) + record(2)})
    import_into(settings, old)
    (old / "all.jsonl").unlink()
    new = write(tmp_path / "new", {"one.jsonl": record(1)})
    (old / "a.txt").rename(new / "a.txt")
    import_into(settings, new)
    assert set(documents(settings)) == {"a.txt", "all.jsonl#0", "all.jsonl#2", "one.jsonl#1"}
    assert documents(settings)["a.txt"].source == str(new / "a.txt")
    with Library.open(settings.data) as library:
        assert set(library.catalogue.files("ward", str(old))) == {str(old / "all.jsonl")}
    verify(settings.data)
    assert answers(settings, "antibiotics") == {"Sepsis"}


def test_a_known_file_keeps_its_document_when_everything_is_read_again(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"z.txt": SEPSIS}))
    again = described(mapping=FieldMapping(options={"again": 1}))
    import_into(settings, write(corpus, {"a.txt": SEPSIS}), manifest=again)
    assert set(documents(settings)) == {"z.txt"}


def test_two_collections_may_hold_the_same_file(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    for name in ("ward", "clinic"):
        import_into(settings, corpus, manifest=described(name))
    assert answers(settings, "antibiotics", SearchFilter(collections=("clinic",))) == {"Sepsis"}
    verify(settings.data)
    with Library.open(settings.data) as library:
        assert library.manifest.documents == 2


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
