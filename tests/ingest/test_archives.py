"""Archives through the whole import: members like files of their own; hostile ones refused, never half-imported."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest

from localmed.config import Settings
from localmed.domain.errors import InputError
from localmed.ingest import opening, sources
from localmed.library import originals
from localmed.library.state import State
from tests.fakes import answers, described, documents, import_into, jsonl, verify, write
from tests.ingest.readers.pdf import fixtures as pdf_fixtures
from tests.ingest.test_pipeline import FEVER, SEPSIS, STROKE
from tests.words import pattern, phrase, said, words


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, members: dict[str, bytes], *odd: tarfile.TarInfo) -> Path:
    packing = {".gz": "gz", ".tgz": "gz", ".xz": "xz", ".bz2": "bz2"}.get(path.suffix.lower(), "")
    with tarfile.open(path, f"w:{packing}") as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in odd:
            archive.addfile(info)
    return path


def word(text: str) -> bytes:
    document = docx.Document()
    document.add_paragraph(text)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def reasons(settings: Settings) -> dict[str, str]:
    with State(settings.data) as state:
        return {words(entry.place): words(entry.reason) for entry in state.quarantined()}


@pytest.mark.parametrize("name", ["all.zip", "all.tar.gz"])
@pytest.mark.slow
def test_members_are_files_of_their_own(settings: Settings, corpus: Path, tmp_path: Path, name: str) -> None:
    pdf = pdf_fixtures.two_columns(tmp_path / "two.pdf").read_bytes()
    inner = zipped(tmp_path / "inner.zip", {"stroke.txt": STROKE.encode()}).read_bytes()
    members = {
        "sub/sepsis.txt": SEPSIS.encode(),
        "ward.docx": word("Insulin is kept cool."),
        "two.pdf": pdf,
        "notes.jsonl": jsonl({"id": "1", "text": "Potassium is given slowly."}).encode(),
        "empty.txt": b"",
        "photo.jpg": b"\xff\xd8\xff",
        "__MACOSX/._a.txt": b"x",
        "inner.zip": inner,
    }
    (zipped if name.endswith(".zip") else tarred)(corpus / name, members)
    report = import_into(settings, corpus)
    stored = documents(settings)
    assert {document.key.partition("#")[2] for document in stored.values()} == {
        *("sub/sepsis.txt", "ward.docx", "two.pdf", "notes.jsonl#1", "inner.zip/stroke.txt"),
    }
    assert {document.media_type for document in stored.values()} == {"text", "docx", "pdf", "jsonl"}
    assert reasons(settings) == {"empty.txt": said("reader.no_text", name="empty.txt")}
    assert [words(line.detail) for line in report.lines if line.outcome == "note"] == [
        said("import.unread_members", count=1, name=name, kinds=".jpg")
    ]
    assert answers(settings, "insulin kept cool", limit=1) == {"ward"}
    page = next(document for document in stored.values() if document.media_type == "pdf")
    assert originals.path_of(settings.data, page.file_sha256).read_bytes() == pdf
    assert not (settings.data / opening.FOLDER).exists()
    assert import_into(settings, corpus).count("unchanged") == 1
    verify(settings.data)


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.xz", "a.TAR.BZ2"])
def test_every_kind_of_tar(settings: Settings, corpus: Path, name: str) -> None:
    tarred(corpus / name, {"sepsis.txt": SEPSIS.encode(), "fever.md": FEVER.encode()})
    import_into(settings, corpus)
    assert {document.media_type for document in documents(settings).values()} == {"text", "markdown"}


@pytest.mark.slow
def test_a_changed_archive_replaces_its_members_and_a_removed_one_takes_them_away(
    settings: Settings, corpus: Path
) -> None:
    zipped(corpus / "a.zip", {"a.txt": SEPSIS.encode(), "b.txt": FEVER.encode()})
    write(corpus, {"c.txt": STROKE})
    import_into(settings, corpus)
    zipped(corpus / "a.zip", {"b.txt": FEVER.encode()})
    import_into(settings, corpus)
    assert {document.title for document in documents(settings).values()} == {"Fever", "Stroke"}
    (corpus / "a.zip").unlink()
    import_into(settings, corpus)
    assert {document.title for document in documents(settings).values()} == {"Stroke"}
    verify(settings.data)


def odd(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def hostile(folder: Path, what: str) -> Path:
    good = {"good.txt": SEPSIS.encode()}
    if what == "up":
        return zipped(folder / "up.zip", {**good, "../../etc/evil.txt": b"x"})
    if what == "root":
        return tarred(folder / "root.tar", {**good, "/etc/evil.txt": b"x"})
    if what == "drive":
        return zipped(folder / "drive.zip", {**good, "C:\\evil.txt": b"x"})
    if what == "device":
        return tarred(folder / "device.tar", good, odd("null", tarfile.CHRTYPE))
    if what == "pipe":
        return tarred(folder / "pipe.tar.gz", good, odd("pipe", tarfile.FIFOTYPE))
    if what == "swollen zip":
        return zipped(folder / "swollen.zip", {**good, "zeros.txt": bytes(20 * 2**20)})
    if what == "swollen tar":
        return tarred(folder / "swollen.tar.gz", {**good, "zeros.txt": bytes(20 * 2**20)})
    if what == "matryoshka":
        inner = good
        for _ in range(4):
            inner = {"inner.zip": zipped(folder / "matryoshka.zip", inner).read_bytes()}
        return folder / "matryoshka.zip"
    if what == "cut":
        path = tarred(folder / "cut.tar.gz", {**good, "b.txt": FEVER.encode() * 999})
        path.write_bytes(path.read_bytes()[:-40])
        return path
    path = zipped(folder / "locked.zip", good)
    locked = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag that says a member is encrypted
        locked[locked.index(mark) + at] |= 1
    path.write_bytes(locked)
    return path


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("up", phrase("reader.leads_out")),
        ("root", phrase("reader.leads_out")),
        ("drive", phrase("reader.leads_out")),
        ("device", phrase("reader.device")),
        ("pipe", phrase("reader.device")),
        ("swollen zip", "read.archive_ratio"),
        ("swollen tar", "read.archive_ratio"),
        ("matryoshka", "read.archive_depth"),
        ("cut", "damaged"),
        ("locked", "needs a password"),
    ],
)
def test_a_hostile_archive_is_refused_whole(settings: Settings, corpus: Path, what: str, why: str) -> None:
    hostile(corpus, what)
    write(corpus, {"other.txt": FEVER})
    report = import_into(settings, corpus)
    assert set(documents(settings)) == {"other.txt"}
    assert report.counts["quarantined"] == 1
    assert why in reasons(settings)[""]
    assert not (settings.data / opening.FOLDER).exists()
    assert not (corpus.parent / "etc").exists()


def test_bounds_on_members_have_names(settings: Settings, corpus: Path) -> None:
    zipped(corpus / "a.zip", {f"{number}.txt": SEPSIS.encode() for number in range(5)})
    for name in ("archive_members", "archive_bytes"):
        bound: Any = {name: 4}
        bounded = replace(settings, read=replace(settings.read, **bound))
        import_into(bounded, corpus, retry=True)
        assert f"read.{name}" in reasons(settings)[""]


def test_links_and_doubles_are_named_and_the_rest_is_read(settings: Settings, corpus: Path) -> None:
    link = odd("link.txt", tarfile.SYMTYPE, "/etc/hostname")
    tarred(corpus / "a.tar", {"good.txt": SEPSIS.encode()}, link, odd("hard.txt", tarfile.LNKTYPE, "good.txt"))
    with zipfile.ZipFile(corpus / "b.zip", "w") as archive:
        archive.writestr("same.txt", FEVER)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("same.txt", STROKE)
        unix = zipfile.ZipInfo("link.txt")
        unix.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(unix, "/etc/hostname")
    import_into(settings, corpus)
    assert {document.title for document in documents(settings).values()} == {"Sepsis", "Fever"}
    assert reasons(settings) == {
        "link.txt": said("reader.link"),
        "hard.txt": said("reader.link"),
        "same.txt": said("reader.twice"),
    }


def test_names_from_chinese_windows_are_read(settings: Settings, corpus: Path) -> None:
    raw = "脓毒症.txt".encode("gbk")
    path = zipped(corpus / "a.zip", {"x" * len(raw): SEPSIS.encode()})
    path.write_bytes(path.read_bytes().replace(b"x" * len(raw), raw))
    import_into(settings, corpus)
    [document] = documents(settings).values()
    assert document.key.endswith("a.zip#脓毒症.txt")


def test_the_manifest_reader_and_files_are_for_the_members(settings: Settings, corpus: Path) -> None:
    zipped(corpus / "a.zip", {"one.txt": b"Chapter 1\nText of it.", "two.md": b"# No"})
    import_into(settings, corpus, manifest=described(reader="textbook", files=("*.txt", "*.zip")))
    [document] = documents(settings).values()
    assert (document.media_type, document.title) == ("textbook", "one")


@pytest.mark.slow
def test_every_format_goes_from_a_folder_to_a_citation(settings: Settings, corpus: Path) -> None:
    """Originals have no ending: a reader that looks at one works alone and fails here."""
    show, book = pptx.Presentation(), openpyxl.Workbook()
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "Rabies"
    show.slides[0].shapes.add_textbox(0, 0, 9, 9).text_frame.text = "Wash the wound with soap."
    show.save(str(corpus / "rabies.pptx"))
    book.active.append(["Vaccine", "Shelf"])
    book.active.append(["typhoid", "upper"])
    book.save(corpus / "vaccines.xlsx")
    (corpus / "insulin.docx").write_bytes(word("Insulin is kept cool."))
    article = (
        "<article><front><article-meta><title-group><article-title>Gout</article-title></title-group></article-meta>"
    )
    texts = {
        "labels.csv": "药物,剂量\n阿司匹林,75mg\n",
        "croup.html": "<title>Croup</title><p>Give dexamethasone once.</p>",
        "saved.nbib": "PMID- 1\nTI  - Scurvy\nAB  - Lemons were given daily.\n",
        "gout.nxml": f"{article}</front><body><p>Colchicine was given.</p></body></article>",
    }
    write(corpus, texts)
    report = import_into(settings, corpus)
    assert report.counts["quarantined"] == 0
    titles = {"wound soap": "Rabies", "typhoid upper": "vaccines", "insulin cool": "insulin", "dexamethasone": "Croup",
              "lemons": "Scurvy", "colchicine": "Gout", "阿司匹林": "labels"}  # fmt: skip
    assert {question: answers(settings, question, limit=1) for question in titles} == {
        question: {title} for question, title in titles.items()
    }


# --- what is beside archives -----------------------------------------------------------------------------------


def test_a_link_out_of_the_folder_is_passed_over_and_one_within_is_read(corpus: Path) -> None:
    write(corpus, {"a.txt": SEPSIS})
    write(corpus.parent / "elsewhere", {"secret.txt": "secret"})
    (corpus / "out.txt").symlink_to(corpus.parent / "elsewhere" / "secret.txt")
    (corpus / "in.txt").symlink_to(corpus / "a.txt")
    chosen, skipped = sources.find([corpus])
    assert {source.name for source in chosen} == {"a.txt", "in.txt"}
    assert [(Path(line.path).name, words(line.detail)) for line in skipped] == [("out.txt", said("source.link_out"))]


def test_a_file_that_changes_while_it_is_copied_is_refused(settings: Settings, tmp_path: Path) -> None:
    path = write(tmp_path, {"growing.txt": "begun"}) / "growing.txt"
    pieces = originals._pieces(path)
    next(pieces)
    path.write_text("begun and ended")
    with pytest.raises(InputError, match=pattern("library.source_changed")):
        list(pieces)
