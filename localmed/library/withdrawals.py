"""The withdrawal ledger: append-only, outside the generations, in force on the next query everywhere.

Each line of ``<data>/withdrawals`` is one JSON object. The newest line about a document decides. A document is
withdrawn by its id and by the digest of its content, so that neither a rollback nor the same text under another file
name brings it back. A line that cannot be read, or whose digest is not its own, is an error, never skipped: it may be
a withdrawal, and a flipped bit in an id would otherwise cancel it without a word. So is a ledger that ends before the
place it is known to have reached: cut at a line's end, or emptied, it reads well. Known is that from three places
(``withdrawals.known``, the manifest of the generation being served, the audit log), so that one of them lost with the
ledger is not enough.

Each line carries the digest of the line before, and each is planned in the audit log before it is written: a line that
was put in, altered with its digest, or appended by anything else is damage while the log can be read. Lines of before
have no such digest; after one that has, all must.

A line keeps a sketch of the text that is withdrawn, by which an import knows it again with a few words changed.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from localmed.domain import Document, digest
from localmed.domain.errors import Damaged, LocalmedError
from localmed.library import generations, layout
from localmed.library.anchors import PLANNED, REPAIRED, Anchor, anchors, extent
from localmed.process import files
from localmed.process.files import told_if_full


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: ``withdrawn`` or, to reverse it, not. ``previous`` is the digest of the line before ("": the first).

    ``sketch`` is that of the text (``sketches.py``), "" where it was not at hand.
    """

    time: str
    document: str
    content: str
    title: str
    withdrawn: bool
    reason: str
    actor: str
    previous: str = ""
    sketch: str = ""


