"""EPUB books (2 and 3): the chapters of the spine, in its order, as one document.

Rules: the package file names the chapters; each is read as an HTML page is (``html.py``). Title, language, date and
ISBN are the package's. A book whose chapters are encrypted is refused; fonts may be. Nothing outside is fetched.

Not covered: pictures but for their words, sound, formulas, the table of contents (its headings stand in the chapters).
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from localmed.domain import message
from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import bounds_of, html, markup, values
from localmed.ingest.readers.archive import check_zip
from localmed.ingest.readers.encoding import decode
from localmed.ingest.readers.markup import flat, name_of

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """The book as one record, and a fault for each chapter that cannot be read."""
    try:
        with zipfile.ZipFile(path) as package:
            check_zip(path, package, bounds_of(mapping))
            yield from _book(path, package)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, ParseError, OSError) as error:
        raise InputError("reader.no_epub", name=path.name, reason=reason(error)) from None
    except DefusedXmlException as error:
        raise InputError("reader.xml_refused", name=path.name, reason=reason(error)) from None


def _book(path: Path, package: zipfile.ZipFile) -> Iterator[SourceRecord | Fault]:
    if _ENCRYPTION in package.namelist() and _is_locked(package.read(_ENCRYPTION)):
        raise InputError("reader.encrypted", name=path.name)
    rootfile = fromstring(package.read(_CONTAINER)).find(".//{*}rootfile")
    place = "" if rootfile is None else rootfile.get("full-path", "")
    root = fromstring(package.read(place))
    blocks: list[Block] = []
    for number, name in enumerate(_spine(root, posixpath.dirname(place)), start=1):
        chapter = message("reader.chapter", number=number)
        try:
            page = html.parsed(chapter, decode(package.read(name)))
            blocks += markup.blocks_of(page, html.VOCABULARY)
        except (InputError, KeyError) as error:
            yield Fault(chapter, error.messages[0] if isinstance(error, InputError) else message("reader.missing"))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text", name=path.name)
    isbn = [
        identifier
        for identifier in _meta(root, "identifier")
        if identifier.lower().startswith(("isbn", "urn:isbn", "978"))
    ]
    yield SourceRecord(
        key="",
        title=next(iter(_meta(root, "title")), "") or path.stem,
        blocks=tuple(blocks),
        edition=values.edition(next(iter(_meta(root, "date")), "")),
        language=values.language(next(iter(_meta(root, "language")), "")),
        identifiers=tuple(f"isbn:{identifier.lower().rpartition(':')[2].strip()}" for identifier in isbn),
    )


def _is_locked(encryption: bytes) -> bool:
    """Whether anything but fonts is encrypted."""
    methods = encryption.count(b"EncryptedData>") // 2 or encryption.count(b"EncryptedData")
    return sum(map(encryption.count, _FONTS)) < methods


def _spine(root: Any, folder: str) -> Iterator[str]:
    """The names of the chapters within the archive, in reading order."""
    items = {item.get("id", ""): item for item in root.iter() if name_of(item) == "item"}
    for reference in (element for element in root.iter() if name_of(element) == "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is not None and item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split():
            yield posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))


def _meta(root: Any, name: str) -> list[str]:
    return [
        text for element in root.findall(f".//{{http://purl.org/dc/elements/1.1/}}{name}") if (text := flat(element))
    ]
