"""Since when each generation was served: ``<data>/generations/served.json``, newest last, written after every swap.

What was served before a change is kept until a later change has served a day (``SETTLED``) or was confirmed: a series
of small changes, each with a mistake in it, must not push the last good state out of the few that are kept by number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localmed.domain.errors import Damaged
from localmed.process import files

FILE = "served.json"  # in the folder of the generations
SETTLED = timedelta(days=1)
MOST = 200  # swaps remembered


@dataclass(frozen=True, slots=True)
class Swap:
    """From ``since`` on generation ``number`` was served; ``confirmed`` that somebody has found it good."""

    number: int
    since: str
    confirmed: bool = False


def swaps(folder: Path) -> list[Swap]:
    """The swaps, oldest first; raise ``Damaged`` where the file cannot be read."""
    try:
        rows = [Swap(**row) for row in json.loads(files.own_bytes(folder / FILE))]
        for row in rows:
            datetime.fromisoformat(row.since)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        raise Damaged("generation.served_unreadable", file=str(folder / FILE)) from None
    return rows


def note(folder: Path, number: int) -> None:
    """Generation ``number`` is served from now on."""
    try:
        rows = swaps(folder)
    except Damaged:  # nothing was pruned by it; it begins anew
        rows = []
    now = datetime.now(UTC).isoformat(timespec="seconds")
    _write(folder, [*rows, Swap(number, now)][-MOST:])


def confirm(folder: Path, number: int) -> None:
    """Somebody has found generation ``number``, which is served, good: it counts as settled."""
    rows = [row for row in swaps(folder) if row.number == number]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    last = rows[-1] if rows else Swap(number, now)
    _write(folder, [row for row in swaps(folder) if row is not last and row != last] + [replace(last, confirmed=True)])


def settled(folder: Path) -> int:
    """The newest generation before the served one that had served ``SETTLED`` or was confirmed; 0 if there is none.

    Once the served one has itself, nothing before it needs to be kept, and this is 0.
    """
    rows = swaps(folder)
    until = datetime.now(UTC)
    for place, row in enumerate(reversed(rows)):
        since = datetime.fromisoformat(row.since)
        if row.confirmed or until - since >= SETTLED:
            return row.number if place else 0
        until = since
    return 0


def _write(folder: Path, rows: list[Swap]) -> None:
    files.replace(folder / FILE, json.dumps([asdict(row) for row in rows]).encode())
