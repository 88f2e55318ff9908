"""A dry run says what an import would do, shows what it read, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import resource
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from localmed.config import IngestSettings, Settings
from localmed.domain import Box, Collection, Document, Kind, Passage, Span, message
from localmed.domain.errors import DiskFull, UsageError
from localmed.domain.previews import FilePreview
from localmed.ingest import draw
from localmed.ingest.manifest import Manifest
from localmed.ingest.preview import AHEAD, PREFIX, Preview
from localmed.presentation import preview as preview_page
from localmed.presentation.preview import PreviewPage, by_page
from localmed.presentation.tables import grids
from tests.fakes import described, documents, hashes, import_into, jsonl, write
from tests.ingest.readers.pdf.fixtures import scan, table, two_columns
from tests.library.test_governance import as_before
from tests.words import phrase, words

SEPSIS = "Sepsis\n\nGive antibiotics within one hour.\n"
VOID = {"meta", "img", "br"}


class Seen(HTMLParser):
    """What stands in a page: every tag must be closed, and what is loaded is noted."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, for this test alone."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


def looked(settings: Settings, *paths: Path, manifest: Manifest | None = None) -> dict[str, FilePreview]:
    files = Preview(settings, manifest or described()).files(list(paths))
    return {Path(file.path).name: file for file in files}


def page(settings: Settings, target: Path, *paths: Path, language: str = "en") -> Seen:
    with empty_page(language) as made:
        for file in Preview(settings, described()).files(list(paths)):
            made.add(file)
        target.write_text("".join(made.chunks()), "utf-8", "replace")
    return Seen(target.read_text("utf-8"))


def empty_page(language: str = "en") -> PreviewPage:
    return PreviewPage(described().collection.title, language, draw.draw_thumbnails, "2026-01-02", "1.0")


def test_without_a_library_everything_is_new_and_none_is_made(
    settings: Settings, corpus: Path, temporary_files: Path
) -> None:
    write(corpus, {"a.txt": SEPSIS, "b.txt": "", "c.doc": "x", "d.txt": SEPSIS})
    files = looked(settings, corpus)
    assert {name: file.outcome for name, file in files.items()} == {
        "a.txt": "new", "b.txt": "refused", "c.doc": "skipped", "d.txt": "same"
    }  # fmt: skip
    assert "same content as document" in words(files["d.txt"].reason)
    assert words(files["b.txt"].reason).startswith("b.txt")
    assert [document.title for (document, _), _ in files["a.txt"].documents] == ["Sepsis"]
    assert not settings.data.exists()
    assert list(temporary_files.iterdir()) == []
    with pytest.raises(UsageError, match="terms"):
        Preview(settings, Manifest(Collection("doid", "DOID", kind=Kind.GRAPH)))


def kept(settings: Settings) -> dict[str, str]:
    """The hashes of all files but those that SQLite makes beside a database to read it."""
    return {name: sha256 for name, sha256 in hashes(settings.data).items() if not name.endswith(("-wal", "-shm"))}


def test_beside_a_library_it_says_what_would_change_and_changes_nothing(settings: Settings, corpus: Path) -> None:
    write(corpus, {"same.txt": SEPSIS, "changed.txt": "Fever\n\nPararecetamol.\n", "gone.txt": "Gone\n\nText.\n"})
    write(corpus, {"moved.txt": "Stroke\n\nThrombolysis.\n"})
    write(corpus, {"some.jsonl": jsonl({"id": "1", "text": "One."}, {"id": "2", "text": "Two."})})
    import_into(settings, corpus)
    write(corpus, {"changed.txt": "Fever\n\nParacetamol.\n", "new.txt": "New\n\nText.\n"})
    write(corpus, {"some.jsonl": jsonl({"id": "1", "text": "One."}, {"id": "3", "text": "Three."}, "broken")})
    (corpus / "gone.txt").unlink()
    (corpus / "moved.txt").rename(corpus / "elsewhere.txt")
    before, stored = kept(settings), documents(settings)
    files = looked(settings, corpus)
    assert {name: file.outcome for name, file in files.items()} == {
        "same.txt": "same", "changed.txt": "changed", "new.txt": "new", "some.jsonl": "changed",
        "gone.txt": "removed", "moved.txt": "removed", "elsewhere.txt": "moved",
    }  # fmt: skip
    some = files["some.jsonl"]
    assert [outcome for _, outcome in some.documents] == ["same", "new"]
    assert (some.going, [words(fault.where) for fault in some.faults]) == (1, ["line 3"])
    assert kept(settings) == before
    report = import_into(settings, corpus)
    assert report.counts["read"] == 4, "and the import does what was said"
    assert documents(settings).keys() - stored.keys() == {"new.txt", "elsewhere.txt", "some.jsonl#3"}


