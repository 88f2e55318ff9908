"""JSON lines by name (``.jsonl``, ``.ndjson``): a record a line, even where the first line is broken.

What a line means is ``json_records``'s business; a broken line is a fault and the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.readers.json_records import line_items, records


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each line; faults for lines that are none."""
    yield from records(line_items(path, mapping), mapping)
