"""Helpers for tests of readers: read a file, show the shape of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localmed.ingest import readers
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord

FIXTURES = Path(__file__).parents[1] / "fixtures"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, reader: str = "", fields: Any = None, **options: Any) -> list[SourceRecord | Fault]:
    """The records and faults of ``path``, by ``reader`` or the one for its name and content."""
    items = readers.load(readers.name_of(path, reader))(path, FieldMapping(fields or {}, options))
    return list(items)  # type: ignore[arg-type]


def one(path: Path, reader: str = "", **options: Any) -> SourceRecord:
    [record] = read(path, reader, **options)
    assert isinstance(record, SourceRecord)
    return record


def shape(record: SourceRecord) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, "|".join(line.text for line in block.lines)) for block in record.blocks]


def texts(record: SourceRecord) -> list[str]:
    return [" ".join(line.text for line in block.lines) for block in record.blocks]
