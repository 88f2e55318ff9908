"""Reads Word files (.docx, .docm): headings, paragraphs, list items, tables and footnotes in order.

Rules: a heading is a paragraph with an outline level, its own or its style's, or in Word's title style. Text boxes and
content controls are read in place, footnotes and endnotes after the paragraph or table that refers to them. Inserted
text of tracked changes is read, deleted text is not, and a note says so. Hidden text is left out and noted. Headers and
footers are left out. A table row that repeats on each page is a header; a table of one column is read as text. Raised
figures stay raised. The title is the document's property, else its first heading.

Not covered: automatic numbers ("1.", "a)"), pictures, formulas beyond their words, comments (noted).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import bounds_of, office, tables
from localmed.ingest.readers.tables import Cell
from localmed.ingest.readers.text import first_heading
from localmed.ingest.readers.values import superscript

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

DELETED = frozenset({W + "del", W + "moveFrom"})
UNREAD = DELETED | {_MC + "Fallback"}
_ELSEWHERE = frozenset({W + "txbxContent", W + "pPr", W + "instrText", W + "delText"})
_BLANKS = frozenset({W + "tab", W + "br", W + "cr", W + "ptab"})
_LITERAL = {W + "noBreakHyphen": "-", W + "softHyphen": ""}
_MACRO_TYPE = "application/vnd.ms-word.document.macroEnabled.main+xml"
_LEVELS = 9  # Word has nine heading levels and outline level 9 for body text
_NOTES = {W + "footnoteReference": "footnotes", W + "endnoteReference": "endnotes"}
_WRAPPERS = frozenset(W + name for name in ("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo"))
# The Symbol font's code -> Unicode, for signs of medical texts; any other becomes U+FFFD rather than a wrong sign.
_SYMBOLS = {
    0x61: "α", 0x62: "β", 0x63: "χ", 0x64: "δ", 0x65: "ε", 0x67: "γ", 0x6B: "κ", 0x6C: "λ", 0x6D: "μ", 0x70: "π",
    0x73: "σ", 0x77: "ω", 0x44: "Δ", 0x57: "Ω", 0x53: "Σ", 0xA3: "≤", 0xB3: "≥", 0xB0: "°", 0xB1: "±", 0xB4: "×",
    0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xA5: "∞", 0xB7: "•", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xD6: "√",
}  # fmt: skip


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield the file as one record."""
    notes = office.check(path, bounds_of(mapping))
    document = office.open_package(path, _open_document)
    body = _Body(document)
    blocks = office.open_package(path, lambda _: tuple(body.blocks(document.element.body)))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text_docx", name=path.name)
    title = office.line(document.core_properties.title)
    yield SourceRecord("", title or first_heading(blocks) or path.stem, blocks, notes=(*notes, *body.notes(document)))


def _open_document(path: str) -> Any:
    """Open a document with python-docx, also one with macros."""
    from docx.opc.part import PartFactory
    from docx.package import Package
    from docx.parts.document import DocumentPart

    PartFactory.part_type_for[_MACRO_TYPE] = DocumentPart
    return Package.open(path).main_document_part.document


