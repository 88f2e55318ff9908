"""Plain-text textbooks, as MedQA brings them: a book a file, a paragraph a line.

Rules: the file is one record, called by its name; every line is a paragraph, as LINS segments them ("Local Textbooks
database construction"); consecutive ones are cut into passages like any text. A line is a heading only where it is
clearly one: a part, chapter, section, unit or appendix with its number, in English or Chinese.

Not covered: tables and figure captions (they are lines), running heads, indexes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from localmed.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers.encoding import read_text
from localmed.ingest.readers.text import CUT_SHORT
from localmed.ingest.readers.values import one_line

HEADING_CHARACTERS = 120  # a chapter's number and name; a longer line is text that begins with "Chapter 3"
_HEADINGS = (
    re.compile(r"(?:PART|Part)\s+(?:\d{1,3}|[IVXLC]{1,7})\b.*|第[一二三四五六七八九十百\d]{1,4}[篇编部].*"),
    re.compile(r"(?:CHAPTER|Chapter|APPENDIX|Appendix)\s+(?:\d{1,3}|[A-Z])\b.*|第[一二三四五六七八九十百\d]{1,4}章.*"),
    re.compile(
        r"(?:SECTION|Section|UNIT|Unit)\s+(?:\d{1,3}(?:\.\d{1,3})?|[IVXLC]{1,7})\b.*|第[一二三四五六七八九十百\d]{1,4}节.*"
    ),
)
_SENTENCE = re.compile(r"[.。!?！？;；]$|[.!?] [A-Z]|[。！？]")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """The book as one record."""
    text = read_text(path)
    notes = (CUT_SHORT,) if text.endswith("\ufffd") else ()
    lines = (one_line(line) for line in text.removesuffix("\ufffd").split("\n"))
    blocks = tuple(map(_block, filter(None, lines)))
    if not any(block.kind == "paragraph" for block in blocks):
        raise InputError("reader.no_text", name=path.name)
    yield SourceRecord("", path.stem, blocks, notes=notes)


def _block(line: str) -> Block:
    level = _level(line)
    return Block.of("heading", line, level) if level else Block.of("paragraph", line)


def _level(line: str) -> int:
    """1 for a part, 2 for a chapter, 3 for a section; 0 for text."""
    if len(line) > HEADING_CHARACTERS or _SENTENCE.search(line):
        return 0
    return next((level for level, pattern in enumerate(_HEADINGS, start=1) if pattern.fullmatch(line)), 0)
