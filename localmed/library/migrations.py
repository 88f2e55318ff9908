"""Numbered migrations of the SQLite files. A file's ``user_version`` is the number of the last one applied.

A migration is never edited once released: a new one is added, and tested from a file of every older version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from localmed.errors import Damaged

LIBRARY: tuple[str, ...] = (
    """
    CREATE TABLE collections (
        name TEXT PRIMARY KEY, title TEXT NOT NULL, priority INTEGER NOT NULL, language TEXT NOT NULL,
        source TEXT NOT NULL, licence TEXT NOT NULL
    );
    CREATE TABLE files (
        collection TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL, recipe TEXT NOT NULL, root TEXT NOT NULL,
        PRIMARY KEY (collection, path)
    );
    CREATE INDEX files_root ON files (collection, root);
    CREATE TABLE documents (
        id TEXT PRIMARY KEY, collection TEXT NOT NULL, file TEXT NOT NULL, content TEXT NOT NULL,
        file_sha256 TEXT NOT NULL, title TEXT NOT NULL, edition TEXT NOT NULL, language TEXT NOT NULL,
        status TEXT NOT NULL, replaced_by TEXT NOT NULL, passages INTEGER NOT NULL, more TEXT NOT NULL
    );
    CREATE INDEX documents_file ON documents (collection, file);
    CREATE INDEX documents_content ON documents (content);
    CREATE INDEX documents_status ON documents (status) WHERE status <> 'current';
    CREATE TABLE marks (
        document TEXT PRIMARY KEY, status TEXT NOT NULL, replaced_by TEXT NOT NULL, reason TEXT NOT NULL,
        time TEXT NOT NULL
    );
    """,
)

STATE: tuple[str, ...] = (
    """
    CREATE TABLE imports (
        id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT NOT NULL DEFAULT '', collection TEXT NOT NULL,
        outcome TEXT NOT NULL DEFAULT 'interrupted', generation INTEGER NOT NULL DEFAULT 0,
        counts TEXT NOT NULL DEFAULT '{}'
    );
    CREATE TABLE quarantine (
        collection TEXT NOT NULL, path TEXT NOT NULL, place TEXT NOT NULL, sha256 TEXT NOT NULL, recipe TEXT NOT NULL,
        reason TEXT NOT NULL, time TEXT NOT NULL,
        PRIMARY KEY (collection, path, place)
    );
    """,
)

VECTORS: tuple[str, ...] = ("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;",)

AUDIT: tuple[str, ...] = ("CREATE TABLE entries (id INTEGER PRIMARY KEY, entry TEXT NOT NULL, digest TEXT NOT NULL);",)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str], name: str) -> None:
    """Bring ``connection`` to the newest schema, each step in a transaction of its own.

    Raise ``Damaged`` if the file was written by a newer localmed: an older program must not guess.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise Damaged(f"{name} was written by a newer localmed (schema {version})", "Update localmed")
    for number, script in enumerate(migrations[version:], version + 1):
        connection.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")


def open_database(path: Path, migrations: Sequence[str], wal: bool = False) -> sqlite3.Connection:
    """Open (and make) ``path`` at the newest schema. ``wal`` is for files that outlive generations and have readers."""
    connection = sqlite3.connect(path, timeout=10.0, isolation_level=None)
    try:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, migrations, path.name)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise Damaged(f"{path} cannot be read ({error})", "Restore it from a backup") from None
    except Damaged:
        connection.close()
        raise
    return connection
