"""Reads XML safely, and converts a tree of elements (HTML, EPUB, JATS) to blocks.

Rules: a ``Vocabulary`` names the elements that are left out, that end a paragraph, and that are headings; the words of
all others stay in place. Raised figures stay raised (``10<sup>9</sup>`` is 10⁹, never 109). A table becomes rows under
their headers (``tables.py``); a layout table (nested, or of one column) is read as text. Elements of ElementTree and of
lxml both work.

XML: a document type declaration is allowed (PubMed files have one) but never fetched; a declaration of entities is
refused. ``elements`` yields one element at a time and empties it and its root, so memory stays constant. Errors contain
no text of the document.

Not covered: formulas beyond their words and figures; tables of the OASIS model, whose cells are read as text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import Block, Line
from localmed.ingest.readers import tables
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.values import one_line, superscript

MOST_LEVELS = 6  # of headings, as HTML has


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The roles of a format's elements, by their names without namespace and in lower case."""

    skipped: frozenset[str]  # with all their content
    blocks: frozenset[str]  # a paragraph ends before and after them
    headings: Mapping[str, int]  # 0: the level is the depth of sections
    sections: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset({"br", "break"})
    labels: frozenset[str] = frozenset()  # numbers and marks that precede the next words


def elements(path: Path, tags: frozenset[str], local: bool = False) -> Iterator[Element]:
    """Yield every complete element of ``path`` named one of ``tags``; raise ``InputError`` where the XML breaks.

    ``local``: ``tags`` are names without namespaces. The file may be gzipped.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else path.open("rb") as file:
            events = iterparse(file, events=("start", "end"), forbid_entities=True, forbid_external=True)
            _, root = next(events)
            for event, element in events:
                name = element.tag.rpartition("}")[2] if local else element.tag
                if event == "end" and name in tags:
                    yield element
                    element.clear()
                    root.clear()
    except ParseError as error:
        line, column = error.position
        raise InputError("reader.xml_broken", name=path.name, line=line, column=column) from None
    except DefusedXmlException as error:
        raise InputError("reader.xml_refused", name=path.name, reason=reason(error)) from None
    except (OSError, EOFError, zlib.error, LookupError, ValueError) as error:  # LookupError, ValueError: its encoding
        raise InputError("reader.broken", name=path.name, reason=reason(error)) from None


def name_of(element: Any) -> str:
    """The name of an element in lower case without its namespace; "" for a comment or an instruction."""
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def flat(element: Any) -> str:
    """All words of ``element`` on one line, raised figures raised; "" for no element."""
    return "" if element is None else one_line(clean("".join(_words(element))))


def texts(element: Element, path: str) -> tuple[str, ...]:
    """The texts at ``path``, without empty ones."""
    return tuple(filter(None, map(flat, element.iterfind(path))))


def blocks_of(element: Any, vocabulary: Vocabulary, depth: int = 0) -> list[Block]:
    """The blocks of ``element``, which is inside ``depth`` sections."""
    flow = _Flow(vocabulary)
    flow.walk(element, depth)
    flow.close()
    return flow.blocks


def _words(element: Any) -> Iterator[str]:
    name = name_of(element)
    if name == "sup":
        yield superscript("".join(element.itertext()))
        return
    if name:
        yield element.text or ""
    for child in element:
        around = " " if name_of(child) in _APART else ""
        yield around
        if name_of(child) not in _UNSPOKEN:
            yield from _words(child)
        yield around + (child.tail or "")


_APART = frozenset({"p", "div", "li", "br", "break", "td", "th", "tr", "title", "label", "list-item", "dt", "dd", "ul"})
_UNSPOKEN = frozenset({"script", "style", "template", "tex-math"})


class _Flow:
    """The blocks so far, and the words of the open paragraph."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.blocks: list[Block] = []
        self._vocabulary = vocabulary
        self._words: list[str] = []
        self._label = ""

    def walk(self, element: Any, depth: int) -> None:
        """Add ``element`` without its tail."""
        words, name = self._vocabulary, name_of(element)
        if not name or name in words.skipped or _is_hidden(element):
            return
        if name in words.headings:
            self.end()
            if text := flat(element):
                level = min(words.headings[name] or max(depth, 1), MOST_LEVELS)
                self.blocks.append(Block.of("heading", self._labelled(text), level))
        elif name in words.labels:
            self.end()
            self._label = one_line(f"{self._label} {flat(element)}")
        elif name in words.breaks:
            self._words.append("\n")
        elif name == "sup":
            self._words.append(superscript("".join(element.itertext())))
        elif name == "table" and (cells := cells_of(element)):
            self.close()
            for child in element:
                if name_of(child) == "caption" and (text := flat(child)):
                    self.blocks.append(Block.of("paragraph", text))
            self.blocks += tables.table_blocks(cells)
        else:
            apart = name in words.blocks
            if apart:
                self.end()
            self._add_text(element.text)
            for child in element:
                self.walk(child, depth + (name in words.sections))
                self._add_text(child.tail)
            if apart:
                self.end()

    def end(self) -> None:
        """End the open paragraph."""
        lines = [one_line(line) for line in clean("".join(self._words)).split("\n")]
        self._words.clear()
        if kept := [line for line in lines if line]:
            kept[0] = self._labelled(kept[0])
            self.blocks.append(Block("paragraph", tuple(map(Line, kept))))

    def close(self) -> None:
        """End the paragraph; a label without words becomes a paragraph."""
        self.end()
        if self._label:
            self.blocks.append(Block.of("paragraph", self._labelled("")))

    def _labelled(self, text: str) -> str:
        label, self._label = self._label, ""
        return one_line(f"{label} {text}")

    def _add_text(self, text: str | None) -> None:
        """Add ``text``; its line ends are blanks, only ``breaks`` end a line."""
        if text:
            self._words.append(text.replace("\n", " ").replace("\r", " "))


def cells_of(table: Any) -> list[tables.Cell]:
    """The cells of a table of HTML's model; none for a layout table."""
    if any(name_of(element) == "table" for element in table.iter() if element is not table):
        return []
    cells: list[tables.Cell] = []
    taken: set[tuple[int, int]] = set()
    rows = [element for element in table.iter() if name_of(element) == "tr" and not _is_hidden(element)]
    heads = {id(row) for head in table if name_of(head) == "thead" for row in head.iter() if name_of(row) == "tr"}
    for number, row in enumerate(rows):
        column = 0
        for cell in row:
            if name_of(cell) not in ("td", "th"):
                continue
            while (number, column) in taken:
                column += 1
            height = min(_span(cell, "rowspan") or len(rows), len(rows) - number)
            width = _span(cell, "colspan") or 1
            header = name_of(cell) == "th" or id(row) in heads
            cells.append(tables.Cell(flat(cell), number, column, height, width, header))
            taken |= {(number + down, column + right) for down in range(1, height) for right in range(width)}
            column += width
    return cells if tables.width_of(cells) > 1 else []


def _span(cell: Any, name: str) -> int:
    return tables.span(str(cell.get(name, "1")).strip(), 1)


def _is_hidden(element: Any) -> bool:
    style = element.get("style", "").replace(" ", "").lower()
    return element.get("hidden") is not None or "display:none" in style or "visibility:hidden" in style
