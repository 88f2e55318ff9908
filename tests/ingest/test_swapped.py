"""What a file was swapped for after its folder was listed is neither followed nor waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from localmed.config import Settings
from localmed.domain.errors import InputError
from localmed.ingest import pipeline, sources
from localmed.ingest.sources import Line, Source
from localmed.process.files import open_regular
from tests.fakes import documents, import_into, write


def as_link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parents[2] / "elsewhere" / "secret.txt")


def as_link_within(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "b.txt")


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_folder_link(path: Path) -> None:
    """The folder that holds the file leads elsewhere now, to a file of the same name."""
    path.parent.rename(path.parents[2] / "moved")
    elsewhere = write(path.parents[2] / "elsewhere", {path.name: "secret"})
    path.parent.symlink_to(elsewhere)


@pytest.fixture(autouse=True)
def elsewhere(corpus: Path) -> None:
    write(corpus.parent / "elsewhere", {"secret.txt": "The secret of another patient."})


@pytest.mark.timeout(20)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("swap", [as_link_out, as_link_within, as_pipe, as_folder_link])
def test_a_file_swapped_after_listing_is_refused(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None], known: bool
) -> None:
    write(corpus, {"sub/a.txt": "Sepsis\n\nGive antibiotics.\n", "sub/b.txt": "Fever\n\nGive paracetamol.\n"})
    if known:
        import_into(settings, corpus)
        write(corpus, {"sub/a.txt": "Sepsis\n\nGive antibiotics at once.\n"})

    def swapped(paths: list[Path], **more: object) -> tuple[list[Source], list[Line]]:
        listed = sources.find_sources(paths)
        swap(corpus / "sub" / "a.txt")
        return listed

    monkeypatch.setattr(pipeline, "find_sources", swapped)
    report = import_into(settings, corpus)
    assert report.counts["quarantined"] >= 1
    held = {path.read_bytes() for path in (settings.data / "files").glob("*")}
    assert not any(b"secret" in text for text in held)
    assert set(documents(settings)) <= {"a.txt", "b.txt"}


@pytest.mark.timeout(20)
def test_a_hash_is_bounded_and_of_regular_files_only(corpus: Path) -> None:
    write(corpus, {"a.txt": "x" * 100})
    os.mkfifo(corpus / "pipe.txt")
    whole = Source(corpus / "a.txt", str(corpus))
    assert whole.sha256(100)
    assert whole.sha256(99) == ""
    assert Source(corpus / "pipe.txt", "").sha256(100) == ""


def test_a_link_that_was_listed_is_followed_within_its_folder_only(corpus: Path) -> None:
    write(corpus, {"sub/a.txt": "text"})
    link = corpus / "sub" / "link.txt"
    link.symlink_to(corpus / "sub" / "a.txt")
    (listed,) = [source for source in sources.find_sources([corpus])[0] if source.link]
    with listed.opened(link) as stream:
        assert stream.read() == b"text"
    as_link_out(link)
    with pytest.raises(InputError):
        listed.opened(link)


class Written:
    """An open file to which somebody adds a line once it was read."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path, self._stream, self._lines = path, stream, ["And one line more.\n"]

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def fileno(self) -> int:
        return self._stream.fileno()

    def read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        with self._path.open("a") as other:
            other.writelines(self._lines)
        self._lines = []
        return piece


def test_a_file_that_is_written_while_it_is_read_keeps_what_was_stored(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "Fever\n\nGive paracetamol.\n"})
    import_into(settings, corpus)
    stored = documents(settings)
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics at once.\n"})

    def opened(path: Path, *more: object) -> object:
        stream = open_regular(path)
        return Written(path, stream) if path.name == "a.txt" else stream

    monkeypatch.setattr(sources, "open_regular", opened)
    report = import_into(settings, corpus)
    assert [line.outcome for line in report.lines if line.path.endswith("a.txt")] == ["quarantined"]
    assert documents(settings) == stored
    monkeypatch.undo()
    report = import_into(settings, corpus)
    assert [line.outcome for line in report.lines if line.path.endswith("a.txt")] == ["read"]
