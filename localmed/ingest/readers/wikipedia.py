"""Wikipedia-style JSON lines: an article a line, ``{"id", "url", "title", "text"}``, as wikiextractor writes with
``--json`` (files called ``wiki_00``) and as the dumps for language models hold it.

Rules: one record an article, keyed by its id. Paragraphs end at blank lines; where a text has none, at every line. A
line ``== Name ==`` is a heading, of level 1 for two signs and one more for each further one. The language is that of
the article's address; the edition is the option ``edition`` of the manifest, the date of the dump, since an article
does not tell. An article without text (a redirect) is a fault, as is an id that comes twice.

Not covered: wiki markup beyond headings; the ``<doc>`` form that wikiextractor writes without ``--json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, once
from localmed.ingest.readers import json_records, values
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.text import paragraphs

_HEADING = re.compile(r"(={2,6})\s*([^=].*?)\s*\1")
_LANGUAGE = re.compile(r"https?://([a-z]{2,3})\.(?:m\.)?wikipedia\.org/")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each article; faults for lines that are none."""
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if head.startswith(b"<doc"):
        raise InputError("reader.wikipedia", name=path.name)
    items = json_records.items if head.startswith(b"[") else json_records.line_items
    edition = values.edition(str(mapping.options.get("edition", "")))
    yield from once(_record(value, where, edition) for where, _, value in items(path, mapping))


def _record(value: Any, where: Message, edition: str) -> SourceRecord | Fault:
    if isinstance(value, Fault):
        return value
    if not isinstance(value, dict):
        return Fault(where, message("reader.no_object"))
    key, title, url = (_plain(value.get(name)) for name in ("id", "title", "url"))
    text = value.get("text")
    blocks = tuple(_blocks(clean(text), title)) if isinstance(text, str) else ()
    if not key or not title:
        return Fault(where, message("reader.has_no", field="title" if key else "id"))
    if not any(block.kind == "paragraph" for block in blocks):
        return Fault(where, message("reader.has_no_text"))
    match = _LANGUAGE.match(url)
    language = values.language(match[1]) if match else ""
    scheme = ":".join(filter(None, ("wikipedia", language)))
    return SourceRecord(key, title, blocks, edition, language, url, identifiers=(f"{scheme}:{key}",))


def _blocks(text: str, title: str) -> Iterator[Block]:
    runs = list(paragraphs(text))
    if len(runs) == 1:
        runs = [[line] for line in runs[0]]
    if runs and runs[0] == [title]:  # older versions of wikiextractor write the title once more
        runs = runs[1:]
    for lines in runs:
        yield from _section(lines)


def _section(lines: list[str]) -> Iterator[Block]:
    kept: list[str] = []
    for line in lines:
        if marked := _HEADING.fullmatch(line):
            yield from Block.paragraph(kept)
            yield Block.of("heading", marked[2], len(marked[1]) - 1)
            kept = []
        else:
            kept.append(line)
    yield from Block.paragraph(kept)


def _plain(value: Any) -> str:
    """A text or a whole number on one line."""
    usable = isinstance(value, str | int) and not isinstance(value, bool)
    return values.one_line(clean(str(value))) if usable else ""
