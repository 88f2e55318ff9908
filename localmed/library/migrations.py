"""Numbered migrations of the SQLite files. A file's ``user_version`` is the number of the last one applied.

A released migration is never edited: a new one is added, and tested from a file of every older version.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from localmed.domain import Message
from localmed.domain.errors import Busy, Damaged, LibraryError, LocalmedError, reason

BUSY_SECONDS = 10.0  # to wait for another process's transaction; ours take milliseconds

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
    """
    ALTER TABLE collections ADD COLUMN kind TEXT NOT NULL DEFAULT '';
    CREATE TABLE summaries (  -- of an earlier version; nothing reads it
        document TEXT PRIMARY KEY, content TEXT NOT NULL, recipe TEXT NOT NULL, text TEXT NOT NULL,
        places TEXT NOT NULL, words TEXT NOT NULL, vector BLOB NOT NULL
    );
    """,
    """
    ALTER TABLE documents ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    ALTER TABLE documents ADD COLUMN approver TEXT NOT NULL DEFAULT '';
    ALTER TABLE documents ADD COLUMN effective_from TEXT NOT NULL DEFAULT '';
    ALTER TABLE documents ADD COLUMN review_by TEXT NOT NULL DEFAULT '';
    CREATE INDEX documents_effective ON documents (effective_from) WHERE effective_from <> '';
    CREATE INDEX documents_review ON documents (review_by) WHERE review_by <> '';
    CREATE INDEX documents_successor ON documents (replaced_by) WHERE replaced_by <> '';
    CREATE TABLE governed (
        document TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, time TEXT NOT NULL,
        PRIMARY KEY (document, field)
    ) WITHOUT ROWID;
    CREATE TABLE gone (
        document TEXT PRIMARY KEY, collection TEXT NOT NULL, title TEXT NOT NULL, edition TEXT NOT NULL,
        replaced_by TEXT NOT NULL, time TEXT NOT NULL
    );
    """,
    """
    ALTER TABLE documents ADD COLUMN digest TEXT NOT NULL DEFAULT '';
    CREATE INDEX documents_without_digest ON documents (id) WHERE digest = '';
    """,
)

VECTORS: tuple[str, ...] = (
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;",
    "ALTER TABLE vectors ADD COLUMN weights BLOB NOT NULL DEFAULT x'';",  # of a sparse encoder
    "ALTER TABLE vectors ADD COLUMN digest BLOB NOT NULL DEFAULT x'';",  # older rows are encoded again
)

GRAPH: tuple[str, ...] = (
    """
    CREATE TABLE sources (
        id INTEGER PRIMARY KEY, document TEXT NOT NULL UNIQUE, collection TEXT NOT NULL, title TEXT NOT NULL,
        edition TEXT NOT NULL
    );
    CREATE TABLE concepts (
        id TEXT NOT NULL, source INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL,
        PRIMARY KEY (id, source)
    ) WITHOUT ROWID;
    CREATE TABLE names (
        folded TEXT NOT NULL, concept TEXT NOT NULL, source INTEGER NOT NULL, text TEXT NOT NULL,
        language TEXT NOT NULL, kind TEXT NOT NULL,
        PRIMARY KEY (folded, concept, source, text)
    ) WITHOUT ROWID;
    CREATE INDEX names_concept ON names (concept);
    CREATE TABLE relations (
        subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL, detail TEXT NOT NULL,
        source INTEGER NOT NULL,
        PRIMARY KEY (subject, predicate, object, detail, source)
    ) WITHOUT ROWID;
    CREATE INDEX relations_object ON relations (object);
    CREATE TABLE xrefs (
        concept TEXT NOT NULL, target TEXT NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (concept, target, source)
    ) WITHOUT ROWID;
    CREATE INDEX xrefs_target ON xrefs (target);
    CREATE TABLE totals (collection TEXT PRIMARY KEY, concepts INTEGER NOT NULL);
    """,
    """
    ALTER TABLE sources ADD COLUMN digest INTEGER;
    ALTER TABLE concepts ADD COLUMN digest INTEGER;
    ALTER TABLE names ADD COLUMN digest INTEGER;
    ALTER TABLE relations ADD COLUMN digest INTEGER;
    ALTER TABLE xrefs ADD COLUMN digest INTEGER;
    ALTER TABLE totals ADD COLUMN digest INTEGER;
    """,
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str], name: str) -> None:
    """Bring ``connection`` to the newest schema, each step in its own transaction.

    Raise ``Damaged`` if a newer localmed wrote the file.
    """
    version = _version(connection)
    if version > len(migrations):
        raise Damaged("library.newer_schema", name=name, version=version)
    for number, script in enumerate(migrations[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")  # the second of two processes finds it done
        try:
            if _version(connection) < number:
                for statement in _statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of ``script``; ``executescript`` would end the surrounding transaction."""
    statement = ""
    for part in script.split(";"):
        statement += part + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


