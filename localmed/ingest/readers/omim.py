"""Reads OMIM: entries of ``omim.txt`` (``*RECORD*``, ``*FIELD* TX``) or of the API's JSON (``textSectionList``).

Rules: one record an entry, keyed by its MIM number. Sections are split on line breaks, and a segment of fewer than 100
characters is dropped, as in LINS ("Local OMIM database construction"); notes count them. A section with short lines is
hard-wrapped: there only blank lines separate segments. The edition is the date of the newest edit. Moved or removed
entries, and those without any segment, are skipped; two last faults count them and name the first.

Not covered: allelic variants, clinical synopses, references, gene maps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import FILE, Block, Fault, FieldMapping, Line, SourceRecord, once
from localmed.ingest.readers import json_records, values
from localmed.ingest.readers.encoding import clean, decode
from localmed.ingest.readers.text import paragraphs

SHORTEST = 100  # characters of a segment; shorter ones are no independent statements (LINS)
PRINTED = 90  # characters of a hard-wrapped line at most (omim.txt wraps at 80)
NAMED = 10  # numbers of skipped entries that a fault names
_RECORD, _FIELD, _END = b"*RECORD*", b"*FIELD*", b"*THEEND*"
_NUMBER = re.compile(r"\d{6}")
_TITLE = re.compile(r"[*#%+^]?\s*(\d{6})\s+")
_MOVED = re.compile(r"(MOVED TO|REMOVED)\b")
_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_HEADING = re.compile(r"[A-Z][A-Z0-9 ,/()'-]{2,78}[A-Z)]")
_MARKUP = re.compile(r"</?[A-Za-z]+/?>")  # <Subhead> and the like, from the API
_LIVE = ("", "live")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of either form; ``sections`` are headings and texts."""

    number: str
    title: str
    sections: tuple[tuple[str, str], ...]
    edited: str
    moved: bool


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each entry with text, faults, and counts of skipped entries."""
    entries = _json_entries(path, mapping) if json_records.is_json(path) else _text_entries(path)
    skipped: dict[str, list[str]] = {"reader.omim_moved": [], "reader.omim_empty": []}
    yield from once(_records(entries, skipped), "reader.mim")
    for code, numbers in skipped.items():
        if numbers:
            more = ("…",) if len(numbers) > NAMED else ()
            yield Fault(FILE, message(code, count=len(numbers), numbers=(*numbers[:NAMED], *more)))


def _records(entries: Iterable[_Entry | Fault], skipped: dict[str, list[str]]) -> Iterator[SourceRecord | Fault]:
    for entry in entries:
        if isinstance(entry, Fault):
            yield entry
        elif record := None if entry.moved else _record(entry):
            yield record
        else:
            skipped["reader.omim_moved" if entry.moved else "reader.omim_empty"].append(entry.number)


def _record(entry: _Entry) -> SourceRecord | None:
    blocks: list[Block] = []
    dropped = 0
    for heading, text in entry.sections:
        wrapped = max((len(line) for line in text.split("\n")), default=0) <= PRINTED
        segments = list(paragraphs(text)) if wrapped else [[line] for lines in paragraphs(text) for line in lines]
        kept = [lines for lines in segments if len(" ".join(lines)) >= SHORTEST]
        dropped += len(segments) - len(kept)
        blocks += [Block.of("heading", heading, 1)] if kept and heading else []
        blocks += [Block("paragraph", tuple(map(Line, lines))) for lines in kept]
    if not blocks:
        return None
    return SourceRecord(
        key=entry.number,
        title=entry.title,
        blocks=tuple(blocks),
        edition=entry.edited,
        language="en",
        url=f"https://www.omim.org/entry/{entry.number}",
        identifiers=(f"mim:{entry.number}",),
        notes=(message("reader.omim_dropped", count=dropped, least=SHORTEST),) if dropped else (),
    )


# --- omim.txt --------------------------------------------------------------------------------------------------------


def _text_entries(path: Path) -> Iterator[_Entry | Fault]:
    number = 0
    lines: list[bytes] | None = None
    with path.open("rb") as file:
        for line in itertools.chain(file, [b""]):
            mark = line.strip()
            if lines is not None and (mark in (_RECORD, _END) or not line):
                if not line:  # no *THEEND*: the file may end in the middle of this entry
                    lines.append(_FIELD + b" CUT")
                number += 1
                yield _text_entry(lines, message("reader.record", number=number))
                lines = None
            if mark == _RECORD:
                lines = []
            elif lines is not None:
                lines.append(line)
    if not number:
        raise InputError("reader.omim_text", name=path.name)


def _text_entry(lines: list[bytes], where: Message) -> _Entry | Fault:
    fields: dict[str, str] = {}
    name, part = "", list[bytes]()
    for line in [*lines, _FIELD]:
        if line.startswith(_FIELD):
            try:
                fields[name] = decode(b"".join(part))
            except InputError as error:
                return Fault(where, error.messages[0])
            name, part = line[len(_FIELD) :].decode("ascii", "replace").strip(), []
        else:
            part.append(line)
    number = fields.get("NO", "").strip()
    if not _NUMBER.fullmatch(number):
        return Fault(where, message("reader.no_mim"))
    if "CUT" in fields and not (fields.get("ED") or fields.get("CD")):
        return Fault(message("reader.mim", key=number), message("reader.omim_cut"))
    title = _TITLE.sub("", values.one_line(fields.get("TI", "").split(";;")[0]), count=1)  # the preferred one
    edited = _newest(fields.get("ED", "")) or _newest(fields.get("CD", ""))
    return _Entry(number, title, tuple(_sections(fields.get("TX", ""))), edited, bool(_MOVED.match(title)))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings, single lines in capitals, each with the text up to the next."""
    heading, kept = "", list[str]()
    for lines in paragraphs(text):
        if len(lines) == 1 and _HEADING.fullmatch(lines[0]):
            yield heading, "\n\n".join(kept)
            heading, kept = lines[0].capitalize(), []
        else:
            kept.append("\n".join(lines))
    yield heading, "\n\n".join(kept)


