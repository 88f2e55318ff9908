"""A JSON object made a record: which of a source's fields means what.

Rules: ``FieldMapping.fields`` maps our names (``NAMES``) to the source's: a name, a dotted path into nested objects
and through lists, or a list of these, joined as paragraphs. What is not mapped is looked for under the obvious names
(``vocabulary.toml``). ``sections`` is a list of objects with a heading and a text, or an object of heading -> text;
``headings`` is a list that names the items of the text's list one by one. In a text, blank lines end paragraphs and a
line that begins with ``# `` to ``###### `` is a heading. The option ``id_scheme = "pmid"`` makes the id an identifier.
An object without text, or with a status nobody knows, is a ``ValueError`` in our words.

Not covered: choosing between items of a list; truth values and objects are never text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from localmed.domain import message
from localmed.ingest.parsed import Block, FieldMapping, SourceRecord, Unusable
from localmed.ingest.readers import values
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.text import headed, paragraphs

NAMES = tuple(values.vocabulary()["fields"])
_BODY = ("text", "sections")  # a mapping that names one of the two means that one alone
_SECTION_HEADINGS, _SECTION_TEXTS = ("heading", "title", "name", "label"), ("text", "content", "body", "paragraphs")

_HEADING = re.compile(r"(#{1,6}) (.+)")
_PLAIN = ("id", "title", "edition", "language", "url", "status", "replaced_by")
_LISTS = ("identifiers", "publication_types", "mesh")


def record_of(value: dict[str, Any], name: str, mapping: FieldMapping, titled: bool = False) -> SourceRecord:
    """``value`` as a record, called ``name`` if it has no id; raise ``Unusable`` where it cannot be one.

    ``titled``: one that has a title alone is that title, with a note.
    """
    blocks = tuple(_blocks(value, mapping))
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
    return not value or not all(isinstance(item, dict) for item in value.values()) or any(_blocks(value, mapping))


def _blocks(value: dict[str, Any], mapping: FieldMapping) -> Iterator[Block]:
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
        yield from headed(lines, _HEADING)


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