def test_beside_a_generation_of_the_schema_before(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.txt": SEPSIS}))
    as_before(settings.data)
    write(corpus, {"b.txt": "Fever\n\nParacetamol.\n"})
    assert {name: file.outcome for name, file in looked(settings, corpus).items()} == {"a.txt": "same", "b.txt": "new"}


@pytest.mark.parametrize(("texts", "most"), [(3, 3), (30, AHEAD + 2)])
def test_a_few_files_are_copied_ahead_and_originals_go_as_the_files_do(
    settings: Settings, corpus: Path, texts: int, most: int
) -> None:
    """With the one that is shown and the one before it."""
    write(corpus, {f"{number}.txt": f"Title {number % texts}\n\nText {number % texts}.\n" for number in range(30)})
    one = replace(settings, ingest=IngestSettings(children=1))
    kept = [len(list(file.folder.glob("*"))) for file in Preview(one, described()).files([corpus]) if file.documents]
    assert len(kept) == texts
    assert max(kept) <= most


def test_a_full_temporary_folder_is_told(settings: Settings, corpus: Path, temporary_files: Path) -> None:
    write(corpus, {"large.txt": "Text. " * 2**20})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * 2**20, before[1]))  # stands for a disk without room for it
    try:
        with pytest.raises(DiskFull, match=re.escape(str(temporary_files))):
            looked(settings, corpus)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(temporary_files.iterdir()) == []


def test_what_a_killed_preview_left_is_removed_by_the_next(
    settings: Settings, corpus: Path, temporary_files: Path
) -> None:
    for name in ("left", "in-use", "just-made"):
        write(temporary_files / f"{PREFIX}{name}", {"files/0": "Copy of a document."})
    for name in ("left", "in-use"):
        os.utime(temporary_files / f"{PREFIX}{name}", (0, 0))
    write(corpus, {"a.txt": SEPSIS})
    handle = os.open(temporary_files / f"{PREFIX}in-use", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        looked(settings, corpus)
    finally:
        os.close(handle)
    assert {folder.name for folder in temporary_files.iterdir()} == {f"{PREFIX}in-use", f"{PREFIX}just-made"}


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_shows_each_page_beside_its_text(settings: Settings, corpus: Path, tmp_path: Path) -> None:
    two_columns(corpus / "columns.pdf")
    table(corpus / "table.pdf")
    write(corpus, {"bad.txt": "", "<i>.txt": "<script>alert(1)</script> & more\n\nGive \u202eoxygen\u202c.\n"})
    seen = page(settings, tmp_path / "page.html", corpus)
    assert not seen.all("script")
    assert not seen.all("i")
    assert "<script>alert(1)</script> & more" in seen.text
    assert seen.all("html") == [{"lang": "en"}]
    pictures = seen.all("img")
    assert len(pictures) == 3
    assert all(str(picture["src"]).startswith("data:image/jpeg;base64,") for picture in pictures)
    assert sorted(str(picture["alt"])[:7] for picture in pictures) == ["Page 1 ", "Page 1 ", "Page 2 "]
    assert "Amoxicillin is the first choice" in seen.text
    assert {"col", "row"} == {cell["scope"] for cell in seen.all("th")}
    assert len(seen.all("table")) == 3, "the files, and the table on each of its pages"
    assert "bad.txt" in seen.text
    assert phrase("file.outcome_refused") in seen.text
    loaded = [value for _, attributes in seen.tags for name, value in attributes.items() if name in ("src", "href")]
    assert loaded == [picture["src"] for picture in pictures]
    headings = [int(tag[1]) for tag, _ in seen.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))


def test_the_page_speaks_chinese(settings: Settings, corpus: Path, tmp_path: Path) -> None:
    write(corpus, {"a.md": "# 高血压\n\n减少钠盐的摄入。\n", "b.txt": ""})
    seen = page(settings, tmp_path / "page.html", corpus, language="zh")
    assert seen.all("html") == [{"lang": "zh"}]
    assert {"lang": "zh"} in seen.all("h3")
    for shown in ("导入预览：Ward", phrase("file.outcome_refused", "zh"), "减少钠盐"):
        assert shown in seen.text


