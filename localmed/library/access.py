"""Access: which groups may read which collection, in ``<data>/access.json``.

Outside the generations, as the withdrawals are: a restriction holds from the next question on, and neither a rollback
nor a restored generation lifts it. A collection that is not named may be read by everybody. A file that cannot be read,
or is missing though a generation was built beside it, is an error, never "no restriction".

Format 1 of the file was ``readers.json``, the collections alone. It is read where there is no other, and moved at the
next change. Two files that differ are an error: an older localmed may have changed one of them since.

Who sees everything is the librarian (``None`` in place of groups): whoever may write to the data folder.
"""

from __future__ import annotations

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

FILE = "access.json"
OLDER = "readers.json"  # of format 1
LOCK = "readers.lock"  # its name since format 1, so that an older localmed waits as well
FORMAT = 2
BESIDE = 2  # format of the generations that are built beside a file; before, there was none unless one was restricted
NAME = re.compile(r"\w[\w-]{0,59}")  # of a group, as of a collection
Groups = frozenset[str] | None  # of whoever reads; None: everything may be read


class Access:
    """The file, read again whenever it has changed."""

    def __init__(self, data: Path) -> None:
        """Use ``<data>/access.json``; see ``create``."""
        self._path, self._older = data / FILE, data / OLDER
        self._known: tuple[_State, Mapping[str, frozenset[str]]] = ((None, None), {})  # replaced as a whole

    def all(self) -> Mapping[str, frozenset[str]]:
        """The groups of each collection that is restricted; raise ``Damaged`` for a file that is lost or unreadable."""
        state = _stamp(self._path), _stamp(self._older)
        if state == (None, None):
            if self._needed():
                raise Damaged("access.missing", path=str(self._path)) from None
            return {}
        known, groups = self._known
        if state != known:
            groups = self._read(state)
            self._known = state, groups
        return groups

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
            self._move()
            if not self.all() and not self._path.exists():
                self._write({})

    def put(self, collection: str, groups: Collection[str]) -> None:
        """Let only ``groups`` read ``collection`` (none: everybody), from the next question on.

        Raise ``UsageError`` for what is no name of a group.
        """
        checked(groups)
        with self._alone():
            self._move()
            kept = {name: sorted(each) for name, each in self.all().items() if name != collection}
            self._write(kept | ({collection: sorted(set(groups))} if groups else {}))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, from reading to writing: of two at once the later would lose what the first has set."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with told_if_full(self._path.parent), (self._path.parent / LOCK).open("a") as lock:
            files.lock(lock, wait=True)  # writing takes milliseconds
            yield

    def _needed(self) -> bool:
        """Whether the generation being served was built beside the file."""
        with suppress(NoLibrary):
            return generations.read_manifest(generations.current(self._path.parent)).format >= BESIDE
        return False

    def _move(self) -> None:
        """Bring a file of format 1 to this one's: written whole before the older goes, so a crash leaves two alike."""
        groups = self.all()
        if self._older.exists():
            self._write({name: sorted(allowed) for name, allowed in groups.items()})
            self._older.unlink()
            files.sync(self._older.parent)

    def _write(self, kept: Mapping[str, list[str]]) -> None:
        values = {"format": FORMAT, "collections": kept}
        files.replace(self._path, json.dumps(values, ensure_ascii=False, indent=1).encode())

    def _read(self, state: _State) -> Mapping[str, frozenset[str]]:
        older = _groups(self._older, _loaded(self._older)) if state[1] else None
        if state[0] is None:
            return older or {}
        values = _loaded(self._path)
        if isinstance(values, dict) and isinstance(number := values.get("format"), int):
            if number != FORMAT:
                raise Damaged("access.newer", path=str(self._path))
            values = values.get("collections")
        groups = _groups(self._path, values)  # one that a librarian has written by hand may name collections alone
        if older is not None and older != groups:
            raise Damaged("access.two", path=str(self._path), older=str(self._older))
        return groups


_Stamp = tuple[int, int, int] | None  # of a file: inode, size and time; None where there is none
_State = tuple[_Stamp, _Stamp]


def _stamp(path: Path) -> _Stamp:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _loaded(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise Damaged("access.unreadable", path=str(path)) from None


def _groups(path: Path, values: object) -> dict[str, frozenset[str]]:
    if not isinstance(values, dict) or not all(map(_is_list, values.values())):
        raise Damaged("access.unreadable", path=str(path))
    return {name: frozenset(groups) for name, groups in values.items()}


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
