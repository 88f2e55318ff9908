"""Finished results of a batch of questions as JSON lines, so that an interrupted batch can be resumed.

The first line identifies the configuration; rows of another one are refused. Each other line is a finished row. A last
line that an interruption has cut off is skipped. Resuming replaces the file atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from localmed.domain.codec import field_types
from localmed.domain.errors import InputError, UsageError, reason
from localmed.lab.sets import read_bytes
from localmed.process import files

Row = TypeVar("Row")
Kind = type[Row] | tuple[type[Row], ...]


class Rows(Generic[Row]):
    """The rows of a batch, identified by their ``key`` fields. Without a file they are not stored."""

    def __init__(
        self, file: Path | None, made_with: Mapping[str, str], resume: bool, kind: Kind[Row], *key: str
    ) -> None:
        """Start anew, or with the rows of ``file`` if ``resume``.

        Raise ``UsageError`` if they have another configuration, ``InputError`` where the file cannot be read or
        written.
        """
        self._file = file
        kept: list[Any] = []
        if file and resume and file.exists() and file.stat().st_size:
            head, kept = _parse(file)
            if head != dict(made_with):
                raise UsageError("evaluation.other_run", file=str(file))
        self.done = {tuple(getattr(row, name, "") for name in key): row for row in _make_rows(kept, kind)}
        if file:
            with writable(file):
                files.replace(file, "".join(map(line, (dict(made_with), *kept))).encode())

    def get(self, key: tuple[str, ...], make: Callable[[], Row]) -> Row:
        """The finished row ``key``, else a new one, stored before it is returned."""
        if key not in self.done:
            row: Any = make()
            self.done[key] = row
            if self._file:
                with writable(self._file), self._file.open("a", encoding="utf-8") as opened:
                    opened.write(line(asdict(row)))
                    opened.flush()
                    os.fsync(opened.fileno())
        return self.done[key]


def stored(file: Path, kind: Kind[Row]) -> tuple[Mapping[str, Any], list[Row]]:
    """The configuration and the rows of ``file``; raise ``InputError`` where it cannot be read."""
    made_with, pieces = _parse(file)
    if not isinstance(made_with, dict):
        raise InputError("evaluation.rows", file=str(file))
    return made_with, list(_make_rows(pieces, kind))


def _make_rows(pieces: list[Any], kind: Kind[Row]) -> Iterator[Row]:
    for piece in pieces:
        for one in kind if isinstance(kind, tuple) else (kind,):
            with suppress(TypeError, AttributeError):  # of another class, or version
                yield _revive(one, piece)


def _revive(kind: Any, piece: Any) -> Any:
    if is_dataclass(kind):
        return kind(**{name: _revive(field_types(kind).get(name), value) for name, value in piece.items()})  # type: ignore[arg-type,operator]
    return tuple(piece) if isinstance(piece, list) else piece


def _parse(file: Path) -> tuple[Any, list[Any]]:
    """The values of the first line and of the others, without incomplete ones."""
    values: list[Any] = []
    try:
        lines = read_bytes(file).decode().split("\n")
    except UnicodeDecodeError:
        raise InputError("evaluation.rows", file=str(file)) from None
    for text in lines:
        try:
            values.append(json.loads(text))
        except ValueError:
            values.append(None)
    return values[0], [value for value in values[1:] if value is not None]


def line(value: Any) -> str:
    """``value`` as a line of JSON."""
    return json.dumps(value, ensure_ascii=False) + "\n"


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raise ``InputError`` where ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError("file.unwritable", reason=reason(error), file=str(path)) from None
