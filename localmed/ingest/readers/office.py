"""Checks Office packages (DOCX, PPTX, XLSX) before a library opens them.

Rules: a package is refused if it is encrypted or damaged, unpacks to far more than its size, or declares a document
type in its XML, which no Office program does. Macros are never run, linked templates, pictures and files never fetched,
embedded files not read; notes name all three.

Not covered: formats before 2007, OpenDocument and "Strict Open XML", which are refused by name.
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
_LOOKED = 2**20  # bytes at each end of an OLE file, which contain its directory
_STRICT = b"http://purl.oclc.org/ooxml/"
_MAIN = ("word/document.xml", "ppt/presentation.xml", "xl/workbook.xml")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_OUTSIDE = re.compile(rb"TargetMode\s*=\s*[\"']External[\"']")
_HYPERLINK = re.compile(rb"Type\s*=\s*[\"'][^\"']*/hyperlink[\"']")
_CHART_BOOK = re.compile(rb"Target\s*=\s*[\"'][^\"']*embeddings/([^\"'/]+)[\"']")

T = TypeVar("T")


def check(path: Path, bounds: ReadBounds) -> list[Message]:
    """Check the package ``path`` and return notes; raise ``InputError`` if it must not be opened."""
    try:
        with path.open("rb") as file:
            head = file.read(_LOOKED)
            file.seek(max(0, path.stat().st_size - _LOOKED))
            tail = file.read(_LOOKED)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None
    if not head:
        raise InputError("reader.empty", name=path.name)
    if head.startswith(_OLE):
        protected = _PROTECTED in head or _PROTECTED in tail
        raise InputError("reader.password" if protected else "reader.old_office", name=path.name)
    try:
        with zipfile.ZipFile(path) as package:
            check_zip(path, package, bounds)
            return list(_notes(path, package))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise damaged(path, error) from None


def open_package(path: Path, open_it: Callable[[str], T]) -> T:
    """Call ``open_it`` on a checked package; the many errors of its library become one of ours."""
    try:
        return open_it(str(path))
    except (InputError, MemoryError, RecursionError):
        raise
    except Exception as error:  # python-docx, python-pptx and openpyxl raise errors of lxml, zipfile and their own
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> InputError:
    """The error for a package that cannot be read."""
    return InputError("reader.no_office", name=path.name, reason=reason(error))


def tree(part: bytes) -> Any:
    """Parse a part that its library leaves as bytes."""
    from lxml import etree

    return etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))


def line(text: str | None) -> str:
    """``text`` cleaned, on one line."""
    return one_line(clean(text or ""))


def _notes(path: Path, package: zipfile.ZipFile) -> Iterator[Message]:
    names = package.namelist()
    if not any(name in names for name in _MAIN):
        raise InputError("reader.zip_no_office", name=path.name)
    outside, charted = 0, set()
    for name in names:
        if name.lower().endswith((".xml", ".rels", ".vml")):
            content = package.read(name)
            plain = content.replace(b"\x00", b"")  # for UTF-16
            if b"<!DOCTYPE" in plain:
                raise InputError("reader.doctype", name=path.name)
            if name in _MAIN and _STRICT in plain:
                raise InputError("reader.strict", name=path.name)
            if name.endswith(".rels"):
                relations = _RELATION.findall(content)
                outside += sum(bool(_OUTSIDE.search(one)) and not _HYPERLINK.search(one) for one in relations)
            if "/charts/_rels/" in name:
                charted |= set(_CHART_BOOK.findall(content))
    if any(name.lower().endswith("vbaproject.bin") for name in names):
        yield message("reader.macros")
    if outside:
        yield message("reader.outside", count=outside)
    embedded = [name for name in names if "/embeddings/" in name and name.rpartition("/")[2].encode() not in charted]
    if embedded:
        yield message("reader.embedded", count=len(embedded))
