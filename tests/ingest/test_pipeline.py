"""Imports keep the library in step with the folder: nothing twice, nothing lost, nothing that should be gone."""

from __future__ import annotations

import cProfile
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest

from localmed.config import ReadBounds, Settings
from localmed.domain import Collection, Document, SearchFilter, Status, message
from localmed.domain.errors import Busy, InputError, UsageError
from localmed.ingest import sources
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.ingest.pipeline import Importer
from localmed.ingest.reading import UNFINISHED, Reading, refusal, strip_mark
from localmed.library import originals
from localmed.library.catalogue import ImportedFile
from localmed.library.in_force import in_force
from localmed.library.library import Library, build
from localmed.library.state import Quarantined, quarantined, rows
from localmed.process.files import Opener
from tests.fakes import (
    HashedWords,
    answers,
    described,
    documents,
    encoded,
    import_into,
    jsonl,
    titles,
    verify,
    withdraw,
    write,
)
from tests.ingest.readers.pdf import fixtures as make
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
    again = described(mapping=FieldMapping(options={"again": 1}))
    import_into(settings, write(corpus, {"0.txt": UNTITLED}), manifest=again)
    assert set(documents(settings)) == {"a.txt"}, "a known file keeps its document when everything is read again"
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


def test_two_collections_may_contain_the_same_file(settings: Settings, corpus: Path) -> None:
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


# --- a bad file harms nobody else, and is read again only when that could help ---------------------------------------


def quarantine(settings: Settings) -> list[Quarantined]:
    with rows(settings.data) as state:
        return quarantined(state)


@pytest.mark.slow
def test_a_bad_file_does_not_stop_the_others(settings: Settings, corpus: Path) -> None:
    write(
        corpus, {"a.txt": "", "b.txt": FEVER, "c.pdf": "%PDF-1.7 no", "d.xml": "<odd/>", "e.txt": SEPSIS, "f.doc": ""}
    )
    report = import_into(settings, corpus)
    assert report.counts["quarantined"] == 3
    assert report.counts["skipped"] == 1
    assert set(documents(settings)) == {"b.txt", "e.txt"}
    assert {Path(entry.path).name for entry in quarantine(settings)} == {"a.txt", "c.pdf", "d.xml"}
    assert all(entry.reason for entry in quarantine(settings))
    hashes = {Path(entry.path).name: entry.sha256 for entry in quarantine(settings)}
    assert [bool(hashes[name]) for name in ("a.txt", "c.pdf", "d.xml")] == [True, True, False], "no reader, no copy"
    assert all(entry.sha256 not in words(entry.reason) for entry in quarantine(settings) if entry.sha256)
    verify(settings.data)


