"""HTML pages (.html, .htm, .xhtml): headings, paragraphs, list items and tables as a browser shows them.

Rules: what a page wraps around its text (navigation, header and footer, forms, scripts) and what it hides is left out;
where it marks its main part, that is read alone. Nothing is fetched: no picture, style or frame. The title is the
page's own, else its first heading; language and date come from its attributes and meta elements. The encoding is found
as for text (``encoding.py``), the one that the page declares before any guess.

Not covered: text that scripts write; pictures but for their words; MHTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localmed.domain import Message, Parameter, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import markup, values
from localmed.ingest.readers.encoding import read_text
from localmed.ingest.readers.markup import Vocabulary, flat
from localmed.ingest.readers.text import CUT_SHORT

_DECLARED = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?([\w.:-]{2,30})|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]{2,30})", re.I
)
_SNIFFED = 4_096  # bytes in which a page declares its encoding; browsers look at 1,024
_XML = re.compile(r"^\s*<\?xml[^>]*\?>")  # lxml refuses text that declares an encoding
_DATES = ("article:modified_time", "article:published_time", "dcterms.modified", "dcterms.issued", "dc.date", "date",
          "last-modified", "citation_publication_date", "pubdate")  # fmt: skip
VOCABULARY = Vocabulary(
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
    """The page as one record."""
    with path.open("rb") as file:
        declared = _DECLARED.search(file.read(_SNIFFED))
    named = (declared[1] or declared[2]).decode("ascii") if declared else ""
    text = read_text(path, named)
    page = parsed(path.name, text.removesuffix("\ufffd"))
    body, notes = main_part(page)
    blocks = tuple(markup.blocks_of(body, VOCABULARY))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text_html", name=path.name)
    if text.endswith("\ufffd"):
        notes.append(CUT_SHORT)
    language = values.language(page.get("lang") or page.get("{http://www.w3.org/XML/1998/namespace}lang") or "")
    title = _title(page) or first_heading(blocks) or path.stem
    yield SourceRecord("", title, blocks, edition=_date(page), language=language, notes=tuple(notes))


def parsed(name: Parameter, text: str) -> Any:
    """The tree of a page; raise ``InputError`` where the parser would drop a part of it."""
    from lxml import etree, html

    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(_XML.sub("", text).encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError):
        raise InputError("reader.no_page", name=name) from None
    if any("depth" in str(error.message).lower() for error in parser.error_log):
        raise InputError("reader.html_deep", name=name)
    return page


def main_part(page: Any) -> tuple[Any, list[Message]]:
    """The element that holds the page's text, and what to note of the choice."""
    for path in (".//main", ".//*[@role='main']", ".//article"):
        candidates = page.findall(path)
        if len(candidates) == 1 and len(flat(candidates[0])) > 0:
            return candidates[0], [message("reader.main_part")]
    body = page.find("body")
    whole = page if body is None else body
    for wrapping in (*whole.findall("header"), *whole.findall("footer")):
        wrapping.clear(keep_tail=True)
    return whole, []


def first_heading(blocks: tuple[Block, ...]) -> str:
    """The text of the first heading."""
    return next((block.lines[0].text for block in blocks if block.kind == "heading"), "")


def _title(page: Any) -> str:
    element = page.find("head/title")
    return flat(element) if element is not None else ""


def _date(page: Any) -> str:
    """The date in the first meta element of ``_DATES`` that holds one."""
    dates: dict[str, str] = {}
    for meta in page.iter("meta"):
        name = str(meta.get("name") or meta.get("property") or meta.get("http-equiv") or "").lower()
        dates.setdefault(name, str(meta.get("content", "")))
    for name in _DATES:
        if re.match(r"\d{4}", date := values.edition(dates.get(name, ""))):
            return date
    return ""
