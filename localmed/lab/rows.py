"""What a batch of questions has finished, as JSON lines, so that an interrupted batch goes on.

The first line says what the batch is made with; a batch of something else is refused. Each of the others is a finished
piece, which outlives an interruption; a last line that one has cut off is left out. Going on replaces the file in one
step: a process that is killed meanwhile takes nothing with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localmed.domain import Badge
from localmed.domain.errors import InputError, UsageError, reason
from localmed.lab.sets import read_bytes
from localmed.process import files

Row = tuple[str, str]  # a question's id, a source
_BADGES = frozenset(badge.value for badge in Badge)


def begin(file: Path, made_with: Mapping[str, str], resume: bool) -> list[Any]:
    """The finished pieces of ``file`` if ``resume``; else, and where there are none, it begins anew.

    Raise ``UsageError`` if it was made with something else, ``InputError`` where it cannot be read or written.
    """
    kept: list[Any] = []
    if resume and file.exists() and file.stat().st_size:
        head, *lines = _text(file).split("\n")
        if _parsed(head) != dict(made_with):
            raise UsageError("evaluation.other_run", file=str(file))
        kept = [value for value in map(_parsed, lines) if value is not None]
    with writable(file):
        files.replace(file, _lines(dict(made_with), *kept).encode())
    return kept


def read(file: Path) -> tuple[Mapping[str, Any], list[Any]]:
    """What the pieces of ``file`` were made with, and the pieces; raise ``InputError`` where it cannot be read."""
    head, *lines = _text(file).split("\n")
    made_with = _parsed(head)
    if not isinstance(made_with, dict):
        raise InputError("evaluation.rows", file=str(file))
    return made_with, [value for value in map(_parsed, lines) if value is not None]


def keep(file: Path, value: Any) -> None:
    """Add a finished piece."""
    with writable(file), file.open("a", encoding="utf-8") as opened:
        opened.write(_lines(value))
        opened.flush()
        os.fsync(opened.fileno())


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode()
    except UnicodeDecodeError:
        raise InputError("evaluation.rows", file=str(file)) from None


def _lines(*values: Any) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@contextmanager
def writable(file: Path) -> Iterator[None]:
    """Raise ``InputError`` where ``file`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError("file.unwritable", reason=reason(error), file=str(file)) from None


# --- a batch of badges ------------------------------------------------------------------------------------------------


def begin_badges(file: Path, made_with: Mapping[str, str], resume: bool) -> dict[Row, Badge]:
    """The badges that ``file`` holds if ``resume`` (see ``begin``)."""
    kept = begin(file, made_with, resume)
    whole = (piece for piece in kept if isinstance(piece, list) and len(piece) == 3 and piece[2] in _BADGES)
    return {(str(question), str(source)): Badge(badge) for question, source, badge in whole}


def keep_badge(file: Path, row: Row, badge: Badge) -> None:
    """Add a finished badge."""
    keep(file, [*row, badge.value])
