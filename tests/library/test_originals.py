"""Originals: kept as long as a generation was made from them, and removed only on request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain.errors import Damaged, LibraryError
from localmed.library import generations, intact, originals
from tests.fakes import flip, hashes, import_into, verify, write


def brought(settings: Settings, corpus: Path, **texts: str) -> None:
    """Import a corpus of exactly ``texts``; two generations are kept."""
    for path in corpus.glob("*"):
        path.unlink()
    write(corpus, {f"{name}.txt": text for name, text in texts.items()})
    kept = LibrarySettings(keep_generations=2, writer_memory_bytes=15_000_000)
    import_into(Settings(settings.data, library=kept), corpus)


@pytest.fixture
def changed(settings: Settings, corpus: Path) -> Settings:
    """Three imports, the first of which is kept no more."""
    brought(settings, corpus, a="Alpha.", b="Beta.")
    brought(settings, corpus, b="Beta.", c="Gamma.")
    brought(settings, corpus, c="Gamma.", d="Delta.")
    return settings


def stored(settings: Settings) -> set[str]:
    return {path.read_text() for path in (settings.data / "files").iterdir()}


def test_what_a_kept_answer_cites_or_a_kept_generation_was_made_from_stays(changed: Settings) -> None:
    assert generations.numbers(changed.data) == [2, 3]
    assert stored(changed) == {"Alpha.", "Beta.", "Gamma.", "Delta."}
    (alpha,) = [path for path in (changed.data / "files").iterdir() if path.read_text() == "Alpha."]
    answer = changed.data / originals.KEPT / "answer.json"
    answer.parent.mkdir()
    answer.write_text(f'{{"file_sha256": "{alpha.name}"}}', "utf-8")
    assert originals.prune(changed.data) == (0, 0)
    answer.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Damaged, match="kept"):
        originals.prune(changed.data)
    assert "Alpha." in stored(changed)
    answer.unlink()
    assert originals.prune(changed.data) == (1, len("Alpha."))
    assert stored(changed) == {"Beta.", "Gamma.", "Delta."}
    assert originals.prune(changed.data) == (0, 0)
    verify(changed.data)
    generations.rollback(changed.data, 2)
    verify(changed.data)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.slow
def test_nothing_is_removed_while_a_catalogue_is_in_doubt(changed: Settings, number: int) -> None:
    before = hashes(changed.data / "files")
    catalogue = generations.path_of(changed.data, number) / "library.sqlite"
    flip(catalogue)
    with pytest.raises(Damaged, match="has changed"):
        originals.prune(changed.data)
    catalogue.unlink()
    with pytest.raises(Damaged, match="has changed"):
        originals.prune(changed.data)
    assert hashes(changed.data / "files") == before


@pytest.mark.parametrize("name", ["", ".", "../current", "a" * 63, "A" * 64, f"../files/{'a' * 64}", "a" * 64 + "\n"])
def test_what_is_no_hash_leads_nowhere(settings: Settings, name: str) -> None:
    (settings.data / "files").mkdir(parents=True)
    (settings.data / "current").write_text("secret")
    with pytest.raises(LibraryError, match="not a hash"):
        originals.path_of(settings.data, name)


def test_a_file_is_hashed_once_as_long_as_it_lies_there_as_it_did(
    changed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page of a scanned book is drawn from its file, which may have 200 MB."""
    hashed: list[Path] = []

    def hashing(path: Path) -> str:
        hashed.append(path)
        return intact.sha256_of(path)

    monkeypatch.setattr(originals, "sha256_of", hashing)
    (file,) = [path for path in (changed.data / "files").iterdir() if path.read_text() == "Gamma."]
    os.utime(file, (1e9, 1e9))
    for _ in range(3):
        assert originals.whole(changed.data, file.name) == file
    assert hashed == [file]
    file.write_text("Delta!")  # as long as before
    os.utime(file, (1e9, 1e9))
    with pytest.raises(Damaged):
        originals.whole(changed.data, file.name)
    file.write_text("Gamma.")
    assert originals.whole(changed.data, file.name) == file
