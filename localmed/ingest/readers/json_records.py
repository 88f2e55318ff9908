"""JSON and JSON lines: one record an object, its fields named by the manifest.

Shapes: an array of objects; one object; an object of id -> object; JSON lines (``.jsonl``, ``.ndjson``, or any file
whose first line is an object with more after it), which are read a line at a time and never as a whole. An array is
taken apart an object at a time, so only its text is in memory.

Rules: which field means what is told below. An object with a title alone is kept, as PubMed's are. An object that
makes no record or whose id came before is a ``Fault``, as is a broken line; a broken array ends the file there. A
record without an id is called by its place (``#7``).

Not covered: JSON (not JSON lines) beyond what fits in the child's memory as text; JSON lines in UTF-16 are read whole.
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
from localmed.ingest.readers.text import headed, paragraphs

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BYTES_A_CHARACTER = 6  # the longest a character gets in JSON: \\u0041
_SPACE = re.compile(r"[ \t\r\n]*")

Item = tuple[Message, str, Any]  # where it stands, its id where its place gives one, and the value or a Fault


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each object of the file; faults for what is none."""
    yield from records(items(path, mapping), mapping, titled=True)


def read_lines(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each line of JSON lines by name (``.jsonl``), even where the first one is broken."""
    yield from records(line_items(path, mapping), mapping, titled=True)


def records(values: Iterator[Item], mapping: FieldMapping, titled: bool = False) -> Iterator[SourceRecord | Fault]:
    """The records that ``values`` are under ``mapping``; a fault for each that is none (``titled``: ``record_of``)."""
    if unknown := sorted(set(mapping.fields) - set(NAMES)):
        raise InputError("reader.unknown_field", field=unknown[0], fields=NAMES)
    seen: set[str] = set()
    for number, (where, name, value) in enumerate(values, start=1):
        item = value if isinstance(value, Fault) else _checked(value, where, name or f"#{number}", mapping, titled)
        if isinstance(item, SourceRecord) and item.key in seen:
            item = Fault(where, message("reader.id_twice"))
        elif isinstance(item, SourceRecord):
            seen.add(item.key)
        yield item


def is_json(path: Path) -> bool:
    """Whether a file begins as JSON does."""
    with path.open("rb") as file:
        return file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")


def items(path: Path, mapping: FieldMapping) -> Iterator[Item]:
    """The values of the file in any of its shapes, each with where it stands."""
    if _has_lines(path, _most(mapping)):
        yield from line_items(path, mapping)
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
    if isinstance(value, dict) and not is_record(value, mapping):
        yield from (
            (message("reader.record", number=number), key, item)
            for number, (key, item) in enumerate(value.items(), start=1)
        )
    else:
        yield message("reader.record", number=1), "", value


def _has_lines(path: Path, most: int) -> bool:
    """Whether a file looks like JSON lines whatever it is called: an object on its first line and more after it."""
    with path.open("rb") as file:
        first = next(filter(None, map(bytes.strip, bounded_lines(file, most))), b"").removeprefix(codecs.BOM_UTF8)
        return first[:1] == b"{" and first[-1:] == b"}" and any(map(bytes.strip, bounded_lines(file, most)))


def _array_items(path: Path, text: str, start: int) -> Iterator[Item]:
    """The elements of the array that begins at ``start``."""
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


def line_items(path: Path, mapping: FieldMapping) -> Iterator[Item]:
    """The values of JSON lines; a line that is broken, too long or of no known encoding is a fault."""
    most = _most(mapping)
    with path.open("rb") as file:
        marked = file.read(2) in _UTF16
        file.seek(0)
        lines = (line.encode() for line in read_text(path).split("\n")) if marked else bounded_lines(file, most)
        for number, line in enumerate(lines, start=1):
            if line.strip():
                where = message("reader.line", number=number)
                yield where, "", _line_value(line, where, most)


def _most(mapping: FieldMapping) -> int:
    return bounds_of(mapping).record_characters * _BYTES_A_CHARACTER


def _line_value(line: bytes, where: Message, most: int) -> Any:
    if len(line) > most:
        return Fault(where, message("reader.line_long", most=most))
    try:
        return _DECODER.decode(_line_text(line).strip())
    except InputError as error:
        return Fault(where, error.messages[0])
    except json.JSONDecodeError as error:
        return Fault(where, message("reader.json_broken", column=error.colno))
    except (ValueError, RecursionError) as error:
        return Fault(where, why_unusable(error))


def _line_text(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return decode(line)


def _no_constant(name: str) -> NoReturn:
    raise Unusable(message("reader.no_json", word=name))


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _broken(path: Path, text: str, error: ValueError) -> NoReturn:
    if isinstance(error, json.JSONDecodeError):
        line = text.count("\n", 0, error.pos) + 1
        raise InputError("reader.json_file_broken", name=path.name, line=line) from None
    raise InputError("reader.json_unusable", name=path.name, problem=why_unusable(error)) from None


def why_unusable(error: Exception) -> Message:
    """Why a value cannot be used, without any of it; only our own messages are passed on."""
    if isinstance(error, Unusable):
        return error.reason
    return message("reader.deep" if isinstance(error, RecursionError) else "reader.number_long")


def _blank(text: str, at: int) -> int:
    """Where the white space that begins at ``at`` ends."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _checked(value: Any, where: Message, name: str, mapping: FieldMapping, titled: bool) -> SourceRecord | Fault:
    if not isinstance(value, dict):
        return Fault(where, message("reader.no_object"))
    try:
        return record_of(value, name, mapping, titled)
    except (ValueError, RecursionError) as error:
        return Fault(where, why_unusable(error))


# --- a JSON object made a record: which of a source's fields means what -----------------------------------------------

# ``FieldMapping.fields`` maps our names (``NAMES``) to the source's: a name, a dotted path into nested objects
# and through lists, or a list of these, joined as paragraphs. What is not mapped is looked for under the obvious names
# (``vocabulary.toml``). ``sections`` is a list of objects with a heading and a text, or an object of heading -> text;
# ``headings`` is a list that names the items of the text's list one by one. In a text, blank lines end paragraphs and a
# line that begins with ``# `` to ``###### `` is a heading. Option ``id_scheme = "pmid"`` makes the id an identifier.
# An object without text, or with a status nobody knows, is a ``ValueError`` in our words.
#
# Not covered: choosing between items of a list; truth values and objects are never text.

NAMES = tuple(values.vocabulary()["fields"])
_BODY = ("text", "sections")  # a mapping that names one of the two means that one alone
_SECTION_HEADINGS, _SECTION_TEXTS = ("heading", "title", "name", "label"), ("text", "content", "body", "paragraphs")

_FIELD_HEADING = re.compile(r"(#{1,6}) (.+)")
_PLAIN = ("id", "title", "edition", "language", "url", "status", "replaced_by")
_LISTS = ("identifiers", "publication_types", "mesh")


def record_of(value: dict[str, Any], name: str, mapping: FieldMapping, titled: bool = False) -> SourceRecord:
    """``value`` as a record, called ``name`` if it has no id; raise ``Unusable`` where it cannot be one.

    ``titled``: one that has a title alone is that title, with a note.
    """
    blocks = tuple(_field_blocks(value, mapping))
    plain = {ours: values.one_line(" ".join(_texts(_field(value, ours, mapping)))) for ours in _PLAIN}
    lists = {ours: tuple(map(values.one_line, _texts(_field(value, ours, mapping)))) for ours in _LISTS}
    untold = not any(block.kind != "heading" for block in blocks)
    if untold and not (titled and plain["title"]):
        raise Unusable(message("reader.has_no_text"))
    scheme = mapping.options.get("id_scheme", "")
    known = plain["id"] or ("" if name.startswith("#") else name)  # a place in the file is nobody's identifier
    return SourceRecord(
        key=known or name,
        title=plain["title"],
        blocks=(Block.of("paragraph", plain["title"]),) if untold else blocks,
        edition=values.edition(plain["edition"]),
        language=values.language(plain["language"]),
        url=plain["url"],
        identifiers=(*((f"{scheme}:{known}",) if scheme and known else ()), *lists["identifiers"]),
        publication_types=lists["publication_types"],
        mesh=lists["mesh"],
        status=values.status(plain["status"]),
        replaced_by=plain["replaced_by"],
        notes=(message("reader.no_abstract"),) if untold else (),
    )


def is_record(value: dict[str, Any], mapping: FieldMapping) -> bool:
    """Whether an object is a record itself, and not one of id -> record."""
    return not value or not all(isinstance(item, dict) for item in value.values()) or any(_field_blocks(value, mapping))


def _field_blocks(value: dict[str, Any], mapping: FieldMapping) -> Iterator[Block]:
    text = _field(value, "text", mapping)
    if isinstance(text, tuple):  # of XML: blocks
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
    """A section's heading and text; text without an object around it has no heading."""
    if not isinstance(section, dict):
        return "", section
    heading = next((section[name] for name in _SECTION_HEADINGS if isinstance(section.get(name), str)), "")
    return heading, next((section[name] for name in _SECTION_TEXTS if section.get(name)), None)


def _section(heading: str, text: str) -> Iterator[Block]:
    if title := values.one_line(clean(heading)):
        yield Block.of("heading", title, 1)
    for lines in paragraphs(text):
        yield from headed(lines, _FIELD_HEADING)


def _field(value: dict[str, Any], name: str, mapping: FieldMapping) -> Any:
    """What the source holds for our field ``name``."""
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
    """The value at a dotted ``path``; a list on the way gives the list of what its items hold."""
    if isinstance(value, list):
        return [_look(item, path) for item in value]
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    first, _, rest = path.partition(".")
    return _look(value.get(first), rest) if rest else None


def _flat(value: Any) -> Iterator[Any]:
    """What a value holds that is no list."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield value


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in a value, cleaned; truth values and objects are none."""
    for item in _flat(value):
        if isinstance(item, str) or (isinstance(item, int | float) and not isinstance(item, bool)):
            text = clean(str(item))
            if text.strip():
                yield text


# --- Wikipedia --------------------------------------------------------------------------------------------------------

# An article a line, ``{"id", "url", "title", "text"}``, as wikiextractor writes with ``--json`` (files called
# ``wiki_00``) and as the dumps for language models hold it. Paragraphs end at blank lines; where a text has none, at
# every line. A line ``== Name ==`` is a heading, of level 1 for two signs and one more for each further one. The
# language is that of the article's address; the edition is the option ``edition`` of the manifest, the date of the
# dump, since an article does not tell. An article without text (a redirect) is a fault, as is an id that comes twice.
# Not covered: wiki markup beyond headings; the ``<doc>`` form that wikiextractor writes without ``--json``.

_WIKI_HEADING = re.compile(r"(={2,6})\s*([^=].*?)\s*\1")
_LANGUAGE = re.compile(r"https?://([a-z]{2,3})\.(?:m\.)?wikipedia\.org/")


def read_wikipedia(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each article; faults for lines that are none."""
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if head.startswith(b"<doc"):
        raise InputError("reader.wikipedia", name=path.name)
    articles = items if head.startswith(b"[") else line_items
    edition = values.edition(str(mapping.options.get("edition", "")))
    yield from once(_article(value, where, edition) for where, _, value in articles(path, mapping))


def _article(value: Any, where: Message, edition: str) -> SourceRecord | Fault:
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
        yield from headed(lines, _WIKI_HEADING, 1)


def _plain(value: Any) -> str:
    """A text or a whole number on one line."""
    usable = isinstance(value, str | int) and not isinstance(value, bool)
    return values.one_line(clean(str(value))) if usable else ""