def test_a_quarantined_file_is_read_again_only_if_asked_or_changed(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": FEVER, "c.txt": ""})
    import_into(settings, corpus)
    write(corpus, {"a.txt": ""})
    assert (import_into(settings, corpus).generation, answers(settings, "antibiotics")) == (0, {"Sepsis"})
    times = {entry.path: entry.time for entry in quarantine(settings)}
    again = import_into(settings, corpus)
    details = [words(line.detail) for line in again.lines if line.outcome == "quarantined"]
    assert len(details) == 2
    assert all(detail.endswith("--retry reads it again)") for detail in details)
    assert {entry.path: entry.time for entry in quarantine(settings)} == times
    assert "as before" not in str(import_into(settings, corpus, retry=True).lines)
    write(corpus, {"a.txt": SEPSIS, "b.txt": ""})  # the good one again: it is not read
    (corpus / "c.txt").unlink()
    assert import_into(settings, corpus).count("unchanged") == 1
    assert {Path(entry.path).name for entry in quarantine(settings)} == {"b.txt"}, "what is gone is forgotten"
    write(corpus, {"b.txt": STROKE})
    import_into(settings, corpus)
    assert (set(documents(settings)), quarantine(settings)) == ({"a.txt", "b.txt"}, [])


def test_lines_that_are_no_json_are_left_out_and_named(settings: Settings, corpus: Path) -> None:
    lines = jsonl({"id": "1", "text": "First."}, '{"id": "2", ', "[]", {"id": "4", "text": "Fourth."}, {"id": "5"})
    write(corpus, {"a.jsonl": lines})
    report = import_into(settings, corpus)
    assert set(documents(settings)) == {"a.jsonl#1", "a.jsonl#4"}
    assert sorted(words(entry.place) for entry in quarantine(settings)) == ["line 2", "line 3", "line 5"]
    assert report.counts["quarantined"] == 3
    assert import_into(settings, corpus).generation == 0
    write(corpus, {"a.jsonl": jsonl({"id": "1", "text": "First."})})
    import_into(settings, corpus)
    assert quarantine(settings) == []


def test_odd_characters_go_through(settings: Settings, corpus: Path) -> None:
    text = '{"id": "\\ud800", "title": "A\\u0000\\ud83d", "text": "Before\\ud800after \\u2028 \\u0085 text \\ufdd0."}\n'
    write(corpus, {"a.jsonl": text})
    import_into(settings, corpus)
    assert len(documents(settings)) == 1
    document = next(iter(documents(settings).values()))
    withdraw(settings.data, document, reason="line one\u2028line two\u0085")
    assert in_force(settings.data).withdrawn()[0] == {document.id}
    verify(settings.data)


def test_a_file_over_the_limit_is_not_copied_and_read_once_it_is_raised(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "x " * 5000, "b.txt": FEVER})
    assert import_into(replace(settings, read=ReadBounds(file_bytes=5000)), corpus).counts["quarantined"] == 1
    assert "read.file_bytes" in words(quarantine(settings)[0].reason)
    assert len(list((settings.data / "files").iterdir())) == 1
    import_into(settings, corpus)
    assert (set(documents(settings)), quarantine(settings)) == ({"a.txt", "b.txt"}, [])


def test_a_file_that_vanishes_or_cannot_be_read_is_quarantined(settings: Settings, corpus: Path) -> None:
    """A link to a kernel file that exists and refuses to be read stands for a bad disk."""
    write(corpus, {"b.txt": FEVER})
    (link := corpus.parent / "a.txt").symlink_to("/proc/self/mem")
    report = import_into(settings, corpus, link)
    assert report.counts["quarantined"] == 1
    assert set(documents(settings)) == {"b.txt"}
    assert "cannot be read (" in words(quarantine(settings)[0].reason)
    import_into(settings, corpus, link)
    verify(settings.data)


