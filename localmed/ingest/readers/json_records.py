"""Reads JSON and JSON lines: one record an object, its fields named by the manifest.

Shapes: an array of objects; one object; an object of id -> object; JSON lines (``.jsonl``, ``.ndjson``, or any file
whose first line is an object with more after it). JSON lines are read one line at a time, arrays one object at a time.

Rules: an object with only a title is kept, like PubMed's. An unusable object, a repeated id or a broken line is a
``Fault``; a broken array ends the file. A record without an id is named by its place (``#7``).

Not covered: JSON (not JSON lines) whose text exceeds the child's memory; JSON lines in UTF-16 are read whole.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, Unusable, once
from localmed.ingest.readers import bounds_of, values
from localmed.ingest.readers.encoding import bounded_lines, clean, decode, read_text
from localmed.ingest.readers.text import paragraphs, split_at_headings

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BYTES_A_CHARACTER = 6  # the longest a character gets in JSON: \\u0041
_SPACE = re.compile(r"[ \t\r\n]*")

Item = tuple[Message, str, Any]  # its place, its id if the place gives one, and the value or a Fault


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each object of the file, and faults."""
    yield from make_records(items(path, mapping), mapping, titled=True)


def read_lines(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each line of a ``.jsonl`` file, even if the first one is broken."""
    yield from make_records(_line_items(path, mapping), mapping, titled=True)


def make_records(values: Iterator[Item], mapping: FieldMapping, titled: bool = False) -> Iterator[SourceRecord | Fault]:
    """Make records of ``values`` under ``mapping``; ``titled``: a title alone is enough."""
    if unknown := sorted(set(mapping.fields) - set(NAMES)):
        raise InputError("reader.unknown_field", field=unknown[0], fields=NAMES)
    seen: set[str] = set()
    for number, (where, name, value) in enumerate(values, start=1):
        if isinstance(value, Fault):
            yield value
        elif not isinstance(value, dict):
            yield Fault(where, message("reader.no_object"))
        else:
            try:
                record = _make_record(value, name or f"#{number}", mapping, titled)
            except (ValueError, RecursionError) as error:
                yield Fault(where, _why_unusable(error))
                continue
            yield Fault(where, message("reader.id_twice")) if record.key in seen else record
            seen.add(record.key)


def is_json(path: Path) -> bool:
    """Whether a file begins like JSON."""
    with path.open("rb") as file:
        return file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")


def items(path: Path, mapping: FieldMapping) -> Iterator[Item]:
    """Yield the values of a file of any shape."""
    most = _line_bytes(mapping)
    with path.open("rb") as file:  # JSON lines under any name: an object on the first line and more after it
        first = next(filter(None, map(bytes.strip, bounded_lines(file, most))), b"").removeprefix(codecs.BOM_UTF8)
        lines = first[:1] == b"{" and first[-1:] == b"}" and any(map(bytes.strip, bounded_lines(file, most)))
    if lines:
        yield from _line_items(path, mapping)
        return
    text = read_text(path)
    start = _blank(text, 0)
    if text.startswith("[", start):
        yield from _array_items(path, text, start)
        return
    try:
        value = _DECODER.decode(text)
    except ValueError as error:
        _broken(path, text, error)
    nested = isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values())
    if nested and not any(_field_blocks(value, mapping)):  # id -> record
        for number, (key, item) in enumerate(value.items(), start=1):
            yield message("reader.record", number=number), key, item
    else:
        yield message("reader.record", number=1), "", value


def _array_items(path: Path, text: str, start: int) -> Iterator[Item]:
    at = _blank(text, start + 1)
    number = 0
    while not text.startswith("]", at):
        number += 1
        try:
            value, at = _DECODER.raw_decode(text, at)
        except ValueError as error:
            _broken(path, text, error)
        yield message("reader.record", number=number), "", value
        at = _blank(text, at)
        if text.startswith(",", at):
            at = _blank(text, at + 1)
        elif not text.startswith("]", at):
            _broken(path, text, json.JSONDecodeError("Expecting ',' or ']'", text, at))


def _line_items(path: Path, mapping: FieldMapping) -> Iterator[Item]:
    """The values of JSON lines; a line that is broken, too long or in an unknown encoding is a fault."""
    most = _line_bytes(mapping)
    with path.open("rb") as file:
        marked = file.read(2) in _UTF16
        file.seek(0)
        lines = (line.encode() for line in read_text(path).split("\n")) if marked else bounded_lines(file, most)
        for number, line in enumerate(lines, start=1):
            if line.strip():
                where = message("reader.line", number=number)
                yield where, "", _line_value(line, where, most)


def _line_bytes(mapping: FieldMapping) -> int:
    return bounds_of(mapping).record_characters * _BYTES_A_CHARACTER


def _line_value(line: bytes, where: Message, most: int) -> Any:
    if len(line) > most:
        return Fault(where, message("reader.line_long", most=most))
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    try:
        return _DECODER.decode((text or decode(line)).strip())
    except InputError as error:
        return Fault(where, error.messages[0])
    except json.JSONDecodeError as error:
        return Fault(where, message("reader.json_broken", column=error.colno))
    except (ValueError, RecursionError) as error:
        return Fault(where, _why_unusable(error))


def _no_constant(name: str) -> NoReturn:
    raise Unusable(message("reader.no_json", word=name))


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _broken(path: Path, text: str, error: ValueError) -> NoReturn:
    if isinstance(error, json.JSONDecodeError):
        line = text.count("\n", 0, error.pos) + 1
        raise InputError("reader.json_file_broken", name=path.name, line=line) from None
    raise InputError("reader.json_unusable", name=path.name, problem=_why_unusable(error)) from None


def _why_unusable(error: Exception) -> Message:
    """The reason, without any content of the file: only our own messages are passed on."""
    if isinstance(error, Unusable):
        return error.reason
    return message("reader.deep" if isinstance(error, RecursionError) else "reader.number_long")


def _blank(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


# --- from a JSON object to a record -----------------------------------------------------------------------------------

# ``FieldMapping.fields`` maps our names (``NAMES``) to the source's: a name, a dotted path into nested objects and
# through lists, or a list of these, joined as paragraphs. Unmapped fields are searched under the usual names
# (``vocabulary.toml``). ``sections`` is a list of objects with a heading and a text, or an object of heading -> text;
# ``headings`` is a list with the headings of the text's items. In a text, blank lines end paragraphs and a line that
# begins with ``# `` to ``###### `` is a heading. Option ``id_scheme = "pmid"`` makes the id an identifier.
#
# Not covered: choosing between items of a list; truth values and objects are never text.

NAMES = tuple(values.vocabulary()["fields"])
_BODY = ("text", "sections")  # mapping one of the two excludes the other
_SECTION_HEADINGS, _SECTION_TEXTS = ("heading", "title", "name", "label"), ("text", "content", "body", "paragraphs")

_FIELD_HEADING = re.compile(r"(#{1,6}) (.+)")
_PLAIN = ("id", "title", "edition", "language", "url", "status", "replaced_by")
_LISTS = ("identifiers", "publication_types", "mesh")


def _make_record(value: dict[str, Any], name: str, mapping: FieldMapping, titled: bool) -> SourceRecord:
    """Make a record of ``value``, named ``name`` if it has no id; raise ``Unusable`` without text or for its status."""
    blocks = tuple(_field_blocks(value, mapping))
    plain = {ours: values.one_line(" ".join(_texts(_field(value, ours, mapping)))) for ours in _PLAIN}
    lists = {ours: tuple(map(values.one_line, _texts(_field(value, ours, mapping)))) for ours in _LISTS}
    bare = not any(block.kind != "heading" for block in blocks)
    if bare and not (titled and plain["title"]):
        raise Unusable(message("reader.has_no_text"))
    scheme = mapping.options.get("id_scheme", "")
    known = plain["id"] or ("" if name.startswith("#") else name)  # a place in the file is no identifier
    return SourceRecord(
        key=known or name,
        title=plain["title"],
        blocks=(Block.of("paragraph", plain["title"]),) if bare else blocks,
        edition=values.edition(plain["edition"]),
        language=values.language(plain["language"]),
        url=plain["url"],
        identifiers=(*((f"{scheme}:{known}",) if scheme and known else ()), *lists["identifiers"]),
        publication_types=lists["publication_types"],
        mesh=lists["mesh"],
        status=values.status(plain["status"]),
        replaced_by=plain["replaced_by"],
        notes=(message("reader.no_abstract"),) if bare else (),
    )


def _field_blocks(value: dict[str, Any], mapping: FieldMapping) -> Iterator[Block]:
    text = _field(value, "text", mapping)
    if isinstance(text, tuple):  # blocks, from XML
        yield from text
        return
    headings = tuple(_texts(_field(value, "headings", mapping)))
    texts = tuple(_texts(text))
    for heading, text in zip_longest(headings[: len(texts)], texts, fillvalue=""):
        yield from _section(heading, text)
    sections = _field(value, "sections", mapping)
    pairs = sections.items() if isinstance(sections, dict) else map(_pair, _flat(sections))
    for heading, content in pairs:
        for number, text in enumerate(_texts(content)):
            yield from _section("" if number else heading, text)


def _pair(section: Any) -> tuple[str, Any]:
    if not isinstance(section, dict):
        return "", section
    heading = next((section[name] for name in _SECTION_HEADINGS if isinstance(section.get(name), str)), "")
    return heading, next((section[name] for name in _SECTION_TEXTS if section.get(name)), None)


def _section(heading: str, text: str) -> Iterator[Block]:
    if title := values.one_line(clean(heading)):
        yield Block.of("heading", title, 1)
    for lines in paragraphs(text):
        yield from split_at_headings(lines, _FIELD_HEADING)


def _field(value: dict[str, Any], name: str, mapping: FieldMapping) -> Any:
    mapped = mapping.fields.get(name)
    if isinstance(mapped, str):
        return _look(value, mapped)
    if mapped is not None:
        return [_look(value, path) for path in mapped]
    if name in _BODY and any(body in mapping.fields for body in _BODY):
        return None
    return next(
        (value[usual] for usual in values.vocabulary()["fields"][name] if value.get(usual) not in (None, "", [])), None
    )


def _look(value: Any, path: str) -> Any:
    """The value at a dotted ``path``; a list on the way gives the list of its items' values."""
    if isinstance(value, list):
        return [_look(item, path) for item in value]
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return _look(value.get(first), rest) if rest else None


def _flat(value: Any) -> Iterator[Any]:
    """The items of nested lists, or the value itself."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield value


def _texts(value: Any) -> Iterator[str]:
    for item in _flat(value):
        if isinstance(item, str) or (isinstance(item, int | float) and not isinstance(item, bool)):
            text = clean(str(item))
            if text.strip():
                yield text


# --- Wikipedia --------------------------------------------------------------------------------------------------------

# One article a line, ``{"id", "url", "title", "text"}``, as wikiextractor writes with ``--json`` (files named
# ``wiki_00``) and as in dumps for language models. Paragraphs end at blank lines, or at every line if there are none. A
# line ``== Name ==`` is a heading of level 1; each further sign adds a level. The language comes from the article's
# address, the edition (the date of the dump) from the option ``edition``. An article without text (a redirect) is a
# fault, and so is a repeated id.
# Not covered: wiki markup beyond headings; the ``<doc>`` form that wikiextractor writes without ``--json``.

_WIKI_HEADING = re.compile(r"(={2,6})\s*([^=].*?)\s*\1")
_LANGUAGE = re.compile(r"https?://([a-z]{2,3})\.(?:m\.)?wikipedia\.org/")


def read_wikipedia(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each article, and faults."""
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if head.startswith(b"<doc"):
        raise InputError("reader.wikipedia", name=path.name)
    articles = items if head.startswith(b"[") else _line_items
    edition = values.edition(str(mapping.options.get("edition", "")))
    yield from once(_make_article(value, where, edition) for where, _, value in articles(path, mapping))


def _make_article(value: Any, where: Message, edition: str) -> SourceRecord | Fault:
    if isinstance(value, Fault):
        return value
    if not isinstance(value, dict):
        return Fault(where, message("reader.no_object"))
    plain = [value.get(name) for name in ("id", "title", "url")]
    key, title, url = (
        values.one_line(clean(str(item))) if isinstance(item, str | int) and not isinstance(item, bool) else ""
        for item in plain
    )
    text = value.get("text")
    runs = list(paragraphs(clean(text))) if isinstance(text, str) else []
    if len(runs) == 1:
        runs = [[line] for line in runs[0]]
    if runs and runs[0] == [title]:  # older versions of wikiextractor repeat the title
        runs = runs[1:]
    blocks = tuple(block for lines in runs for block in split_at_headings(lines, _WIKI_HEADING, 1))
    if not key or not title:
        return Fault(where, message("reader.has_no", field="title" if key else "id"))
    if not any(block.kind == "paragraph" for block in blocks):
        return Fault(where, message("reader.has_no_text"))
    match = _LANGUAGE.match(url)
    language = values.language(match[1]) if match else ""
    scheme = ":".join(filter(None, ("wikipedia", language)))
    return SourceRecord(key, title, blocks, edition, language, url, identifiers=(f"{scheme}:{key}",))
