"""JSON of a hospital's own: the fields whose names tell what they hold, wherever they stand.

Each known field becomes a headed line of prose, which the reader of prose reads. A field that holds another age, sex or
name at a second place means a second patient. The names are ``fields`` of ``clinical/records.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from localmed.clinical.tables import listed, table
from localmed.domain.patient import PatientRecord
from localmed.errors import InputError
from localmed.ingest.records.identifiers import struck
from localmed.ingest.records.text import from_prose
from localmed.language import clean

FIELD_CHARACTERS = 20_000  # of one field; a history has some hundreds
DEPTH = 20  # levels of nesting


def _kinds(section: str) -> dict[str, str]:
    """What each field of a section of the table holds."""
    return {name: kind for kind, names in table("records")["fields"][section].items() for name in listed(names)}


def read_fields(value: Any) -> PatientRecord:
    """The record in ``value``; raise ``InputError`` where no field of a record is found, or two patients' are."""
    kinds, headings = _kinds("identity"), _kinds("headed")
    identity: dict[str, str] = {}
    lines: list[str] = []
    for name, text in _fields(value, 0):
        if (kind := kinds.get(name)) and text.strip():
            if identity.setdefault(kind, text.strip()) != text.strip():
                raise InputError("record.two_patients")
        elif (heading := headings.get(name)) and text.strip():
            lines.append(f"{heading}：{clean(text)[:FIELD_CHARACTERS]}")
    if not lines:
        raise InputError("record.no_field")
    record = from_prose(struck("\n".join(dict.fromkeys(lines))))
    person = from_prose(f"年龄：{identity.get('age', '')}\n性别：{identity.get('sex', '')}")
    return replace(record, age=person.age if "age" in identity else record.age, sex=person.sex or record.sex)


def _fields(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Every field that holds text or a number, with its name, in order."""
    if depth > DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _fields(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, (str, int, float)) and not isinstance(item, bool):
                yield name, str(item)
            else:
                yield from _fields(item, depth + 1)
