"""Office files (DOCX, PPTX, XLSX) as packages: what must be refused before a library opens them, and what is noted.

Rules: a package that is encrypted, damaged, or unpacks to far more than it holds is refused; so is one whose XML
declares a document type, which no Office program writes. Macros are never run: they stay in the original, and a note
says that they are there. Nothing that lies outside (a template, a linked picture or file) is ever fetched; a note says
that the file points there. Files embedded in it are not read, which a note says too.

Not covered: the old formats before 2007, OpenDocument, and "Strict Open XML", which are refused by name.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from localmed.config import ReadBounds
from localmed.domain import Message, message
from localmed.domain.errors import InputError, reason
from localmed.ingest.readers.archive import check_zip
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.values import one_line

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PROTECTED = "EncryptedPackage".encode("utf-16-le")
_LOOKED = 2**20  # bytes at each end of an OLE file, where its directory stands
_STRICT = b"http://purl.oclc.org/ooxml/"
_MAIN = ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml")
_DOCTYPE = b"<!DOCTYPE"
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_OUTSIDE = re.compile(rb"TargetMode\s*=\s*[\"']External[\"']")
_HYPERLINK = re.compile(rb"Type\s*=\s*[\"'][^\"']*/hyperlink[\"']")
_CHART_BOOK = re.compile(rb"Target\s*=\s*[\"'][^\"']*embeddings/([^\"'/]+)[\"']")

T = TypeVar("T")


def checked(path: Path, bounds: ReadBounds) -> list[Message]:
    """What a librarian must know of the package ``path``; raise ``InputError`` where it must not be opened."""
    _check_form(path)
    try:
        with zipfile.ZipFile(path) as package:
            check_zip(path, package, bounds)
            return list(_notes(path, package))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise damaged(path, error) from None


def opened(path: Path, open_it: Callable[[str], T]) -> T:
    """What ``open_it`` makes of a checked package; its library's many errors become one of ours."""
    try:
        return open_it(str(path))
    except (InputError, MemoryError, RecursionError):
        raise
    except Exception as error:  # python-docx, python-pptx and openpyxl raise what lxml, zipfile and they themselves do
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> InputError:
    """The refusal of a package that cannot be read."""
    return InputError("reader.no_office", name=path.name, reason=reason(error))


def tree(part: bytes) -> Any:
    """The elements of a part that its library leaves as bytes."""
    from lxml import etree

    return etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))


def line(text: str | None) -> str:
    """``text`` clean and on one line."""
    return one_line(clean(text or ""))


def _check_form(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(_LOOKED)
            file.seek(max(0, path.stat().st_size - _LOOKED))
            tail = file.read(_LOOKED)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None
    if not head:
        raise InputError("reader.empty", name=path.name)
    if head.startswith(_OLE) and (_PROTECTED in head or _PROTECTED in tail):
        raise InputError("reader.password", name=path.name)
    if head.startswith(_OLE):
        raise InputError("reader.old_office", name=path.name)


def _notes(path: Path, package: zipfile.ZipFile) -> Iterator[Message]:
    names = package.namelist()
    if not any(name in names for name in _MAIN):
        raise InputError("reader.zip_no_office", name=path.name)
    outside, charted = 0, set()
    for name in names:
        if name.lower().endswith((".xml", ".rels", ".vml")):
            content = package.read(name)
            _check_part(path, content, main=name in _MAIN)
            if name.endswith(".rels"):
                outside += sum(map(_is_outside, _RELATION.findall(content)))
            if "/charts/_rels/" in name:
                charted |= set(_CHART_BOOK.findall(content))
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        yield message("reader.macros")
    if outside:
        yield message("reader.outside", count=outside)
    embedded = [name for name in names if "/embeddings/" in name and name.rpartition("/")[2].encode() not in charted]
    if embedded:
        yield message("reader.embedded", count=len(embedded))


def _check_part(path: Path, content: bytes, main: bool) -> None:
    plain = content.replace(b"\x00", b"")  # so that UTF-16 shows it
    if _DOCTYPE in plain:
        raise InputError("reader.doctype", name=path.name)
    if main and _STRICT in plain:
        raise InputError("reader.strict", name=path.name)


def _is_outside(relation: bytes) -> bool:
    return bool(_OUTSIDE.search(relation)) and not _HYPERLINK.search(relation)
