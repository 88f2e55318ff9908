"""Reads plain text: paragraphs between blank lines, and unmistakable headings.

Rules: the lines of a hard-wrapped paragraph stay lines of one block. A heading is a short line that is underlined with
``===`` (level 1) or ``---`` (level 2), or that follows a blank line, contains no sentence, and is in capitals (level 2)
or numbered (``2.1 Dosage``, ``第一章 总则``, ``一、适应证``, ``（二）用法``; the level is the depth). The title is the
first line if it is a heading or short and alone, else the file's name without its extension.

A textbook of MedQA (``read_book``) has a paragraph a line, as LINS segments them ("Local Textbooks database
construction"), and its file's name as title. Its headings are numbered parts, chapters, sections, units and appendices,
in English or Chinese.

Not covered: tables (they stay lines), lists (each item is a line of its paragraph), tables of contents; running heads,
indexes and captions of a textbook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers.encoding import read_text
from localmed.ingest.readers.values import one_line

HEADING_CHARACTERS = 80  # a longer line is a sentence; guidelines' headings run to ~70
CHINESE_HEADING_CHARACTERS = 30
_TITLE_CHARACTERS = 150

_UNDERLINE = re.compile(r"(={3,}|-{3,})\s*")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[A-Z\u3400-\u9fff]")
_CHINESE_LEVELS = (
    re.compile(r"第[一二三四五六七八九十百〇零\d]{1,4}[章篇编部]"),
    re.compile(r"第[一二三四五六七八九十百〇零\d]{1,4}节|[一二三四五六七八九十]{1,3}、"),
    re.compile(r"[（(][一二三四五六七八九十]{1,3}[）)]"),
)
_SENTENCE = re.compile(r"[。；！？，：;!?,:]|\.$|\. ")
_NUMBER = re.compile(r"^\d{1,2}(?:\.\d{1,2}){0,3}\.?\s+")
_CAPITALS = re.compile(r"(?:\d{1,2}\.?\s+)?[A-Z][A-Z0-9 ,&/()'’:–-]*[A-Z0-9)]")
_CAPITAL_LETTERS = 4  # "II" and "ECG" begin paragraphs too
_CHINESE = re.compile("[\u3400-\u9fff]")

BOOK_HEADING_CHARACTERS = 120  # a chapter's number and name; a longer line is text that begins with "Chapter 3"
_BOOK_HEADINGS = (
    re.compile(r"(?:PART|Part)\s+(?:\d{1,3}|[IVXLC]{1,7})\b.*|第[一二三四五六七八九十百\d]{1,4}[篇编部].*"),
    re.compile(r"(?:CHAPTER|Chapter|APPENDIX|Appendix)\s+(?:\d{1,3}|[A-Z])\b.*|第[一二三四五六七八九十百\d]{1,4}章.*"),
    re.compile(
        r"(?:SECTION|Section|UNIT|Unit)\s+(?:\d{1,3}(?:\.\d{1,3})?|[IVXLC]{1,7})\b.*|第[一二三四五六七八九十百\d]{1,4}节.*"
    ),
)
_BOOK_SENTENCE = re.compile(r"[.。!?！？;；]$|[.!?] [A-Z]|[。！？]")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """Yield the file as one record."""
    text, notes = whole_text(path)
    blocks = tuple(blocks_of(text))
    if not blocks:
        raise InputError("reader.no_text", name=path.name)
    yield SourceRecord("", _title(blocks) or path.stem, blocks, notes=notes)


def read_book(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - as above
    """Yield the textbook as one record."""
    text, notes = whole_text(path)
    lines = filter(None, map(one_line, text.split("\n")))
    blocks: list[Block] = []
    for line in lines:
        level = 0  # 1 for a part, 2 for a chapter, 3 for a section
        if len(line) <= BOOK_HEADING_CHARACTERS and not _BOOK_SENTENCE.search(line):
            level = next((depth for depth, pattern in enumerate(_BOOK_HEADINGS, 1) if pattern.fullmatch(line)), 0)
        blocks.append(Block.of("heading" if level else "paragraph", line, level))
    if not any(block.kind == "paragraph" for block in blocks):
        raise InputError("reader.no_text", name=path.name)
    yield SourceRecord("", path.stem, tuple(blocks), notes=notes)


def whole_text(path: Path, declared: str = "") -> tuple[str, tuple[Message, ...]]:
    """The text of a file, and a note if it ends within a character."""
    text = read_text(path, declared)
    cut = text.endswith("\ufffd")
    return text.removesuffix("\ufffd"), (message("reader.cut_short"),) if cut else ()


def first_heading(blocks: Sequence[Block]) -> str:
    """The text of the first heading, or ""."""
    return next((" ".join(line.text for line in block.lines) for block in blocks if block.kind == "heading"), "")


def blocks_of(text: str) -> Iterator[Block]:
    """The headings and paragraphs of clean ``text``."""
    for lines in paragraphs(text):
        start = 0
        for at, line in enumerate(lines):
            underlined = at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1])
            level = (1 if lines[at + 1][0] == "=" else 2) if underlined and _is_short(line) else 0
            if at == 0 and not level:
                level = _heading_level(line)
            if level:
                yield from _paragraph(lines[start:at])
                yield Block.of("heading", line, level)
                start = at + (2 if underlined else 1)
        yield from _paragraph(lines[start:])


def paragraphs(text: str) -> Iterator[list[str]]:
    """The runs of lines between blank lines, each line without the spaces around it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if stripped := line.strip():
            lines.append(stripped)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def split_at_headings(lines: Sequence[str], heading: re.Pattern[str], above: int = 0) -> Iterator[Block]:
    """Divide ``lines`` at headings; the number of signs that mark one, less ``above``, is its level."""
    start = 0
    for at, line in enumerate(lines):
        if marked := heading.fullmatch(line):
            yield from Block.paragraph(lines[start:at])
            yield Block.of("heading", marked[2].strip(), len(marked[1]) - above)
            start = at + 1
    yield from Block.paragraph(lines[start:])


def _heading_level(line: str) -> int:
    """The level of ``line`` as a heading that is not underlined, or 0."""
    letters = sum(map(str.isalpha, line))
    if _is_short(line) and letters >= _CAPITAL_LETTERS and _CAPITALS.fullmatch(line):
        return 2
    if not _is_short(line) or _SENTENCE.search(_NUMBER.sub("", line.rstrip(":："))):
        return 0
    for level, pattern in enumerate(_CHINESE_LEVELS, start=1):
        if pattern.match(line):
            return level
    if numbered := _NUMBERED.match(line):
        return numbered[1].count(".") + 1
    return 0


def has_chinese(text: str) -> bool:
    """Whether any character of ``text`` is Chinese."""
    return _CHINESE.search(text) is not None


def _is_short(line: str) -> bool:
    return len(line) <= (CHINESE_HEADING_CHARACTERS if has_chinese(line) else HEADING_CHARACTERS)


def _paragraph(lines: list[str]) -> Iterator[Block]:
    return Block.paragraph(line for line in lines if not _UNDERLINE.fullmatch(line))


def _title(blocks: tuple[Block, ...]) -> str:
    """The first line if it is a heading, or alone, short and no sentence."""
    first = blocks[0]
    text = first.lines[0].text
    alone = len(first.lines) == 1 and len(blocks) > 1 and len(text) <= _TITLE_CHARACTERS
    sentence = text.rstrip().endswith((".", "。", "！", "？", "!", ";", "；", ",", "，"))
    return text if first.kind == "heading" or (alone and not sentence) else ""
