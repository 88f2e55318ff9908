"""Reads Markdown (CommonMark and pipe tables): headings, paragraphs, list items and table rows.

Rules: each list item is a block; a table row repeats its headers (``tables.py``); a code block is a paragraph. Links,
images and HTML tags leave their words. Front matter, lines ``key: value`` between ``---`` at the top, gives title,
edition, language, status, replaced_by, url and identifiers; other keys are ignored. The title is the front matter's,
else a heading that comes first, else the file's name without its extension.

Not covered: YAML beyond ``key: value`` (nested keys and lists are ignored), footnotes, formulas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, Unusable
from localmed.ingest.readers import tables, values
from localmed.ingest.readers.tables import Cell
from localmed.ingest.readers.text import first_heading, paragraphs, whole_text

_NESTING = 100  # levels of lists and quotations; the parser drops deeper ones
_FRONT = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_LINE = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*))?")
_FRONT_OTHER = re.compile(r"\s*|\s*#.*|[ \t]+.*|- .*")  # blank lines, comments, nested values: allowed, not read
_TAGS = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.DOTALL)
_EDITION_KEYS = ("edition", "date", "year")
_LANGUAGE_KEYS = ("language", "lang")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """Yield the file as one record."""
    text, notes = whole_text(path)
    front, body = _split_front_matter(text)
    blocks = tuple(_blocks(body))
    if not blocks:
        raise InputError("reader.no_text", name=path.name)
    try:
        status = values.status(front.get("status", ""))
    except Unusable as error:
        raise InputError("reader.front_matter", name=path.name, problem=error.reason) from None
    yield SourceRecord(
        key="",
        title=front.get("title", "") or first_heading(blocks[:1]) or path.stem,
        blocks=blocks,
        edition=values.edition(next(filter(None, map(front.get, _EDITION_KEYS)), "")),
        language=values.language(next(filter(None, map(front.get, _LANGUAGE_KEYS)), "")),
        url=front.get("url", ""),
        identifiers=tuple(front.get("identifiers", "").replace(",", " ").split()),
        status=status,
        replaced_by=front.get("replaced_by", ""),
        notes=notes,
    )


def _split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The ``key: value`` lines at the top of ``text``, if it has front matter, and the body."""
    match = _FRONT.match(text)
    lines = match[1].split("\n") if match else []
    pairs = [_FRONT_LINE.fullmatch(line) for line in lines]
    strange = any(not pair and not _FRONT_OTHER.fullmatch(line) for pair, line in zip(pairs, lines, strict=True))
    if not match or strange or not any(pairs):
        return {}, text
    known = {pair[1].lower(): (pair[2] or "").strip().strip("\"'") for pair in pairs if pair}
    return known, text[match.end() :]


def _blocks(text: str) -> Iterator[Block]:
    tokens = MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table").parse(text)
    rows: list[list[Cell]] = []
    for at, token in enumerate(tokens):
        opened = tokens[at - 1].type if at else ""
        if token.type == "inline" and opened in ("th_open", "td_open"):
            text = values.one_line(" ".join(_lines(token)))
            rows[-1].append(Cell(text, len(rows), len(rows[-1]), header=opened == "th_open"))
        elif token.type == "inline":
            yield from _block(_lines(token), int(tokens[at - 1].tag[1]) if opened == "heading_open" else 0)
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            yield from tables.table_blocks([cell for row in rows for cell in row])
            rows = []
        elif token.type in ("fence", "code_block", "html_block"):
            for lines in paragraphs(_TAGS.sub(" ", token.content) if token.type == "html_block" else token.content):
                yield from _block(lines, 0)


def _block(lines: list[str], level: int) -> Iterator[Block]:
    kept = [line for line in map(values.one_line, lines) if line]
    if kept and level:
        yield Block.of("heading", " ".join(kept), level)
    else:
        yield from Block.paragraph(kept)


def _lines(inline: Token) -> list[str]:
    pieces = [""]
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            pieces.append("")
        elif child.type == "image":
            pieces[-1] += " ".join(_lines(child))
        elif child.type in ("text", "code_inline", "text_special"):
            pieces[-1] += child.content
    return pieces
