"""Reads HTML pages (.html, .htm, .xhtml) and EPUB books: headings, paragraphs, list items and tables.

Rules: navigation, header, footer, forms, scripts and hidden elements are left out; if a page marks its main part, only
that is read. Nothing is fetched. The title is the page's, else its first heading; language and date come from
attributes and meta elements. ``encoding.py`` finds the encoding; the declared one precedes any guess.

EPUB (2 and 3): the chapters of the spine are one document, each read as a page. Title, language, date and ISBN are the
package's. A book with encrypted chapters is refused; fonts may be encrypted.

Not covered: text that scripts write; pictures; MHTML; of books sound and the table of contents.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from localmed.domain import Message, Parameter, message
from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import bounds_of, markup, values
from localmed.ingest.readers.archive import check_zip
from localmed.ingest.readers.encoding import decode
from localmed.ingest.readers.markup import Vocabulary, flat, name_of, texts
from localmed.ingest.readers.text import first_heading, whole_text

_DECLARED = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?([\w.:-]{2,30})|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]{2,30})", re.I
)
_SNIFFED = 4_096  # bytes in which a page declares its encoding; browsers read 1,024
_XML = re.compile(r"^\s*<\?xml[^>]*\?>")  # lxml refuses text that declares an encoding
_DATES = ("article:modified_time", "article:published_time", "dcterms.modified", "dcterms.issued", "dc.date", "date",
          "last-modified", "citation_publication_date", "pubdate")  # fmt: skip
_VOCABULARY = Vocabulary(
    skipped=frozenset(
        {"script", "style", "noscript", "template", "head", "nav", "aside", "form", "button", "select", "option"}
        | {"textarea", "input", "iframe", "object", "embed", "svg", "canvas", "audio", "video", "map", "dialog"}
    ),
    blocks=frozenset(
        {"p", "div", "section", "article", "main", "body", "html", "ul", "ol", "li", "dl", "dt", "dd", "blockquote"}
        | {"pre", "address", "figure", "figcaption", "header", "footer", "hr", "table", "tr", "td", "th", "caption"}
        | {"thead", "tbody", "tfoot", "details", "summary", "center", "fieldset", "legend", "hgroup", "title"}
    ),
    headings={f"h{level}": level for level in range(1, 7)},
)


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """Yield the page as one record."""
    with path.open("rb") as file:
        declared = _DECLARED.search(file.read(_SNIFFED))
    named = (declared[1] or declared[2]).decode("ascii") if declared else ""
    text, cut = whole_text(path, named)
    page = _parse(path.name, text)
    body, notes = _find_main(page)
    blocks = tuple(markup.blocks_of(body, _VOCABULARY))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text_html", name=path.name)
    language = values.language(page.get("lang") or page.get("{http://www.w3.org/XML/1998/namespace}lang") or "")
    title = flat(page.find("head/title")) or first_heading(blocks) or path.stem
    yield SourceRecord("", title, blocks, edition=_date(page), language=language, notes=(*notes, *cut))


def _parse(name: Parameter, text: str) -> Any:
    """Parse a page; raise ``InputError`` if the parser would drop a part of it."""
    from lxml import etree, html

    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(_XML.sub("", text).encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError):
        raise InputError("reader.no_page", name=name) from None
    if any("depth" in str(error.message).lower() for error in parser.error_log):
        raise InputError("reader.html_deep", name=name)
    return page


def _find_main(page: Any) -> tuple[Any, list[Message]]:
    """The element with the page's text, and notes."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        candidates = page.findall(path)
        if len(candidates) == 1 and len(flat(candidates[0])) > 0:
            return candidates[0], [message("reader.main_part")]
    body = page.find("body")
    whole = page if body is None else body
    for wrapping in (*whole.findall("header"), *whole.findall("footer")):
        wrapping.clear(keep_tail=True)
    return whole, []


def _date(page: Any) -> str:
    """The date in the first meta element of ``_DATES`` that contains one."""
    dates: dict[str, str] = {}
    for meta in page.iter("meta"):
        name = str(meta.get("name") or meta.get("property") or meta.get("http-equiv") or "").lower()
        dates.setdefault(name, str(meta.get("content", "")))
    for name in _DATES:
        if re.match(r"\d{4}", date := values.edition(dates.get(name, ""))):
            return date
    return ""


# --- EPUB -------------------------------------------------------------------------------------------------------------

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def read_epub(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield the book as one record, and a fault for each unreadable chapter."""
    try:
        with zipfile.ZipFile(path) as package:
            check_zip(path, package, bounds_of(mapping))
            yield from _book(path, package)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, ParseError, OSError) as error:
        raise InputError("reader.no_epub", name=path.name, reason=reason(error)) from None
    except DefusedXmlException as error:
        raise InputError("reader.xml_refused", name=path.name, reason=reason(error)) from None


def _book(path: Path, package: zipfile.ZipFile) -> Iterator[SourceRecord | Fault]:
    encryption = package.read(_ENCRYPTION) if _ENCRYPTION in package.namelist() else b""
    encrypted = encryption.count(b"EncryptedData>") // 2 or encryption.count(b"EncryptedData")
    if encrypted > sum(map(encryption.count, _FONTS)):
        raise InputError("reader.encrypted", name=path.name)
    rootfile = fromstring(package.read(_CONTAINER)).find(".//{*}rootfile")
    place = "" if rootfile is None else rootfile.get("full-path", "")
    root = fromstring(package.read(place))
    blocks: list[Block] = []
    for number, name in enumerate(_spine(root, posixpath.dirname(place)), start=1):
        chapter = message("reader.chapter", number=number)
        try:
            page = _parse(chapter, decode(package.read(name)))
            blocks += markup.blocks_of(page, _VOCABULARY)
        except (InputError, KeyError) as error:
            yield Fault(chapter, error.messages[0] if isinstance(error, InputError) else message("reader.missing"))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text", name=path.name)
    identifiers = map(str.lower, _meta(root, "identifier"))
    isbn = [identifier for identifier in identifiers if identifier.startswith(("isbn", "urn:isbn", "978"))]
    yield SourceRecord(
        key="",
        title=next(iter(_meta(root, "title")), "") or path.stem,
        blocks=tuple(blocks),
        edition=values.edition(next(iter(_meta(root, "date")), "")),
        language=values.language(next(iter(_meta(root, "language")), "")),
        identifiers=tuple(f"isbn:{identifier.rpartition(':')[2].strip()}" for identifier in isbn),
    )


def _spine(root: Any, folder: str) -> Iterator[str]:
    """The names of the chapters within the archive, in reading order."""
    items = {item.get("id", ""): item for item in root.iter() if name_of(item) == "item"}
    for reference in (element for element in root.iter() if name_of(element) == "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is not None and item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split():
            yield posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))


def _meta(root: Any, name: str) -> list[str]:
    return list(texts(root, f".//{{http://purl.org/dc/elements/1.1/}}{name}"))