class Withdrawals:
    """The ledger, read again whenever the file has changed."""

    def __init__(self, data: Path) -> None:
        """Use ``<data>/withdrawals``; where there is a library, a missing file is an error."""
        self._path = data / layout.LEDGER
        self._seen: tuple[int, int, int] | None = None
        self._entries: tuple[Entry, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every line, oldest first."""
        self.changed()
        return self._entries

    def changed(self) -> bool:
        """Whether the file has changed since the last look; reads it if so."""
        try:
            state = self._path.stat()
            seen = (state.st_ino, state.st_size, state.st_mtime_ns)
        except FileNotFoundError:
            if (self._path.parent / layout.CURRENT).is_symlink():
                raise Damaged("withdrawal.missing", path=str(self._path)) from None
            seen = (0, 0, 0)  # nothing has been imported yet
        if seen == self._seen:
            return False
        self._entries = tuple(self._read()) if seen[0] else ()
        self._seen = seen
        return True

    def in_force(self) -> tuple[frozenset[str], frozenset[str]]:
        """The document ids and the content digests that are withdrawn now."""
        ids: dict[str, bool] = {}
        contents: dict[str, bool] = {}
        for entry in self.entries:
            ids[entry.document] = entry.withdrawn
            contents[entry.content] = entry.withdrawn
        return _true(ids), _true(contents)

    def of(self, document: str, content: str = "") -> Entry | None:
        """The line by which ``document``, or another with its ``content``, is withdrawn now; None where none is."""
        own = [entry for entry in self.entries if entry.document == document][-1:]
        same = [entry for entry in self.entries if content and entry.content == content][-1:]
        return next((entry for entry in (*own, *same) if entry.withdrawn), None)

    def sketched(self) -> list[Entry]:
        """The lines with a sketch by which a document is withdrawn now."""
        newest = {entry.document: entry for entry in self.entries}
        return [entry for entry in newest.values() if entry.withdrawn and entry.sketch]

    def create(self) -> None:
        """Make the empty ledger, if there is none; called before the first generation is served."""
        self._path.touch(mode=0o600, exist_ok=True)

    def append(
        self,
        document: Document,
        withdrawn: bool,
        reason: str,
        actor: str,
        plan: Callable[[Anchor], object] = lambda _: None,
        sketch: str = "",
    ) -> Entry:
        """Add a line and sync it before returning: the withdrawal holds even if the power fails now.

        ``plan`` is called with the ledger's new anchor before the line is written; ``sketch`` is that of the text.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(time, document.id, document.content, document.title, withdrawn, reason, actor, sketch=sketch)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with told_if_full(self._path.parent):
            handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                files.lock(handle, wait=True)
                before = os.pread(handle, os.fstat(handle).st_size, 0)
                entry = replace(entry, previous=_newest(self._entries_of(before)))
                line = _line(entry)
                plan(_anchor(before + line))
                _write(handle, line)
                files.replace(self._known, extent(before + line).encode())
            finally:
                os.close(handle)
        return entry

    @contextmanager
    def still(self) -> Iterator[tuple[Anchor, list[Entry]] | None]:
        """How far the ledger goes and its entries, while nobody may write it; None where somebody does now."""
        with files.open_own(self._path) as ledger:
            yield (self.anchor(), self._entries_of(ledger.read(files.OWN))) if files.lock(ledger) else None

    def anchor(self) -> Anchor:
        """How far the ledger goes now, for the audit log."""
        return _anchor(files.own_bytes(self._path))

    def readable(self) -> list[Entry]:
        """The entries that can be read, whatever is wrong with the others."""
        entries = []
        for line in files.own_bytes(self._path).split(b"\n") if self._path.exists() else ():
            with suppress(ValueError, TypeError):
                entries.append(_entry(line))
        return entries

    def restore(self, entries: Iterable[Entry], plan: Callable[[Anchor], object] = lambda _: None) -> Anchor:
        """Write the ledger anew; it is what is known of it when the returned anchor is noted as ``REPAIRED``.

        ``plan`` is called with it before anything is written.
        """
        chained: list[Entry] = []
        for entry in entries:
            chained.append(replace(entry, previous=_newest(chained)))
        content = b"".join(map(_line, chained))
        plan(_anchor(content))
        files.replace(self._path, content)
        files.replace(self._known, extent(content).encode())
        return self.anchor()

    @property
    def _known(self) -> Path:
        """Beside the ledger: how far it goes at least. Behind it after a crash, never ahead of it."""
        return self._path.with_name("withdrawals.known")

    def _noted(self) -> list[Anchor]:
        """What the audit log states, newest first, back to the last repair."""
        noted = []
        for anchor in anchors(self._path.parent, "ledger"):
            noted.append(anchor)
            if anchor.outcome == REPAIRED:
                break
        return noted

    def _extents_known(self, noted: Sequence[Anchor]) -> list[bytes]:
        """How far the ledger goes at least, from every place that says so; none for a ledger of before."""
        known, made = [], [anchor for anchor in noted if anchor.outcome != PLANNED]
        with suppress(FileNotFoundError):
            known.append(files.own_bytes(self._known))
        if made:
            longest = max(made, key=lambda anchor: anchor.extent)
            known.append(f"{longest.extent} {longest.sha256}".encode())
        with suppress(LocalmedError):  # told where the generation is opened
            manifest = generations.served_manifest(self._path.parent)
            repaired = made[-1].time if made and made[-1].outcome == REPAIRED else ""
            if manifest.ledger and manifest.created > repaired:
                known.append(manifest.ledger.encode())
        return known

    def _compare(self, content: bytes) -> None:
        """Raise ``Damaged`` if ``content`` lacks lines that the ledger had, or holds others than the audit log knows.

        A ledger of before, of which nothing is known, is taken as it is until the next line.
        """
        noted = self._noted()
        for known in self._extents_known(noted):
            size = known.partition(b" ")[0]
            if not size.isdigit() or len(content) < int(size) or extent(content[: int(size)]).encode() != known:
                raise Damaged("withdrawal.cut", path=str(self._path))
        now = _anchor(content)
        if noted and (now.extent, now.sha256) not in {(anchor.extent, anchor.sha256) for anchor in noted}:
            raise Damaged("withdrawal.unknown", path=str(self._path))

    def _read(self) -> list[Entry]:
        with files.open_own(self._path) as ledger:
            files.lock(ledger, shared=True, wait=True)  # until a line is whole, or taken back
            return self._entries_of(ledger.read(files.OWN))

    def _entries_of(self, content: bytes) -> list[Entry]:
        """The entries of a ledger that holds ``content``; its lock is held."""
        lines = content.split(b"\n")  # not splitlines: a title may hold U+2028
        if lines.pop():
            raise self._damaged(len(lines) + 1)
        entries: list[Entry] = []
        for number, line in enumerate(lines, 1):
            try:
                entries.append(_following(entries, _entry(line)))
            except (ValueError, TypeError):
                raise self._damaged(number) from None
        self._compare(content)
        return entries

    def _damaged(self, line: int) -> Damaged:
        return Damaged("withdrawal.line", line=line, path=str(self._path))


def _entry(line: bytes) -> Entry:
    """The entry of a line; raise ``ValueError`` or ``TypeError`` if it is none."""
    values = json.loads(line)
    if not isinstance(values, dict):
        raise TypeError
    recorded = values.pop("digest", "")
    entry = Entry(**values)
    if _digest(entry) != recorded:
        raise ValueError
    if type(entry.withdrawn) is not bool or not isinstance(entry.document, str) or not isinstance(entry.content, str):
        raise TypeError
    return entry


def _following(entries: Sequence[Entry], entry: Entry) -> Entry:
    """``entry`` after ``entries``; raise ``ValueError`` if it is not the one that was written after them."""
    chained = any(before.previous for before in entries[-1:])
    if (entry.previous or chained) and entry.previous != _newest(entries):
        raise ValueError
    return entry


def _digest(entry: Entry) -> str:
    return digest(json.dumps(_values(entry), sort_keys=True))


def _values(entry: Entry) -> dict[str, object]:
    """The entry as its line has it; one of before has neither a digest of the line before it nor a sketch."""
    return {name: value for name, value in asdict(entry).items() if name not in ("previous", "sketch") or value}


def _line(entry: Entry) -> bytes:
    return (json.dumps(_values(entry) | {"digest": _digest(entry)}, ensure_ascii=False) + "\n").encode()


def _newest(entries: Sequence[Entry]) -> str:
    """The digest of the last of ``entries``; "" if there is none."""
    return _digest(entries[-1]) if entries else ""


def _anchor(content: bytes) -> Anchor:
    size, _, sha256 = extent(content).partition(" ")
    return Anchor("ledger", int(size), sha256)


def _write(handle: int, line: bytes) -> None:
    """Append the whole of ``line`` and sync, or leave the file as it was: half a line stops every answer."""
    before = os.fstat(handle).st_size
    try:
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, before)
        raise


def _true(values: dict[str, bool]) -> frozenset[str]:
    return frozenset(name for name, value in values.items() if value and name)
