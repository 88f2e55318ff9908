"""Archives through the whole import: members like files of their own; hostile ones refused, never half-imported."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest

from localmed.config import Settings
from localmed.ingest import sources
from localmed.library import layout, originals
from localmed.library.state import quarantined, rows
from tests.fakes import answers, described, documents, import_into, jsonl, verify, write
from tests.ingest.readers.pdf import fixtures as pdf_fixtures
from tests.ingest.test_pipeline import FEVER, SEPSIS, STROKE
from tests.words import phrase, said, words


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
    with rows(settings.data) as state:
        return {words(entry.place): words(entry.reason) for entry in quarantined(state)}


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
    assert not (settings.data / layout.UNPACKED).exists()
    assert import_into(settings, corpus).count("unchanged") == 1
    verify(settings.data)


@pytest.mark.parametrize("name", ["a.tar", "a.tgz", "a.tar.xz", "a.TAR.BZ2", "a.zip"])
def test_every_kind_of_archive_is_in_step(settings: Settings, corpus: Path, name: str) -> None:
    pack = zipped if name.endswith(".zip") else tarred
    pack(corpus / name, {"sepsis.txt": SEPSIS.encode(), "fever.md": FEVER.encode()})
    import_into(settings, write(corpus, {"stroke.txt": STROKE}))
    assert {document.media_type for document in documents(settings).values()} == {"text", "markdown"}
    pack(corpus / name, {"sepsis.txt": SEPSIS.encode()})
    import_into(settings, corpus)
    assert {document.title for document in documents(settings).values()} == {"Sepsis", "Stroke"}
    (corpus / name).unlink()
    import_into(settings, corpus)
    assert {document.title for document in documents(settings).values()} == {"Stroke"}


def odd(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


GOOD = {"good.txt": SEPSIS.encode()}
SWOLLEN = {**GOOD, "zeros.txt": bytes(20 * 2**20)}


def matryoshka(path: Path) -> Path:
    inner = GOOD
    for _ in range(4):
        inner = {"inner.zip": zipped(path, inner).read_bytes()}
    return path


def cut(path: Path) -> Path:
    tarred(path, {**GOOD, "b.txt": FEVER.encode() * 999})
    path.write_bytes(path.read_bytes()[:-40])
    return path


def locked(path: Path) -> Path:
    content = bytearray(zipped(path, GOOD).read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag that says a member is encrypted
        content[content.index(mark) + at] |= 1
    path.write_bytes(content)
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "up.zip": (lambda path: zipped(path, {**GOOD, "../../etc/evil.txt": b"x"}), phrase("reader.leads_out")),
    "root.tar": (lambda path: tarred(path, {**GOOD, "/etc/evil.txt": b"x"}), phrase("reader.leads_out")),
    "drive.zip": (lambda path: zipped(path, {**GOOD, "C:\\evil.txt": b"x"}), phrase("reader.leads_out")),
    "device.tar": (lambda path: tarred(path, GOOD, odd("null", tarfile.CHRTYPE)), phrase("reader.device")),
    "pipe.tar.gz": (lambda path: tarred(path, GOOD, odd("pipe", tarfile.FIFOTYPE)), phrase("reader.device")),
    "swollen.zip": (lambda path: zipped(path, SWOLLEN), "read.archive_ratio"),
    "swollen.tar.gz": (lambda path: tarred(path, SWOLLEN), "read.archive_ratio"),
    "matryoshka.zip": (matryoshka, "read.archive_depth"),
    "cut.tar.gz": (cut, "damaged"),
    "locked.zip": (locked, "needs a password"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_whole(settings: Settings, corpus: Path, name: str) -> None:
    build, why = HOSTILE[name]
    build(corpus / name)
    write(corpus, {"other.txt": FEVER})
    report = import_into(settings, corpus)
    assert set(documents(settings)) == {"other.txt"}
    assert report.counts["quarantined"] == 1
    assert why in reasons(settings)[""]
    assert not (settings.data / layout.UNPACKED).exists()
    assert not (corpus.parent / "etc").exists()


@pytest.mark.parametrize("bound", ["archive_members", "archive_bytes"])
def test_bounds_on_members_have_names(settings: Settings, corpus: Path, bound: str) -> None:
    zipped(corpus / "a.zip", {f"{number}.txt": SEPSIS.encode() for number in range(5)})
    bounds: dict[str, Any] = {bound: 4}
    import_into(replace(settings, read=replace(settings.read, **bounds)), corpus)
    assert f"read.{bound}" in reasons(settings)[""]


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


def test_names_from_chinese_windows_and_the_manifests_reader_and_files(settings: Settings, corpus: Path) -> None:
    raw = "脓毒症.txt".encode("gbk")
    path = zipped(corpus / "a.zip", {"x" * len(raw): b"Chapter 1\nText of it.", "two.md": b"# No"})
    path.write_bytes(path.read_bytes().replace(b"x" * len(raw), raw))
    import_into(settings, corpus, manifest=described(reader="textbook", files=("*.txt", "*.zip")))
    [document] = documents(settings).values()
    assert (document.media_type, document.title) == ("textbook", "脓毒症")
    assert document.key.endswith("a.zip#脓毒症.txt")


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
    chosen, skipped = sources.find_sources([corpus])
    assert {source.name for source in chosen} == {"a.txt", "in.txt"}
    assert [(Path(line.path).name, words(line.detail)) for line in skipped] == [("out.txt", said("source.link_out"))]
