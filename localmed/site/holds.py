"""The hold list: files that the nightly refresh skips until somebody releases them.

Files changed by a blocked or rolled-back change go on it with their hash, because the same bytes (or the same removal)
would have the same effect. Other bytes of the same file are read, and the canaries decide. A manual import by name
ignores the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message
from localmed.domain.errors import UnknownName
from localmed.ingest.sources import Leaving
from localmed.library.catalogue import ImportedFile
from localmed.library.journal import now
from localmed.library.state import rows, selected, transaction
from localmed.messages import from_text, to_text

if TYPE_CHECKING:
    from localmed.site.session import Session


@dataclass(frozen=True, slots=True)
class Hold:
    """A file on hold with its hash ("": removal of the file is on hold), reason, time, and the user of the change."""

    collection: str
    path: str
    sha256: str
    reason: Message
    user: str
    time: str


def holds(data: Path) -> tuple[Hold, ...]:
    """The files on hold, newest first."""
    query = "SELECT collection, path, sha256, reason, user, time FROM holds ORDER BY time DESC, collection, path"
    return tuple(
        Hold(collection, path, sha256, from_text(reason), user, time)
        for collection, path, sha256, reason, user, time in selected(data, query)
    )


def hold(data: Path, changed: Iterable[ImportedFile], reason: Message, user: str) -> None:
    """Put the ``changed`` files on hold."""
    values = [(one.collection, one.path, one.sha256, to_text(reason), user, now()) for one in changed]
    with rows(data) as state, transaction(state):
        state.executemany("INSERT OR REPLACE INTO holds VALUES (?, ?, ?, ?, ?, ?)", values)


def release(session: Session, paths: Sequence[str] = ()) -> int:
    """Release the files ``paths`` (none: all) for the next night; return the number of entries.

    Raise ``UnknownName`` for a path that is not on hold.
    """
    present = holds(session.data)
    if unknown := [path for path in paths if path not in {one.path for one in present}]:
        raise UnknownName("hold.unknown", path=unknown[0])
    chosen = [one for one in present if not paths or one.path in paths]
    with session.change("hold release", f"{len(chosen)} files") as change, rows(session.data) as state:
        key = "collection = ? AND path = ? AND sha256 = ?"
        query = f"DELETE FROM holds WHERE {key}"  # noqa: S608
        state.executemany(query, [(one.collection, one.path, one.sha256) for one in chosen])
        change.outcome = "released"
    return len(chosen)


def leaving(data: Path, collection: str, written_since: float) -> Leaving:
    """What the next night skips in ``collection``: files on hold, and files modified since then (Unix time)."""
    held: dict[str, set[str]] = {}
    for one in holds(data):
        if one.collection == collection:
            held.setdefault(one.path, set()).add(one.sha256)
    return Leaving({path: frozenset(hashes) for path, hashes in held.items()}, written_since)
