"""Every file and folder of the data folder: its kind, its writer, and whether a backup contains it.

Backup, restore, the whole check and ``doctor`` read this table, and the code takes the names from here. A name that is
not in it is in no backup, and is reported unless a system or a file server creates it (``lost+found``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

GENERATIONS, CURRENT, CURRENT_NEW = "generations", "current", "current.new"
FILES, VECTORS, SCANS, UNPACKED = "files", "vectors", "ocr", "unpacked"
CORPORA, KEPT, UPLOADS, PACKS, TRUST = "corpora", "kept", "uploads", "packs", "trust"
MODELS, HOST = "models", "host"
SITE, IN_FORCE, AUDIT_PENDING = "site.sqlite", "in_force.json", "audit.pending"
AUDIT_KEY, HISTORY_KEY = "audit.key", "history.key"
SETTINGS, SETTINGS_PASSED = "localmed.toml", "localmed.passed.toml"
CANARIES, CANARY_RESULTS, CANARY_LAST = "canaries.toml", "canaries.json", "canaries.last.json"
WHOLE_CHECK, GPUS, WINDOW = "whole_check.json", "gpus.json", "desktop.json"
WRITER_LOCK, REFRESH_LOCK, SITE_LOCK, WINDOW_LOCK = "writer.lock", "refresh.lock", "site.lock", "desktop.lock"
# Replaced by ``site.sqlite``: read once (``library/older.py``), then removed.
STATE, AUDIT, LEDGER, LEDGER_KNOWN = "state.sqlite", "audit.sqlite", "withdrawals", "withdrawals.known"
ACCESS, ACCESS_OLDER, ACCESS_LOCK = "access.json", "readers.json", "readers.lock"


class Kind(StrEnum):
    """The kind of a file, or of the files in a folder."""

    IMMUTABLE = "immutable"  # written once, never changed
    RECORD = "record"  # replaced in one step, or appended to
    DATABASE = "database"  # SQLite, with its own files beside it
    SECRET = "secret"  # noqa: S105  readable by the owner only
    CACHE = "cache"  # can be rebuilt
    LINK = "link"
    LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder of the data folder. ``writer`` is the module that writes it ("": a person).

    ``backup``: a backup contains it. ``logged``: it is copied at the same moment as the journal.
    """

    name: str
    kind: Kind
    writer: str
    backup: bool = True
    folder: bool = False
    logged: bool = False


PLACES = (
    Place(GENERATIONS, Kind.IMMUTABLE, "library.generations", folder=True),  # a backup contains the served one
    Place(CURRENT, Kind.LINK, "library.generations", backup=False),  # a restore makes it
    Place(CURRENT_NEW, Kind.LINK, "library.generations", backup=False),
    Place(FILES, Kind.IMMUTABLE, "library.originals", folder=True),
    Place(VECTORS, Kind.DATABASE, "library.vectors", folder=True),  # a cache that takes hours to fill
    Place(SCANS, Kind.CACHE, "ingest.ocr.pages", folder=True),  # as above
    Place(UNPACKED, Kind.CACHE, "ingest.opening", backup=False, folder=True),
    Place(CORPORA, Kind.RECORD, "ingest.manifest", folder=True),
    Place(KEPT, Kind.RECORD, "site.lookups", folder=True),
    Place(UPLOADS, Kind.IMMUTABLE, "site.uploads", folder=True),
    Place(PACKS, Kind.IMMUTABLE, "upkeep.packs", folder=True),
    Place(TRUST, Kind.RECORD, "upkeep.packs", folder=True),
    Place(MODELS, Kind.IMMUTABLE, "models.registry.registry", folder=True),
    Place(HOST, Kind.CACHE, "models.host.server", backup=False, folder=True),  # the socket of the model host
    Place(SITE, Kind.DATABASE, "library.state", logged=True),
    Place(IN_FORCE, Kind.RECORD, "library.in_force", logged=True),
    Place(AUDIT_PENDING, Kind.RECORD, "site.audit", logged=True),
    Place(AUDIT_KEY, Kind.SECRET, "library.journal", logged=True),
    Place(STATE, Kind.DATABASE, "library.older", backup=False),
    Place(AUDIT, Kind.DATABASE, "library.older", backup=False),
    Place(LEDGER, Kind.RECORD, "library.older", backup=False),
    Place(LEDGER_KNOWN, Kind.RECORD, "library.older", backup=False),
    Place(ACCESS, Kind.RECORD, "library.older", backup=False),
    Place(ACCESS_OLDER, Kind.RECORD, "library.older", backup=False),
    Place(ACCESS_LOCK, Kind.LOCK, "library.older", backup=False),
    Place(HISTORY_KEY, Kind.SECRET, "people.sealing"),
    Place(SETTINGS, Kind.RECORD, ""),
    Place(SETTINGS_PASSED, Kind.RECORD, "site.canary_gate"),
    Place(CANARIES, Kind.RECORD, ""),
    Place(CANARY_RESULTS, Kind.RECORD, "site.canary_gate"),
    Place(CANARY_LAST, Kind.RECORD, "site.canary_gate"),
    Place(WHOLE_CHECK, Kind.RECORD, "upkeep.check"),
    Place(GPUS, Kind.CACHE, "upkeep.fit", backup=False),  # of this machine
    Place(WINDOW, Kind.CACHE, "desktop", backup=False),
    Place(WRITER_LOCK, Kind.LOCK, "library.generations", backup=False),
    Place(REFRESH_LOCK, Kind.LOCK, "nightly.refresh", backup=False),
    Place(SITE_LOCK, Kind.LOCK, "library.in_force", backup=False),
    Place(WINDOW_LOCK, Kind.LOCK, "desktop", backup=False),
)
BY_NAME = {place.name: place for place in PLACES}
BESIDE_DATABASE = ("-wal", "-shm", "-journal")  # SQLite's own files

_HALF_WRITTEN = re.compile(r"(.+?)(?:\.[0-9a-f]{8})?\.new|\.backup-\w+")  # by ``files.replace`` or a backup
_OF_THE_SYSTEM = re.compile(
    r"lost\+found|System Volume Information|\$RECYCLE\.BIN|\.Trash.*|\.snapshots?|\.zfs|\.nfs[0-9a-f]+|\.fuse_hidden\w+"
    r"|\.DS_Store|\._.*|@eaDir|\.stfolder"
)


def place_of(name: str) -> Place | None:
    """Return the place of ``name`` in the data folder, ``None`` for a name that we do not write."""
    if half_written := _HALF_WRITTEN.fullmatch(name):
        return BY_NAME.get(half_written[1] or VECTORS)
    stem = next((name.removesuffix(end) for end in BESIDE_DATABASE if name.endswith(end)), name)
    place = BY_NAME.get(stem)
    return place if stem == name or (place and place.kind is Kind.DATABASE and not place.folder) else None


def entries(folder: Path) -> list[Path]:
    """Return the entries of ``folder`` in order, without those of the system; none if the folder does not exist."""
    return [path for path in sorted(folder.glob("*")) if not _OF_THE_SYSTEM.fullmatch(path.name)]


def unknown(data: Path) -> list[Path]:
    """Return the entries of the data folder that are not in the table."""
    return [path for path in entries(data) if not place_of(path.name)]


def in_backup(data: Path) -> list[Place]:
    """Return the existing places that a backup contains, in the table's order."""
    return [place for place in PLACES if place.backup and (data / place.name).exists()]


def contents(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder of the table, without links, locks and half-written files."""
    for path in entries(folder):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from contents(path)
        elif path.is_file() and path.suffix not in (".part", ".new", ".lock"):
            yield path