SQLITE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)  # the latter if SQLite quotes bytes that are not text


def open_database(
    path: Path, migrations: Sequence[str], wal: bool = False, patience: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """Open (and create) ``path`` at the newest schema. ``wal`` is for files with concurrent readers that outlive
    generations.

    ``patience`` is the number of seconds to wait for another process's transaction.
    """
    try:
        if wal:  # readable by the owner only; an existing file keeps its rights, and SQLite's files beside it get them
            with suppress(OSError):  # SQLite reports it
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        require_file(path)
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
    except sqlite3.DatabaseError as error:
        raise translate_error(path, error) from None
    try:
        add_checksum_functions(connection)
        if wal:
            _use_wal(connection, patience)
            connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, migrations, path.name)
    except BaseException as error:
        connection.close()
        if isinstance(error, SQLITE_ERRORS):
            raise translate_error(path, error) from None
        raise
    return connection


def add_checksum_functions(connection: sqlite3.Connection) -> None:
    """Add the SQL functions of rows with checksums: ``checksum(...)``, and ``sound(sum, ...)``, which fails on a
    mismatch.
    """
    connection.create_function("checksum", -1, _checksum, deterministic=True)
    connection.create_function("sound", -1, _sound, deterministic=True)


def _checksum(*values: str | float) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def _sound(recorded: int | None, *values: str | float) -> bool:
    if recorded != _checksum(*values):
        raise ValueError("the checksum does not match")
    return True


def require_file(path: Path) -> None:
    """Raise SQLite's error for a pipe or device at ``path``, on which SQLite would wait for ever."""
    if path.exists() and not path.is_file():
        error = sqlite3.OperationalError(os.strerror(errno.ENODEV))
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error


def read_rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of ``query`` without writing; raise one of ``SQLITE_ERRORS``.

    In a read-only folder SQLite can open a WAL file only as immutable, and only if no process has it open.
    """
    closed = not _bytes(path.with_name(f"{path.name}-wal"))
    try:
        return _read_rows(path, "mode=ro", query)
    except sqlite3.OperationalError:
        if not closed:
            raise
        return _read_rows(path, "mode=ro&immutable=1", query)


def _bytes(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _read_rows(path: Path, mode: str, query: str) -> list[tuple[Any, ...]]:
    require_file(path)
    source = f"{path.absolute().as_uri()}?{mode}"
    with closing(sqlite3.connect(source, uri=True, timeout=BUSY_SECONDS)) as database:
        add_checksum_functions(database)
        return database.execute(query).fetchall()


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL; SQLite itself does not wait for the lock that this needs."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _busy(error: Exception) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part


def translate_error(path: Path, error: sqlite3.DatabaseError | UnicodeDecodeError) -> LocalmedError:
    """Translate one of ``SQLITE_ERRORS``: ``path`` is busy, not writable, or damaged."""
    if _busy(error):
        return Busy("library.writing", path=str(path))
    if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return LibraryError(
            "library.unwritable", path=str(path), error=Message("system.failed", (("detail", str(error)),))
        )
    return Damaged("library.database", path=str(path), error=reason(error))
