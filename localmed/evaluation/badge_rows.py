"""The finished questions of a batch of badges, as JSON lines, so that an interrupted batch goes on.

The first line says what the batch is made with; a batch of something else is refused. The others hold a question's id,
a source and a badge: no text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localmed.domain import Badge
from localmed.errors import InputError, UsageError

Row = tuple[str, str]  # a question's id, a source


def begin(file: Path, made_with: Mapping[str, str], resume: bool) -> dict[Row, Badge]:
    """The badges that ``file`` holds if ``resume``; raise ``UsageError`` if it was made with something else."""
    kept: dict[Row, Badge] = {}
    if resume and file.exists():
        head, *lines = _text(file).split("\n")
        if _parsed(head) != dict(made_with):
            raise UsageError(
                f"{file} was made with other questions, sources or models", "Leave --resume out, or give another --out"
            )
        for line in lines:
            read = _parsed(line)  # a last line may be cut off
            if isinstance(read, list) and len(read) == 3 and read[2] in {each.value for each in Badge}:
                kept[str(read[0]), str(read[1])] = Badge(read[2])
    _write(file, dict(made_with), "w")
    for row, badge in kept.items():
        keep(file, row, badge)
    return kept


def keep(file: Path, row: Row, badge: Badge) -> None:
    """Add a finished one, so that it outlives an interruption."""
    _write(file, [*row, badge.value], "a")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{file} cannot be read", "Leave --resume out, or give another --out") from None


def _write(file: Path, value: object, mode: str) -> None:
    try:
        with file.open(mode, encoding="utf-8") as opened:
            opened.write(json.dumps(value, ensure_ascii=False) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise InputError(f"{file} cannot be written ({error.strerror})", "Give another --out") from None
