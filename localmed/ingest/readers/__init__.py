"""Readers, one for each format or source; ``name_of`` selects the one for a file.

Rules: the manifest's reader applies, for archives to their members. Otherwise the extension decides; for XML, ``.txt``
and unknown extensions the first bytes do. An unknown XML root or extension is refused, because text of the wrong reader
would answer questions. Reader modules are imported at first use, so that only a PDF loads the PDF library.

Not covered: a gzip layer around anything but XML and tar.
"""

from __future__ import annotations

import gzip
import importlib
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import cast

from localmed.config import ReadBounds
from localmed.domain import message
from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import FieldMapping, Reader
from localmed.process.files import open_regular

# Raise a reader's version when its output changes: the pipeline then reads its files again.
VERSIONS = {"text": 1, "markdown": 2, "json": 2, "jsonl": 2, "pubmed": 4, "medquad": 2, "pdf": 10}
VERSIONS |= {"docx": 2, "pptx": 1, "xlsx": 1, "csv": 1, "html": 1, "epub": 1, "jats": 1, "medline": 1, "archive": 1}
VERSIONS |= {"xml": 1}  # only where a manifest names it and the fields
VERSIONS |= {"omim": 1, "oncokb": 1, "textbook": 1, "wikipedia": 1}  # only where a manifest names them

MODULES = {name: f"{__name__}.{name}" for name in VERSIONS} | {
    "json": f"{__name__}.json_records",
    "jsonl": f"{__name__}.json_records:read_lines",
    "wikipedia": f"{__name__}.json_records:read_wikipedia",
    "csv": f"{__name__}.csv_rows",
    "textbook": f"{__name__}.text:read_book",
    "medline": f"{__name__}.pubmed:read_medline",
    "pdf": f"{__name__}.pdf.reader",
    "epub": f"{__name__}.html:read_epub",
    "xml": f"{__name__}.xml_fields",
}
# Readers of terminologies, for collections of kind "graph": they yield terms, not records.
GRAPHS = ("obo", "umls", "crossrefs", "interactions")
VERSIONS |= dict.fromkeys(GRAPHS, 1)
MODULES |= {name: f"localmed.ingest.graphs:read_{name}" for name in GRAPHS}

_SUFFIXES = {
    "text": ".txt .text", "markdown": ".md .markdown", "json": ".json", "jsonl": ".jsonl .ndjson", "pdf": ".pdf",
    "docx": ".docx .docm", "pptx": ".pptx .pptm", "xlsx": ".xlsx .xlsm", "csv": ".csv .tsv",
    "html": ".html .htm .xhtml", "epub": ".epub", "medline": ".nbib",
}  # fmt: skip
_BY_SUFFIX = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_XML_SUFFIXES = (".xml", ".xml.gz", ".nxml")
SUFFIXES = (*_BY_SUFFIX, *_XML_SUFFIXES, *_ARCHIVES)

_BY_ROOT = {"PubmedArticleSet": "pubmed", "PubmedBookArticleSet": "pubmed", "pmc-articleset": "jats"}
_JATS_MARKS = re.compile(rb"<article-meta[ >]|JATS|NLM//DTD Journal")
_MEDLINE = re.compile(rb"\s*PMID- ?\d")
MEDQUAD_ROOTS = frozenset({"Document", "DiseaseFile", "doc"})
_MEDQUAD_MARKS = re.compile(rb"<(?:QAPairs|Focus|qaPairs|doctitle-focus)>")

_SNIFFED = 65_536  # bytes; a DTD with an internal subset before the root stays below this
_GZIP, _PDF = b"\x1f\x8b", b"%PDF-"
# Everything that may stand before an XML root element: declarations, comments, a DOCTYPE.
_PROLOGUE = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ELEMENT = re.compile(rb"<([A-Za-z_][\w.-]*)")


def name_of(path: Path, reader_name: str = "", content: Path | None = None) -> str:
    """The name of the reader for ``path``: ``reader_name`` if given, else by form.

    ``content`` is the file with its bytes, if it is another.
    """
    if path.name.lower().endswith(_ARCHIVES) and reader_name not in GRAPHS:
        return "archive"
    if reader_name:
        if reader_name not in MODULES:
            raise InputError("reader.unknown", name=reader_name, readers=tuple(MODULES))
        return reader_name
    name = _BY_SUFFIX.get(path.suffix.lower()) or _by_content(content or path)
    if name == "text":
        with suppress(OSError, InputError), open_regular(content or path) as file:  # the reader reports errors
            name = "medline" if _MEDLINE.match(file.read(64).removeprefix(b"\xef\xbb\xbf")) else name
    return name


def version_of(name: str, ocr: str = "") -> str:
    """The version of the reader ``name`` in a file's recipe; for archives, that of every reader.

    It includes the OCR engine for readers that use it, so that files are read again once OCR is installed.
    """
    version = repr(sorted(VERSIONS.items())) if name == "archive" else str(VERSIONS.get(name, 0))
    return f"{version} {ocr}" if ocr and name in ("pdf", "archive") else version


def load(name: str) -> Reader:
    """Import the reader ``name``."""
    module, _, function = MODULES[name].partition(":")
    return cast(Reader, getattr(importlib.import_module(module), function or "read"))


def bounds_of(mapping: FieldMapping) -> ReadBounds:
    """The bounds of a reader: the child passes them among the options; a direct call gets the defaults."""
    bounds = mapping.options.get("bounds")
    return bounds if isinstance(bounds, ReadBounds) else ReadBounds()


def _by_content(path: Path) -> str:
    head = _head(path)
    if head.startswith(_PDF):
        return "pdf"
    at = 0
    while skipped := _PROLOGUE.match(head, at):
        at = skipped.end()
    match = _ELEMENT.match(head, at)
    root = match[1].decode("ascii", "replace") if match else ""
    if root in _BY_ROOT:
        return _BY_ROOT[root]
    if root in MEDQUAD_ROOTS and _MEDQUAD_MARKS.search(head):  # other files have these roots too
        return "medquad"
    if root == "article" and _JATS_MARKS.search(head):
        return "jats"
    if root:
        raise InputError("reader.xml_root", name=path.name, root=root)
    if path.suffix.lower() in (".xml", ".gz", ".nxml"):
        raise InputError("reader.no_xml", name=path.name)
    kind = path.suffix or message("reader.no_extension")
    raise InputError("reader.no_reader", name=path.name, kind=kind, suffixes=SUFFIXES)


def _head(path: Path) -> bytes:
    """The first bytes of ``path``, unzipped if need be, without NULs, so that UTF-16 XML shows its root."""
    try:
        with open_regular(path) as whole:
            zipped = whole.read(len(_GZIP)) == _GZIP
            whole.seek(0)
            file = gzip.GzipFile(fileobj=whole) if zipped else whole
            return file.read(_SNIFFED).replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("reader.broken", name=path.name, reason=reason(error)) from None
