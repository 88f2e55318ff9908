"""A bad file harms nobody else, keeps what was stored of it, and is read again only when that could help."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import ReadBounds, Settings
from localmed.domain.errors import InputError, UsageError
from localmed.ingest import sources
from localmed.library import originals
from localmed.library.in_force import in_force
from localmed.library.state import Quarantined, State
from localmed.process.files import Opener
from tests.fakes import HashedWords, answers, documents, import_into, jsonl, verify, withdraw, write
from tests.ingest.test_pipeline import FEVER, SEPSIS, STROKE
from tests.words import phrase, words

BROKEN_JSON = '[{"id": "1", "title": "Whole", "text": "Text of the first."}, {"id": "2", "te'


def quarantine(settings: Settings) -> list[Quarantined]:
    with State(settings.data) as state:
        return state.quarantined()


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
    write(corpus, {"a.txt": "", "b.txt": FEVER})
    import_into(settings, corpus)
    time_of = quarantine(settings)[0].time
    again = import_into(settings, corpus)
    assert next(words(line.detail) for line in again.lines if line.outcome == "quarantined").endswith(
        "--retry reads it again)"
    )
    assert quarantine(settings)[0].time == time_of
    assert "as before" not in str(import_into(settings, corpus, retry=True).lines)
    write(corpus, {"a.txt": SEPSIS})
    import_into(settings, corpus)
    assert (set(documents(settings)), quarantine(settings)) == ({"a.txt", "b.txt"}, [])


def test_a_file_that_goes_bad_keeps_what_was_stored_of_it(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.jsonl": jsonl({"id": "1", "text": "Insulin is cooled."})})
    import_into(settings, corpus)
    write(corpus, {"a.txt": "", "b.jsonl": "no json\nat all\n"})
    report = import_into(settings, corpus)
    assert (report.counts["quarantined"], report.generation) == (2, 0)
    assert answers(settings, "antibiotics") == {"Sepsis"}
    assert set(documents(settings)) == {"a.txt", "b.jsonl#1"}
    write(corpus, {"a.txt": SEPSIS})
    assert import_into(settings, corpus).count("unchanged") == 1
    assert {Path(entry.path).name for entry in quarantine(settings)} == {"b.jsonl"}


def test_a_file_that_fails_in_the_middle_is_not_half_imported(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.json": BROKEN_JSON, "z.json": '[{"id": "9", "title": "Whole", "text": "Text of the first."}]'})
    report = import_into(settings, corpus)
    assert report.counts["quarantined"] == 1
    assert set(documents(settings)) == {"z.json#9"}, "what the refused file held is nobody's copy"
    verify(settings.data)


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


def test_a_copy_of_a_file_that_goes_bad_takes_its_place_or_waits(settings: Settings, corpus: Path) -> None:
    """Both known, both changed: the one takes over the text of the other, which then cannot be read."""
    write(corpus, {"a.txt": STROKE, "b.txt": SEPSIS})
    import_into(settings, corpus)
    write(corpus, {"a.txt": SEPSIS, "b.txt": ""})
    import_into(settings, corpus)
    assert {name: document.title for name, document in documents(settings).items()} == {"a.txt": "Sepsis"}
    verify(settings.data)


def test_quarantine_forgets_files_that_are_gone(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "", "b.txt": FEVER})
    import_into(settings, corpus)
    (corpus / "a.txt").unlink()
    import_into(settings, corpus)
    assert quarantine(settings) == []


def test_a_file_over_the_limit_is_not_even_copied(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "x " * 5000, "b.txt": FEVER})
    small = Settings(settings.data, read=ReadBounds(file_bytes=5000), library=settings.library)
    assert import_into(small, corpus).counts["quarantined"] == 1
    assert "read.file_bytes" in words(quarantine(settings)[0].reason)
    assert len(list((settings.data / "files").iterdir())) == 1


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


def test_a_file_over_the_limit_is_read_once_the_limit_is_raised(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    import_into(replace(settings, read=ReadBounds(file_bytes=5)), corpus)
    assert "read.file_bytes" in words(quarantine(settings)[0].reason)
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
                sources.find([Path(name)])
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
    sources_found, skipped = sources.find([corpus])
    assert {source.name for source in sources_found} == {"A.TXT", "指南 1.md"}
    assert [Path(line.path).name for line in skipped] == ["b.doc", "dangling.txt", "pipe.txt"]
    with pytest.raises(InputError):
        sources.find([corpus / "dangling.txt"])


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
    with State(settings.data) as state:
        row = state._database.execute("SELECT outcome FROM imports ORDER BY id DESC").fetchone()
    assert row == ("interrupted",)
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


def test_json_lines_whose_first_line_is_broken(settings: Settings, corpus: Path) -> None:
    """The stored copy has no suffix: what the file was called still decides how it is read."""
    write(corpus, {"a.jsonl": jsonl('{"id": "1", ', {"id": "2", "text": "Second."})})
    import_into(settings, corpus)
    assert set(documents(settings)) == {"a.jsonl#2"}
    assert [words(entry.place) for entry in quarantine(settings)] == ["line 1"]
