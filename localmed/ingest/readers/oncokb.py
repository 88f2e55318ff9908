"""Reads OncoKB's table of actionable variants, each row as a sentence.

The table is tab-separated text or JSON, with several names of its columns (``vocabulary.toml``). Rules: one record a
row, keyed by gene, alteration, cancer type, level and drugs. The sentence says resistant for the levels R1 and R2 and
recommended for 1 to 4, as in LINS ("Local OncoKB database construction"), and adds the strength of evidence. A row
without gene, alteration, cancer type or drug, or of another level (diagnostic, prognostic), is a fault.

Not covered: summaries of genes and variants, PMIDs and abstracts of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, once
from localmed.ingest.readers import json_records, values
from localmed.ingest.readers.encoding import clean, read_text
from localmed.text.tables import listed

FIELD_CHARACTERS = 2_000  # the longest list of alterations has a few hundred

_LEVEL = re.compile(r"(?:LEVEL[_ ]?)?(\w+)")

Row = Mapping[str, str]


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each row, and faults."""
    rows = _json_rows(path, mapping) if json_records.is_json(path) else _table_rows(path)
    yield from once(row if isinstance(row, Fault) else _record(row, where) for where, row in rows)


def _record(row: Row, where: Message) -> SourceRecord | Fault:
    empty = [name for name in _oncokb()["columns"] if not row[name]]
    match = _LEVEL.fullmatch(row["level"].upper())
    level = match[1] if match else row["level"]
    effect = next((name for name in ("recommended", "resistant") if level in _oncokb()[name]), "")
    if "level" not in empty and not effect:
        return Fault(where, message("reader.oncokb_level", levels=("1", "2", "3A", "3B", "4", "R1", "R2")))
    if empty:
        return Fault(where, message("reader.has_no", field=empty[0]))
    if any(len(value) > FIELD_CHARACTERS for value in row.values()):
        return Fault(where, message("reader.field_long", most=FIELD_CHARACTERS))
    gene, variant, cancer = row["gene"], row["variant"], row["cancer"]
    words = {**row, "level": level, "drugs": " or ".join(listed(row["drugs"])), "evidence": _oncokb()[effect][level]}
    return SourceRecord(
        key=f"{gene}:{variant}:{cancer}:{level}:{row['drugs']}",
        title=f"{gene} {variant} in {cancer}",
        blocks=(Block.of("paragraph", _oncokb()["sentences"][effect].format_map(words)),),
        language="en",
        identifiers=tuple(f"oncokb:{gene}:{alteration}" for alteration in listed(variant)),
    )


def _oncokb() -> Mapping[str, Any]:
    """The vocabulary of the table; ``columns``: our name of a column -> its names there, in lower case."""
    return values.vocabulary()["oncokb"]


# --- the two forms ---------------------------------------------------------------------------------------------------


def _table_rows(path: Path) -> Iterator[tuple[Message, Row | Fault]]:
    lines = read_text(path).split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    header = [values.one_line(cell).lower() for cell in lines[start].split("\t")]
    places = {
        name: next((header.index(one) for one in names if one in header), -1)
        for name, names in _oncokb()["columns"].items()
    }
    if missing := [name for name, at in places.items() if at < 0]:
        single = len(header) == 1
        problem = message("reader.no_tabs") if single else message("reader.has_no_column", column=missing[0])
        raise InputError("reader.oncokb_table", name=path.name, problem=problem)
    for number, line in enumerate(lines[start + 1 :], start + 2):
        where, cells = message("reader.line", number=number), line.split("\t")
        if not line.strip():
            continue
        if len(cells) <= max(places.values()):
            yield where, Fault(where, message("reader.few_columns", count=len(cells), all=len(header)))
        else:
            yield where, {name: values.one_line(cells[at]) for name, at in places.items()}


def _json_rows(path: Path, mapping: FieldMapping) -> Iterator[tuple[Message, Row | Fault]]:
    for where, _, value in json_records.items(path, mapping):
        if isinstance(value, Fault):
            yield where, value
        elif not isinstance(value, dict):
            yield where, Fault(where, message("reader.no_object"))
        else:
            known = {key.lower(): item for key, item in value.items()}
            row = {}
            for ours, names in _oncokb()["columns"].items():
                text = next((known[name] for name in names if isinstance(known.get(name), str)), "")
                row[ours] = values.one_line(clean(text))
            yield where, row