def test_what_is_left_out_of_the_page_is_said(
    settings: Settings, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("DOCUMENTS", 2), ("PASSAGES", 1), ("PAGES", 1), ("LINES", 1), ("FILES", 2), ("DETAILED", 2)):
        monkeypatch.setattr(preview_page, name, most)
    records = [{"id": str(number), "text": f"Text {number}."} for number in range(5)]
    write(corpus, {"a.jsonl": jsonl(*records, "x", "y", "z"), "b.txt": "T\n\n" + "Long sentence here. " * 200})
    write(corpus, {"c.txt": "Third\n\nFile.\n"})
    seen = page(settings, tmp_path / "page.html", corpus)
    for sentence in ("3 more, not shown.", "2 more, not shown.", "1 more, not shown."):
        assert sentence in seen.text


@pytest.mark.slow
def test_pictures_are_bounded_and_pages_without_text_are_shown(
    settings: Settings, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(corpus / "scan.pdf", text_pages=1, scanned=1)
    monkeypatch.setattr(preview_page, "PICTURES", 10)
    seen = page(settings, tmp_path / "page.html", corpus)
    assert not seen.all("img")
    assert seen.text.count(phrase("preview_page.no_picture")) == 2
    assert "No text was read from this page." in seen.text
    assert "page" in seen.text


def test_ocr_is_said(tmp_path: Path) -> None:
    document = Document("d", "ward", "k", "Scan", "en", "/s.txt", "0" * 64, "c", "text")
    passage = Passage("p", "d", "ward", "en", "", "Scan", (), "Read by a machine.", "0-18", ocr=0.934)
    with empty_page() as made:
        made.add(FilePreview("/s.txt", "new", documents=(((document, (passage,)), "new"),), folder=tmp_path))
        assert "read by OCR, confidence 93%" in Seen("".join(made.chunks())).text


OBEYED = "\x1b]0;owned\x07\x1b[31m\u202e\x9b2J\u2066"


def test_nothing_that_a_browser_obeys_reaches_the_page(tmp_path: Path) -> None:
    """From a title, a heading, a text, a file's name, a reason or a note."""
    odd = f"A{OBEYED}<b>&B"
    document = Document("d", "ward", "k", odd, "en", f"/{odd}.txt", "0" * 64, "c", "text")
    texts = [
        replace(Passage("p", "d", "ward", "en", "", odd, (odd,), odd, "0-9"), table=table) for table in (False, True)
    ]
    reason = message("literal", text=odd)
    with PreviewPage(odd, "en", draw.draw_thumbnails, "2026-01-02", "1.0") as made:
        made.add(FilePreview(f"/{odd}.txt", "new", reason, (((document, tuple(texts)), "new"),), notes=(reason,)))
        written = "".join(made.chunks())
    seen = Seen(written)
    assert not seen.all("b")
    assert seen.text.count("A<b>&B") >= 8
    assert not set(written) & set("\x07\x1b\x9b\u202e\u2066")
    assert "owned" not in written


def test_a_passage_over_two_pages_is_shown_on_both() -> None:
    spans = (Span(0, 5, Box(1, 0, 0, 1, 1)), Span(6, 9, Box(1, 0, 0, 1, 1)), Span(10, 15, Box(2, 0, 0, 1, 1)))
    passage = Passage("p", "d", "c", "en", "", "t", (), "first one next page", "0-19", page=1, spans=spans)
    assert list(by_page(passage)) == [(1, "first one "), (2, "next page")]


def test_rows_become_tables_again() -> None:
    [grid] = grids(["Drug: amoxicillin; Dose: 500 mg; or less", "Section; Drug: gentamicin", "药物：甲；剂量：5mg"])
    assert len(grid.columns) == 5
    assert ("500 mg; or less", 1) in grid.rows[0]
    [bare] = grids(["Section", "one; two; three"])
    assert [[span for _, span in row] for row in bare.rows] == [[3], [1, 1, 1]]
    [many] = grids(["; ".join(f"n{number}: v{number}" for number in range(40))])
    assert many.lines[0].startswith("n0: v0; n1: v1")