class _Body:
    """Reads the body of one document; counts hidden text and tracked changes."""

    def __init__(self, document: Any) -> None:
        self._hidden = self._changes = 0
        styles = {style.element.get(W + "styleId", ""): style.element for style in document.styles}
        self._levels = {name: _style_level(name, styles) for name in styles}
        self._footnotes = {kind: _footnotes(document.part, kind) for kind in ("footnotes", "endnotes")}

    def blocks(self, parent: Any) -> Iterator[Block]:
        """The blocks among the children of ``parent``."""
        for element in parent:
            if element.tag == W + "p":
                if text := office.line("".join(self._texts(element))):
                    level = self._level(element)
                    yield Block.of("heading" if level else "paragraph", text, level)
                yield from self._boxes(element)
                yield from self._referenced_notes(element)
            elif element.tag == W + "tbl":
                cells = list(self._cells(element))
                if tables.width_of(cells) > 1:
                    yield from tables.table_blocks(cells)
                    yield from (block for paragraph in element.iter(W + "p") for block in self._boxes(paragraph))
                else:
                    yield from (block for cell in _children(element, "tc") for block in self.blocks(cell))
                yield from self._referenced_notes(element)
            elif element.tag in _WRAPPERS:
                yield from self.blocks(element)

    def notes(self, document: Any) -> Iterator[Message]:
        """Notes for the librarian."""
        if self._changes:
            yield message("reader.tracked_changes", count=self._changes)
        if self._hidden:
            yield message("reader.hidden_text", count=self._hidden)
        if any(relation.reltype.endswith("/comments") for relation in document.part.rels.values()):
            yield message("reader.comments")

    def _boxes(self, element: Any) -> Iterator[Block]:
        """The text boxes in ``element``; the older of two forms of one box is left out."""
        for box in element.iter(W + "txbxContent"):
            if not any(above.tag in UNREAD or above.tag == W + "txbxContent" for above in box.iterancestors()):
                yield from self.blocks(box)

    def _level(self, element: Any) -> int:
        properties = element.find(W + "pPr")
        if properties is None:
            return 0
        outline, style = properties.find(W + "outlineLvl"), properties.find(W + "pStyle")
        if outline is not None:
            return _outline(outline)
        return 0 if style is None else self._levels.get(style.get(W + "val", ""), 0)

    def _referenced_notes(self, element: Any) -> Iterator[Block]:
        for reference in element.iter(*_NOTES):
            note = self._footnotes[_NOTES[reference.tag]].pop(reference.get(W + "id", ""), None)
            if note is not None and (text := self._cell(note)):
                yield Block.of("paragraph", text)

    def _cells(self, table: Any) -> Iterator[Cell]:
        above: dict[int, Cell] = {}  # by column, a cell that may continue
        for number, row in enumerate(_children(table, "tr")):
            column = _number(row, "trPr/gridBefore", 0)
            header = row.find(f"{W}trPr/{W}tblHeader") is not None
            for cell in _children(row, "tc"):
                width, text = _number(cell, "tcPr/gridSpan", 1), self._cell(cell)
                merged, begun = cell.find(f"{W}tcPr/{W}vMerge"), above.get(column)
                if merged is not None and merged.get(W + "val") != "restart" and begun:
                    above[column] = replace(begun, height=begun.height + 1, text=f"{begun.text} {text}".strip())
                else:
                    if begun:
                        yield begun
                    above[column] = Cell(text, number, column, 1, width, header)
                column += width
        yield from above.values()

    def _cell(self, cell: Any) -> str:
        """The text of a cell or note, including its tables and boxes."""
        return office.line(" ".join("".join(self._texts(part)) for part in cell.iter(W + "p")))

    def _texts(self, parent: Any) -> Iterator[str]:
        """The words of ``parent`` without those of text boxes."""
        for element in parent:
            tag = element.tag
            if tag in DELETED or tag == W + "ins" or tag == W + "moveTo":
                self._changes += 1
            if tag in UNREAD or tag in _ELSEWHERE:
                continue
            if tag == W + "r":
                yield self._run(element)
            elif tag in (W + "t", _M + "t"):
                yield element.text or ""
            elif tag in _BLANKS:
                yield " "
            elif tag == W + "sym":
                yield _symbol(element.get(W + "char", ""))
            elif tag in _LITERAL:
                yield _LITERAL[tag]
            elif isinstance(tag, str):
                yield from self._texts(element)

    def _run(self, run: Any) -> str:
        properties = run.find(W + "rPr")
        text = "".join(self._texts(run))
        if properties is None:
            return text
        hidden = properties.find(W + "vanish")
        if hidden is not None and hidden.get(W + "val", "true") not in ("0", "false", "off"):
            self._hidden += bool(text.strip())
            return ""
        raised = properties.find(W + "vertAlign")
        return superscript(text) if raised is not None and raised.get(W + "val") == "superscript" else text


def _children(parent: Any, name: str) -> Iterator[Any]:
    """The children named ``name``, including those inside content controls."""
    for element in parent:
        if element.tag == W + name:
            yield element
        elif element.tag in _WRAPPERS or (name == "tc" and element.tag == W + "tr"):
            yield from _children(element, name)


def _number(element: Any, path: str, otherwise: int) -> int:
    child = element.find("/".join(W + part for part in path.split("/")))
    number = "" if child is None else child.get(W + "val", "")
    return tables.span(number, otherwise)


def _style_level(name: str, elements: dict[str, Any]) -> int:
    """The heading level of a style, its own or its base's."""
    seen: set[str] = set()
    while name in elements and name not in seen:
        seen.add(name)
        outline = elements[name].find(f"{W}pPr/{W}outlineLvl")
        if outline is not None:
            return _outline(outline)
        called = elements[name].find(W + "name")
        if called is not None and called.get(W + "val") == "Title":  # in every language of Word
            return 1
        base = elements[name].find(W + "basedOn")
        name = "" if base is None else base.get(W + "val", "")
    return 0


def _outline(element: Any) -> int:
    level = element.get(W + "val", "")
    return int(level) + 1 if level.isdecimal() and int(level) < _LEVELS else 0


def _footnotes(part: Any, kind: str) -> dict[str, Any]:
    for relation in part.rels.values():
        if relation.reltype.endswith(f"/{kind}") and not relation.is_external:
            root = office.tree(relation.target_part.blob)
            return {note.get(W + "id", ""): note for note in root if note.get(W + "type") is None}
    return {}


def _symbol(number: str) -> str:
    """The character ``number`` (hexadecimal) of a symbol font: the font's code in the private area, else Unicode."""
    try:
        code = int(number, 16)
    except ValueError:
        return ""
    if 0xF000 <= code <= 0xF0FF:
        return _SYMBOLS.get(code - 0xF000, "\ufffd")
    return chr(code) if code <= 0x10FFFF else "\ufffd"
