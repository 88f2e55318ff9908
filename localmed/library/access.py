"""Access: which groups may read which collection, in ``<data>/access.json``.

Outside the generations, as the withdrawals are: a restriction holds from the next question on, and neither a rollback
nor a restored generation lifts it. A collection that is not named may be read by everybody. A file that cannot be read,
or is missing though a generation was built beside it, is an error, never "no restriction".

Format 1 of the file was ``readers.json``, the collections alone. It is read where there is no other, and moved at the
next change. Two files that differ are an error: an older localmed may have changed one of them since.

Format 3 carries a count of its changes and a digest of itself: what was altered is an error, and so is a file that the
audit log does not know (``anchors.py``), though it agrees with itself. Of format 2 there was neither: it is taken as it
is until the next change.

Who sees everything is the librarian (``None`` in place of groups): whoever may write to the data folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from localmed.domain.errors import AccessUndecided, Damaged, LibraryError, NoLibrary, UsageError
from localmed.library import generations, layout
from localmed.library.anchors import Anchor, anchors, as_noted
from localmed.process import files
from localmed.process.files import told_if_full

FILE = layout.ACCESS
OLDER = layout.ACCESS_OLDER  # of format 1
LOCK = layout.ACCESS_LOCK  # its name since format 1, so that an older localmed waits as well
FORMAT = 3
WITHOUT_DIGEST = 2  # the last format that had none
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
            if self._needed() or anchors(self._path.parent, "access"):
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
        with self.alone():
            self._move()
            if not self.all() and not self._path.exists():
                self._write({}, 0)

    def put(
        self, collection: str, groups: Collection[str], plan: Callable[[Anchor], object] = lambda _: None
    ) -> Anchor:
        """Let only ``groups`` read ``collection`` (none: everybody), from the next question on.

        ``plan`` is called with the file's new anchor before it is written. Raise ``UsageError`` for what is no name of
        a group.
        """
        checked(groups)
        with self.alone():
            self._move()
            kept = {name: sorted(allowed) for name, allowed in self.all().items() if name != collection}
            return self._write(kept | ({collection: sorted(set(groups))} if groups else {}), self.changes() + 1, plan)

    def restore(self, kept: Mapping[str, Collection[str]], changes: int, plan: Callable[[Anchor], object]) -> Anchor:
        """Write the file anew, whatever stands there now."""
        with self.alone():
            self._older.unlink(missing_ok=True)
            return self._write({name: sorted(groups) for name, groups in kept.items()}, changes, plan)

    def changes(self) -> int:
        """How often the file was changed, as it says itself; 0 where it does not say."""
        with suppress(Damaged):
            values = _loaded(self._path)
            if isinstance(values, dict) and type(number := values.get("changes")) is int:
                return number
        return 0

    def readable(self) -> Mapping[str, frozenset[str]]:
        """What the file says, though it may have been altered; nothing where it cannot be read."""
        with suppress(Damaged):
            values = _loaded(self._path)
            return _groups(self._path, values.get("collections") if isinstance(values, dict) else None)
        return {}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One writer at a time, from reading to writing: of two at once the later would lose what the first has set."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with told_if_full(self._path.parent), (self._path.parent / LOCK).open("a") as lock:
            files.lock(lock, wait=True)  # writing takes milliseconds
            yield

    def _needed(self) -> bool:
        """Whether the generation being served was built beside the file."""
        with suppress(NoLibrary):
            return generations.served_manifest(self._path.parent).format >= BESIDE
        return False

    def _move(self) -> None:
        """Bring a file of format 1 to this one's: written whole before the older goes, so a crash leaves two alike."""
        groups = self.all()
        if self._older.exists():
            self._write({name: sorted(allowed) for name, allowed in groups.items()}, self.changes())
            self._older.unlink()
            files.sync(self._older.parent)

    def _write(
        self, kept: Mapping[str, list[str]], changes: int, plan: Callable[[Anchor], object] = lambda _: None
    ) -> Anchor:
        values = {"format": FORMAT, "changes": changes, "collections": kept}
        anchor = Anchor("access", changes, _sha256(values))
        plan(anchor)
        text = json.dumps(values | {"digest": anchor.sha256}, ensure_ascii=False, indent=1)
        files.replace(self._path, text.encode())
        return anchor

    def _read(self, state: _State) -> Mapping[str, frozenset[str]]:
        older = _groups(self._older, _loaded(self._older)) if state[1] else None
        if state[0] is None:
            return older or {}
        values = _loaded(self._path)
        if isinstance(values, dict) and isinstance(number := values.get("format"), int):
            if number not in (FORMAT, WITHOUT_DIGEST):
                raise AccessUndecided("access.newer", path=str(self._path))
            self._compare(values)
            values = values.get("collections")
        else:
            self._known_to_audit(0, "")
        groups = _groups(self._path, values)  # one that a librarian has written by hand may name collections alone
        if older is not None and older != groups:
            raise AccessUndecided("access.two", path=str(self._path), older=str(self._older))
        return groups

    def _compare(self, values: dict[str, object]) -> None:
        """Raise ``Damaged`` unless the file is as it was written, and as the audit log knows it."""
        recorded, changes = values.pop("digest", ""), values.get("changes", 0)
        if (values["format"] == FORMAT or recorded) and (recorded != _sha256(values) or type(changes) is not int):
            raise Damaged("access.altered", path=str(self._path))
        self._known_to_audit(changes if type(changes) is int else 0, str(recorded))

    def _known_to_audit(self, changes: int, sha256: str) -> None:
        """Raise ``Damaged`` for a file older than its last change, or of which no change was noted.

        Where the log knows nothing, or cannot be read, the manifest of the generation being served says what there was.
        """
        if not as_noted(anchors(self._path.parent, "access") or self._in_manifest(changes), changes, sha256):
            raise Damaged("access.unknown", path=str(self._path))

    def _in_manifest(self, changes: int) -> list[Anchor]:
        """The file that the generation being served was built beside, unless it was changed since."""
        with suppress(LibraryError):  # told where the generation is opened
            manifest = generations.served_manifest(self._path.parent)
            number, _, sha256 = manifest.access.partition(" ")
            if number.isdigit() and changes <= int(number):
                return [Anchor("access", int(number), sha256)]
        return []


def _sha256(values: Mapping[str, object]) -> str:
    """The digest of what the file says, however it is laid out."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


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
        return json.loads(files.own_bytes(path))
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


def groups_of(groups: Collection[str], data: Path) -> Groups:
    """The groups of whoever runs a command: ``groups``, else by the right to write to the data folder."""
    if groups:
        return frozenset(groups)
    return None if not data.exists() or os.access(data, os.W_OK) else frozenset()


def narrowed(groups: Groups, *choices: Collection[str]) -> Groups:
    """``groups`` as each of ``choices`` that names any narrows them; raise ``UsageError`` for one that would widen."""
    for choice in filter(None, choices):
        if groups is not None and not groups.issuperset(choice):
            raise UsageError("cli.other_group")
        groups = frozenset(choice)
    return groups


def _is_list(value: object) -> bool:
    """Whether ``value`` names at least one group: a restriction to nobody is more likely a damaged file."""
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) and name for name in value)
