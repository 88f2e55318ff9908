"""Reads any XML whose elements a manifest names: one record an element, its fields by paths.

::

    reader = "xml"
    [options]
    record = "monograph"                    # the element that is a document
    headings = ["heading", "title"]         # inside a text, elements that are headings
    skip = ["image"]                        # elements left out with all their content
    [fields]
    id = "@code"                            # an attribute of the record's element
    title = "names/name"
    text = ["indications", "dosage"]        # each an element; its paragraphs are those of the elements inside
    edition = "meta/revised/@date"

Rules: names are without namespaces. ``json_records.py`` defines the fields. A table of HTML's or JATS' model becomes
rows under their headers. An element with words is a paragraph; an element with elements only is not.

Not covered: conditions in paths; entities and external references, which are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import json_records, markup
from localmed.ingest.readers.markup import Vocabulary, elements, flat, name_of


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each element that the manifest names, and faults."""
    name = mapping.options.get("record")
    if not isinstance(name, str) or not name or "text" not in mapping.fields:
        raise InputError("reader.xml_fields", name=path.name)
    plain = FieldMapping({ours: ours for ours in mapping.fields}, mapping.options)
    yield from json_records.make_records(_items(path, name, mapping), plain)


def _items(path: Path, name: str, mapping: FieldMapping) -> Iterator[json_records.Item]:
    for number, element in enumerate(elements(path, frozenset({name}), local=True), start=1):
        value: dict[str, Any] = {}
        for ours, source in mapping.fields.items():
            paths = [source] if isinstance(source, str) else list(source)
            if ours == "text":
                value[ours] = tuple(block for path in paths for block in _blocks(element, path, mapping))
            else:
                found = [item for path in paths for item in _values(element, path)]
                value[ours] = [item if isinstance(item, str) else flat(item) for item in found]
        yield message("reader.record", number=number), "", value


def _blocks(record: Element, path: str, mapping: FieldMapping) -> Iterator[Block]:
    headings = {str(heading).lower(): 0 for heading in mapping.options.get("headings", ())}
    skipped = frozenset(str(element).lower() for element in mapping.options.get("skip", ()))
    for value in _values(record, path):
        if not isinstance(value, str):
            apart = frozenset({name_of(element) for element in value.iter()} - _inline(value) - headings.keys())
            yield from markup.blocks_of(value, Vocabulary(skipped, apart, headings), 1)
        elif value:
            yield Block.of("paragraph", value)


def _inline(root: Element) -> set[str]:
    """The names of elements whose parent somewhere has words of its own."""
    names: set[str] = set()
    for parent in root.iter():
        if (parent.text or "").strip() or any((child.tail or "").strip() for child in parent):
            names |= {name_of(child) for child in parent}
    return names


def _values(record: Element, path: str) -> list[Element | str]:
    """The elements at ``path``, or the values of the attribute at its end."""
    steps = [step for step in path.split("/") if step and step != "."]
    here: list[Element] = [record]
    for step in steps:
        if step.startswith("@"):
            attributes = (attribute for element in here for attribute in element.attrib.items())
            return [value for name, value in attributes if name.rpartition("}")[2] == step[1:]]
        here = [child for element in here for child in element if name_of(child) == step.lower()]
    return list(here)
