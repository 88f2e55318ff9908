"""``state.sqlite``: what belongs to the site, not to a generation. Import runs and quarantine so far.

Reasons never hold document text (readers promise that), so neither does this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from localmed.library.migrations import STATE, open_database


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file (``place`` empty) or a part of it that was refused, and why."""

    collection: str
    path: str
    place: str
    sha256: str
    recipe: str
    reason: str
    time: str = ""


class State:
    """The open file; safe to use from several processes (WAL)."""

    def __init__(self, data: Path) -> None:
        """Open or make ``<data>/state.sqlite``."""
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._database = open_database(data / "state.sqlite", STATE, wal=True)

    def __enter__(self) -> Self:
        """The open file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def begin_import(self, collection: str) -> int:
        """Note that an import has begun; it counts as interrupted until ``finish_import``."""
        query = "INSERT INTO imports (started, collection) VALUES (?, ?)"
        return int(self._database.execute(query, (_now(), collection)).lastrowid or 0)

    def finish_import(self, run: int, outcome: str, generation: int, counts: Mapping[str, int]) -> None:
        """Note how an import ended."""
        self._database.execute(
            "UPDATE imports SET finished = ?, outcome = ?, generation = ?, counts = ? WHERE id = ?",
            (_now(), outcome, generation, json.dumps(dict(counts)), run),
        )

    def quarantined(self, collection: str = "") -> list[Quarantined]:
        """Everything in quarantine, of one collection or all."""
        rows = self._database.execute(
            "SELECT collection, path, place, sha256, recipe, reason, time FROM quarantine "
            "WHERE ? = '' OR collection = ? ORDER BY collection, path, place",
            (collection, collection),
        )
        return [Quarantined(*row) for row in rows]

    def requarantine(self, collection: str, path: str, refused: Iterable[Quarantined]) -> None:
        """Replace what is in quarantine of one file."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute("DELETE FROM quarantine WHERE collection = ? AND path = ?", (collection, path))
            self._database.executemany(
                "INSERT OR REPLACE INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(q.collection, q.path, q.place, q.sha256, q.recipe, q.reason, _now()) for q in refused],
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
