"""Reader groups: which groups may read which collection, in ``<data>/readers.json``.

Outside the generations, as the withdrawals are: a restriction holds from the next question on, and neither a rollback
nor a restored generation lifts it. A collection that is not named may be read by everybody. A file that cannot be read,
or is missing though a generation was built beside it, is an error, never "no restriction".

Who sees everything is the librarian (``None`` in place of groups): whoever may write to the data folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from localmed import files
from localmed.errors import Damaged, NoLibrary, UsageError
from localmed.library import generations
from localmed.library.space import told_if_full

FILE = "readers.json"
LOCK = "readers.lock"
BESIDE = 2  # format of the generations that are built beside the file; before, there was none unless one was restricted
NAME = re.compile(r"\w[\w-]{0,59}")  # of a group, as of a collection
Groups = frozenset[str] | None  # of whoever reads; None: everything may be read


class Access:
    """The file, read again whenever it has changed."""

    def __init__(self, data: Path) -> None:
        """Use ``<data>/readers.json``; see ``create``."""
        self._path = data / FILE
        self._seen: tuple[int, int, int] | None = None
        self._groups: Mapping[str, frozenset[str]] = {}

    def all(self) -> Mapping[str, frozenset[str]]:
        """The groups of each collection that is restricted; raise ``Damaged`` for a file that is lost or unreadable."""
        try:
            state = self._path.stat()
            seen = (state.st_ino, state.st_size, state.st_mtime_ns)
        except FileNotFoundError:
            if self._needed():
                raise Damaged("access.missing", path=str(self._path)) from None
            return {}
        if seen != self._seen:
            self._groups, self._seen = self._read(), seen
        return self._groups

    def hidden_from(self, groups: Groups) -> frozenset[str]:
        """The collections that a reader of ``groups`` may not read."""
        if groups is None:
            return frozenset()
        return frozenset(name for name, allowed in self.all().items() if not allowed & groups)

    def create(self) -> None:
        """Make the file, naming nothing, if there is none yet; called before a generation is built.

        Raise ``Damaged`` if it was there once: a lost restriction is not made up for by an empty file.
        """
        with self._alone():
            if not self.all() and not self._path.exists():
                self._write({})

    def put(self, collection: str, groups: Collection[str]) -> None:
        """Let only ``groups`` read ``collection`` (none: everybody), from the next question on.

        Raise ``UsageError`` for what is no name of a group.
        """
        checked(groups)
        with self._alone():
            kept = {name: sorted(each) for name, each in self.all().items() if name != collection}
            self._write(kept | ({collection: sorted(set(groups))} if groups else {}))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, from reading to writing: of two at once the later would lose what the first has set."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with told_if_full(self._path.parent), (self._path.parent / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed; writing takes milliseconds
            yield

    def _needed(self) -> bool:
        """Whether the generation being served was built beside the file."""
        with suppress(NoLibrary):
            return generations.read_manifest(generations.current(self._path.parent)).format >= BESIDE
        return False

    def _write(self, kept: Mapping[str, list[str]]) -> None:
        files.replace(self._path, json.dumps(kept, ensure_ascii=False, indent=1).encode())

    def _read(self) -> dict[str, frozenset[str]]:
        try:
            values = json.loads(self._path.read_text("utf-8"))
            if isinstance(values, dict) and all(map(_is_list, values.values())):
                return {name: frozenset(groups) for name, groups in values.items()}
        except (OSError, ValueError):
            pass
        raise Damaged("access.unreadable", path=str(self._path))


def checked(groups: Iterable[str]) -> None:
    """Raise ``UsageError`` unless all of ``groups`` are names."""
    for group in groups:
        if not NAME.fullmatch(group):
            raise UsageError("access.group", name=group)


def groups_of(given: Collection[str], data: Path) -> Groups:
    """The groups of whoever runs a command: those ``given``, else by the right to write to the data folder."""
    if given:
        return frozenset(given)
    return None if not data.exists() or os.access(data, os.W_OK) else frozenset()


def _is_list(value: object) -> bool:
    """Whether ``value`` names at least one group: a restriction to nobody is more likely a damaged file."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) and each for each in value)
