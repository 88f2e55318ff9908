"""A file of which OCR failed on pages is read again by the next import, and never replaces what was read before."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest

from localmed.config import ReadBounds, Settings
from localmed.domain import Document, message
from localmed.ingest.reading import UNFINISHED, Reading, refusal, unmarked
from localmed.library.catalogue import ImportedFile
from localmed.library.state import State
from tests.fakes import answers, described, import_into, verify
from tests.ingest.readers.pdf import fixtures as make
from tests.words import phrase, words

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
    error = refusal(reading, ImportedFile("c", "/a.pdf", "old", mark + "recipe", ""), stored(passages), sha256)
    assert bool(error) is refused
    if error:
        assert "a.pdf: OCR failed on 1 page" in str(error)
        assert "crashed" in str(error)
        assert "no abstract" not in str(error)


def test_what_was_never_stored_is_taken_as_it_is_and_marked() -> None:
    reading = Reading(lost=1)
    assert refusal(reading, None, [], "new") is None
    assert (reading.mark, unmarked(reading.mark + "recipe")) == (UNFINISHED, "recipe")


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
    with State(settings.data) as state:
        assert [entry.sha256 for entry in state.quarantined()] == [""]  # so that it is tried again
    verify(settings.data)


def make_mixed(path: Path) -> None:
    """A page of text and one that is a picture of text."""
    printed, picture = pymupdf.open(), pymupdf.open()
    make.lines(printed.new_page(width=400, height=250), 40, 60, make.LEFT, 12)
    make.lines(picture.new_page(width=400, height=250), 40, 60, make.RIGHT, 12)
    picture.new_page(width=400, height=250).insert_image((0, 0, 400, 250), pixmap=printed[0].get_pixmap(dpi=150))
    make.save(picture, path)
