"""Reports of refreshes, kept in ``site.sqlite`` and shown as a page, JSON and a printable file."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from localmed.domain import Message
from localmed.domain.errors import UnknownName
from localmed.domain.nights import CanaryLine, FileLine, Night
from localmed.library.journal import now
from localmed.library.state import rows, selected
from localmed.messages import from_text, to_text
from localmed.site.canary_gate import Comparison

MOST_FILES = 5_000  # listed one by one; the counts have all


def canary_lines(compared: Comparison) -> tuple[CanaryLine, ...]:
    """Return a report's lines on canaries that were lost, fail or moved."""
    lines = []
    for name in dict.fromkeys((*compared.lost, *compared.failing, *compared.moved)):
        before, after = compared.before.get(name), compared.after[name]
        passed, cited = (before.passed, before.cited) if before else (None, ())
        lines.append(CanaryLine(name, passed, after.passed, cited, after.cited, name in compared.accepted))
    return tuple(lines)


def begin(data: Path, keep: int) -> Night:
    """Create the report of a refresh, which counts as interrupted until ``end``; delete the oldest reports."""
    night = Night(now())
    with rows(data) as state:
        number = state.execute("INSERT INTO refreshes (started) VALUES (?)", (night.started,)).lastrowid or 0
        state.execute("DELETE FROM refreshes WHERE id <= ?", (number - keep,))
    return replace(night, number=number)


def end(data: Path, night: Night) -> Night:
    """Store the report."""
    night = replace(night, finished=now(), files=night.files[:MOST_FILES])
    with rows(data) as state:
        query = "UPDATE refreshes SET finished = ?, outcome = ?, report = ? WHERE id = ?"
        state.execute(query, (night.finished, night.outcome, json.dumps(as_json(night)), night.number))
    return night


def nights(data: Path, most: int = 100) -> list[Night]:
    """Return the newest reports first."""
    found_rows = selected(data, f"SELECT id, started, report FROM refreshes ORDER BY id DESC LIMIT {int(most)}")  # noqa: S608
    return [_read_night(*row) for row in found_rows]


def is_timed(data: Path) -> bool:
    """Whether one of the newest refreshes was not started by hand."""
    return any(not one.by_hand for one in nights(data))


def night(data: Path, number: int) -> Night:
    """Return the report ``number``; raise ``UnknownName``."""
    row = next((one for one in nights(data, 100_000) if one.number == number), None)
    if row is None:
        raise UnknownName("refresh.unknown", number=number)
    return row


def as_json(value: Any) -> Any:
    """Return a report as JSON values, messages as their text form."""
    if isinstance(value, Message):
        return to_text(value)
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    if isinstance(value, Night | FileLine | CanaryLine):
        return {item.name: as_json(getattr(value, item.name)) for item in fields(value)}
    return value


def _read_night(number: int, started: str, report: str) -> Night:
    """Return a row's report; only its start if it was interrupted or is from another version."""
    try:
        values = json.loads(report)
        values |= {
            "files": tuple(
                FileLine(**{**row, "detail": from_text(row["detail"]) if row["detail"] else None})
                for row in values["files"]
            ),
            "moved": tuple(
                CanaryLine(**{**row, "cited": tuple(row["cited"]), "cited_before": tuple(row["cited_before"])})
                for row in values["moved"]
            ),
            **{name: tuple(map(from_text, values[name])) for name in ("errors", "faults", "mended")},
            **{name: tuple(map(tuple, values[name])) for name in ("counts", "seconds")},
            "withdrawn": tuple(values["withdrawn"]),
        }
        return Night(**values)
    except (ValueError, LookupError, TypeError):
        return Night(started, number=number)