def test_a_file_that_was_being_written_is_read_by_the_next_import(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text is whole when the import looks again, and it has the same bytes as when it was refused."""
    write(corpus, {"a.txt": SEPSIS})
    pieces = originals._pieces

    def while_it_is_written(source: Path, opened: Opener) -> Iterator[bytes]:
        for piece in pieces(source, opened):
            os.utime(source, ns=(0, time.monotonic_ns()))
            yield piece

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(originals, "_pieces", while_it_is_written)
        import_into(settings, corpus)
    assert phrase("library.source_changed") in words(quarantine(settings)[0].reason)
    import_into(settings, corpus)
    assert (set(documents(settings)), quarantine(settings)) == ({"a.txt"}, [])


@pytest.mark.skipif(os.getuid() != 0, reason="changes its user")
def test_a_folder_that_cannot_be_listed_is_not_an_empty_one() -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), {"closed/a.txt": SEPSIS, "b.txt": FEVER})
        Path(name).chmod(0o755)
        (Path(name) / "closed").chmod(0)
        os.seteuid(65534)
        try:
            with pytest.raises(UsageError, match=r"cannot be read \(permission denied\)"):
                sources.find_sources([Path(name)])
        finally:
            os.seteuid(0)


def test_hidden_and_odd_names_are_found_or_passed_over(corpus: Path) -> None:
    write(
        corpus,
        {".hidden.txt": "x", ".git/a.txt": "x", "~$word.txt": "x", "A.TXT": "x", "指南 1.md": "x", "b.doc": "x"},
    )
    os.mkfifo(corpus / "pipe.txt")
    (corpus / "loop").symlink_to(corpus)
    (corpus / "dangling.txt").symlink_to(corpus / "nothing")
    sources_found, skipped = sources.find_sources([corpus])
    assert {source.name for source in sources_found} == {"A.TXT", "指南 1.md"}
    assert [Path(line.path).name for line in skipped] == ["b.doc", "dangling.txt", "pipe.txt"]
    with pytest.raises(InputError):
        sources.find_sources([corpus / "dangling.txt"])


def test_ctrl_c_leaves_the_old_generation_and_the_next_import_goes_on(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus)
    write(corpus, {f"{number}.txt": f"Title {number}\n\nText {number}.\n" for number in range(40)})
    fresh = Settings(settings.data, library=type(settings.library)(batch=1, writer_memory_bytes=15_000_000))
    encoder = _Interrupting(after=20)
    with pytest.raises(KeyboardInterrupt):
        import_into(fresh, corpus, encoder=encoder)
    assert set(documents(settings)) == {"a.txt"}
    assert not (settings.data / "generations" / "building").exists()
    report = import_into(settings, corpus)
    assert report.encoded == 2 * (40 - 10), "each passage and its one sentence"
    verify(settings.data)


class _Interrupting(HashedWords):
    """Ctrl-C comes while passage number ``after`` is being encoded."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def encode(self, texts, kind):  # type: ignore[no-untyped-def]
        if len(self.encoded) >= self._after:
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
            time.sleep(60)  # until it comes, however busy the machine
        return super().encode(texts, kind)


# --- a file of which OCR failed on pages never replaces what was read before -----------------------------------------


needs_engine = pytest.mark.extra("ocr")


def stored(passages: int) -> list[Document]:
    return [Document("i", "c", "k", "T", "en", "s", "", "content", "pdf", passages=passages)]


@pytest.mark.parametrize(
    ("lost", "mark", "sha256", "passages", "refused"),
    [
        (0, "", "old", 3, False),
        (1, "", "old", 3, True),  # other rules or another engine, and fewer pages than before
        (1, "", "new", 3, True),  # a new edition
        (1, UNFINISHED, "new", 3, False),  # the one before was not whole either
        (1, UNFINISHED, "old", 3, True),  # it may have lost less
        (1, UNFINISHED, "old", 0, False),
    ],
)
def test_a_reading_that_lost_pages_does_not_replace_a_better_one(
    lost: int, mark: str, sha256: str, passages: int, refused: bool
) -> None:
    failed = message("ocr.failed", needs="no text", why="crashed")
    reading = Reading(
        lost=lost, notes=[message("pdf.on_pages", pages="page 2", note=failed), message("reader.no_abstract")]
    )
    assert refusal(reading, None, [], "new") is None, "nothing was stored before"
    assert (reading.mark, strip_mark(reading.mark + "recipe")) == (UNFINISHED * lost, "recipe")
    error = refusal(reading, ImportedFile("c", "/a.pdf", "old", mark + "recipe", ""), stored(passages), sha256)
    assert bool(error) is refused
    if error:
        assert "a.pdf: pages on which OCR failed: 1" in str(error)
        assert "crashed" in str(error)
        assert "no abstract" not in str(error)


@needs_engine
@pytest.mark.slow
def test_a_page_that_failed_is_read_by_the_next_import_and_stays_when_it_fails_later(
    settings: Settings, corpus: Path
) -> None:
    make_mixed(corpus / "mixed.pdf")
    failing = replace(settings, read=ReadBounds(ocr_page_seconds=0.01))
    assert any("OCR failed" in words(line.detail) for line in import_into(failing, corpus).lines)
    assert (answers(settings, "reaction"), answers(settings, "otitis")) == ({"mixed"}, set())
    assert import_into(settings, corpus).count("read") == 1
    assert answers(settings, "otitis") == {"mixed"}
    assert import_into(settings, corpus).count("unchanged") == 1

    shutil.rmtree(settings.data / "ocr")  # what it read of the page before
    newer = described(documents={"mixed.pdf": {"edition": "2"}})  # to be read again
    report = import_into(failing, corpus, manifest=newer)
    assert phrase("import.ocr_failed") in str([words(line.detail) for line in report.lines])
    assert (report.counts["quarantined"], report.generation) == (1, 0)
    assert answers(settings, "otitis") == {"mixed"}
    with rows(settings.data) as state:
        assert [entry.sha256 for entry in quarantined(state)] == [""]  # so that it is tried again
    verify(settings.data)


def make_mixed(path: Path) -> None:
    """A page of text and one that is a picture of text."""
    printed, picture = pymupdf.open(), pymupdf.open()
    make.lines(printed.new_page(width=400, height=250), 40, 60, make.LEFT, 12)
    make.lines(picture.new_page(width=400, height=250), 40, 60, make.RIGHT, 12)
    picture.new_page(width=400, height=250).insert_image((0, 0, 400, 250), pixmap=printed[0].get_pixmap(dpi=150))
    make.save(picture, path)


# --- one import at a time, and readers read on meanwhile -------------------------------------------------------------


ROOT = Path(__file__).parents[2]
# An import that stops while it encodes, until it is told to go on.
WAITING = """
import sys
from pathlib import Path
from localmed.config import Settings
from tests.fakes import HashedWords, import_into
class Waiting(HashedWords):
    def encode(self, texts, kind):
        print("encoding", flush=True)
        sys.stdin.readline()
        return super().encode(texts, kind)
print(import_into(Settings(Path(sys.argv[1])), Path(sys.argv[2]), encoder=Waiting()).generation, flush=True)
"""


@pytest.mark.slow
def test_a_second_import_is_refused_and_readers_go_on(settings: Settings, corpus: Path, tmp_path: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    other = write(tmp_path / "other", {"b.txt": "Fever\n\nGive paracetamol.\n"})
    command = [sys.executable, "-c", WAITING, str(settings.data), str(other)]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as child,
        Library.open(settings.data) as old,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "encoding\n"
        with pytest.raises(Busy, match=f"process {child.pid}") as caught:
            import_into(settings, other)
        assert caught.value.exit_code == 4
        assert titles(old, "antibiotics paracetamol") == {"Sepsis"}
        assert answers(settings, "antibiotics paracetamol") == {"Sepsis"}
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "2\n"
        assert titles(old, "antibiotics paracetamol") == {"Sepsis"}, "open readers keep their generation"
        assert child.wait(30) == 0
    assert answers(settings, "antibiotics paracetamol") == {"Sepsis", "Fever"}
    assert import_into(settings, other).generation == 0
    verify(settings.data)


@pytest.mark.slow
def test_the_lock_goes_with_the_process(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    command = [sys.executable, "-c", WAITING, str(settings.data), str(corpus)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
    assert import_into(settings, corpus).generation == 1


@pytest.mark.slow
def test_no_file_stays_open(settings: Settings, corpus: Path) -> None:
    seen = []
    for number in range(4):
        import_into(settings, write(corpus, {"a.txt": f"Sepsis\n\nGive antibiotics {number}.\n"}))
        answers(settings, "antibiotics")
        seen.append((_open_files(settings.data), threading.active_count()))
    assert all(files <= seen[0][0] and threads == seen[0][1] for files, threads in seen)
    assert import_into(settings, corpus).generation == 0, "nothing has changed"


def _open_files(data: Path) -> int:
    links = list(Path("/proc/self/fd").iterdir())
    return sum(link.is_symlink() and str(link.readlink()).startswith(str(data)) for link in links)


@pytest.mark.slow
def test_progress_adds_up(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "One\n\nText one.\n", "b.txt": "", "c.txt": "One\n\nText one.\n", "d.pdf": "%PDF-1"})
    steps: list[float] = []
    expected: list[int] = []
    importer = Importer(settings, described(), HashedWords(), lambda done, _: steps.append(done))
    importer.run([corpus], started=expected.append)
    assert sum(steps) == pytest.approx(expected[0])