def _newest(text: str) -> str:
    return max((values.iso_date(year, month, day) for month, day, year in _DATE.findall(text)), default="")


# --- the API's JSON --------------------------------------------------------------------------------------------------


def _json_entries(path: Path, mapping: FieldMapping) -> Iterator[_Entry | Fault]:
    any_entry = False
    for where, _, value in json_records.items(path, mapping):
        entries = [value] if isinstance(value, Fault) else list(_entries(value))
        any_entry = any_entry or bool(entries)
        yield from (entry if isinstance(entry, Fault) else _json_entry(entry, where) for entry in entries)
    if not any_entry:
        raise InputError("reader.omim_json", name=path.name)


def _entries(value: Any) -> Iterator[dict[str, Any]]:
    """The entries of a response: ``omim`` > ``entryList`` > ``entry``."""
    if isinstance(value, list):
        for item in value:
            yield from _entries(item)
    elif isinstance(value, dict) and "mimNumber" in value:
        yield value
    elif isinstance(value, dict):
        for name in ("omim", "entryList", "entry"):
            yield from _entries(value.get(name))


def _json_entry(entry: dict[str, Any], where: Message) -> _Entry | Fault:
    number, titles = str(entry["mimNumber"]), entry.get("titles")
    if not _NUMBER.fullmatch(number):
        return Fault(where, message("reader.no_mim"))
    title = titles.get("preferredTitle") if isinstance(titles, dict) else ""
    moved = str(entry.get("status", "")) not in _LIVE or "movedTo" in entry
    date = str(entry.get("dateUpdated")).split()  # Fri, 05 Aug 2016 03:00:00 EDT
    edited = values.iso_date(date[3], date[2], date[1]) if len(date) > 3 else ""
    return _Entry(number, _text(title), tuple(_json_sections(entry)), edited, moved)


def _json_sections(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    sections = entry.get("textSectionList")
    for item in sections if isinstance(sections, list) else ():
        section = item.get("textSection", item) if isinstance(item, dict) else None
        if isinstance(section, dict) and isinstance(section.get("textSectionContent"), str):
            content = _MARKUP.sub("", clean(section["textSectionContent"]))
            yield _text(section.get("textSectionTitle")), content


def _text(value: Any) -> str:
    return values.one_line(clean(value)) if isinstance(value, str) else ""
