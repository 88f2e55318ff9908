"""The one-way move from an older version's files to ``site.sqlite``.

Older versions kept withdrawals in a ledger of JSON lines, access in a JSON file, stops and accounts in
``state.sqlite``, and their extents in ``audit.sqlite``. All of it is written to ``site.sqlite.new``, whose newest row
is a checkpoint of the state in force with the hashes of the moved files; then the file is renamed and the old ones are
removed. A move that is killed before the rename changes nothing; after it, the next start removes the old files.
Nothing is moved if a file was altered. An old file beside ``site.sqlite`` that is not a moved one is an error: an
earlier localmed is still running and writes it, or somebody has put it there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

from localmed.domain import digest
from localmed.domain.accounts import rights_of
from localmed.domain.errors import Damaged, LibraryError, LocalmedError, StateLost, reason
from localmed.library import generations, journal, layout
from localmed.library.journal import Entry, InForce, Stop, Withdrawal
from localmed.library.migrations import SQLITE_ERRORS, open_database, read_rows, translate_error
from localmed.library.state_migrations import BEFORE_JOURNAL, STATE
from localmed.process import files

MOVED = "moved from the files of before"  # outcome of the checkpoint
OLD = (layout.STATE, layout.AUDIT, layout.LEDGER, layout.LEDGER_KNOWN, layout.ACCESS, layout.ACCESS_OLDER)
ENDS = ("", "-wal")
_MOVED_ROW = f"SELECT entry FROM journal WHERE {journal.WITH_FACTS} AND instr(entry, '\"moved\": {{') > 0"  # noqa: S608


def adopt(data: Path) -> None:
    """Move the older version's files if there are any.

    Raise ``Damaged`` if one is lost or altered, ``LibraryError`` if the folder is not writable.
    """
    if not _present(data):
        return
    folder = os.open(data, os.O_RDONLY)
    try:
        files.lock(folder, wait=True)  # another process may be doing the same
        if not _present(data):
            return
        if not (data / layout.SITE).exists():
            _move(data)
        _remove(data)
    except SQLITE_ERRORS as error:
        raise translate_error(data / layout.SITE, error) from None
    except OSError as error:
        raise LibraryError("library.unwritable", path=str(data), error=reason(error)) from None
    finally:
        os.close(folder)


def is_moved(entry: Entry) -> bool:
    """Whether ``entry`` is the checkpoint of a move."""
    return entry.outcome == MOVED


def _present(data: Path) -> bool:
    return any((data / name).exists() for name in OLD)


def _hashes(data: Path) -> dict[str, str]:
    paths = [data / f"{name}{end}" for name in OLD for end in ENDS]
    return {path.name: _sha256(path.read_bytes()) for path in paths if path.is_file() and path.stat().st_size}


def _remove(data: Path) -> None:
    """Remove the older version's files; raise ``Damaged`` if one was not moved."""
    rows = read_rows(data / layout.SITE, _MOVED_ROW)
    moved = json.loads(rows[-1][0])["facts"]["moved"] if rows else {}
    for name, sha256 in _hashes(data).items():
        if moved.get(name) != sha256:
            raise Damaged("state.older_beside", path=str(data / name))
    for name in OLD:
        for end in (*ENDS, "-shm"):
            (data / f"{name}{end}").unlink(missing_ok=True)
    (data / layout.ACCESS_LOCK).unlink(missing_ok=True)
    files.sync(data)


def _move(data: Path) -> None:
    state_file, fresh = data / layout.STATE, data / f"{layout.SITE}.new"
    if generations.numbers(data) and not (state_file.exists() and state_file.stat().st_size):
        raise StateLost("state.lost", path=str(state_file))
    for end in (*ENDS, "-shm"):
        fresh.with_name(f"{fresh.name}{end}").unlink(missing_ok=True)
    moved, log = _hashes(data), _Log(data)
    _copy(state_file, fresh)
    with closing(open_database(fresh, STATE[:BEFORE_JOURNAL])) as state:
        stopped = [Stop(*row) for row in state.execute("SELECT kind, name, reason, user, time FROM stops")]
        if state.execute("SELECT (SELECT sum FROM stops_sum) IS NOT (SELECT sum FROM stops_now)").fetchone()[0]:
            raise Damaged("state.older", path=str(state_file))
        lines = sorted(json.dumps(astuple(one), ensure_ascii=False) for one in stopped)
        ((changes,),) = state.execute("SELECT changes FROM stops_sum").fetchall()
        log.require(state_file, "stops", f"{changes} {_sha256(chr(10).join(lines).encode())}")
    with closing(open_database(fresh, STATE)) as state:
        state.execute("BEGIN IMMEDIATE")
        state.executemany("INSERT INTO journal (id, entry, digest, mac) VALUES (?, ?, ?, ?)", log.rows)
        accounts = journal.accounts_digest(state.execute(journal.ACCOUNTS).fetchall())
        log.require(state_file, "accounts", accounts, counted=False)
        query = "SELECT user, role, groups, disabled FROM accounts"
        rights = {row[0]: rights_of(row[1], json.loads(row[2]), bool(row[3])) for row in state.execute(query)}
        now = InForce(withdrawals=_read_ledger(data, log), access=_read_access(data, log), stops=tuple(stopped),
                      accounts=accounts, rights=rights, generation=log.generation)  # fmt: skip
        facts = now.facts() | {"moved": moved}
        entry = Entry(journal.now(), "localmed", "upgrade", "journal", MOVED, facts=facts)
        number, made = journal.append(state, data, entry)
        state.execute("COMMIT")
    files.sync(fresh)
    files.replace(data / layout.IN_FORCE, journal.copy_bytes(now.after(number, made, made.digest())))
    fresh.replace(data / layout.SITE)
    files.sync(data)


def _copy(source: Path, fresh: Path) -> None:
    """Copy a database with its pending log; make an empty one if there is none."""
    with closing(sqlite3.connect(fresh)) as target:
        if source.exists():
            with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as before:
                before.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
    fresh.chmod(0o600)
    if source.exists():
        state = source.stat()
        fresh.chmod(state.st_mode & 0o777)
        with suppress(OSError):  # this may run as another account than the server's
            os.chown(fresh, state.st_uid, state.st_gid)


class _Log:
    """The older audit log, and the extents of the other files according to it and to the manifest being served."""

    def __init__(self, data: Path) -> None:
        self.path, self.ledger, self.access, self.generation = data / layout.AUDIT, "", "", 0
        self.rows: list[tuple[int, str, str, str]] = []
        audited, access_needed = "", False
        with suppress(LocalmedError):
            manifest = generations.served_manifest(data)
            self.ledger, self.access, self.generation = manifest.ledger, manifest.access, manifest.number
            audited, access_needed = manifest.audit, manifest.format >= 2
        self.access_needed = access_needed
        if self.path.exists():
            columns = [row[1] for row in read_rows(self.path, "PRAGMA table_info(entries)")]
            mac = "mac" if "mac" in columns else "''"  # the first logs had none
            query = f"SELECT id, entry, digest, {mac} FROM entries ORDER BY id"  # noqa: S608
            self.rows = read_rows(self.path, query)
        if audited and audited not in {row[2] for row in self.rows}:
            raise Damaged("state.older", path=str(self.path))

    def noted(self, kind: str) -> list[str]:
        """Return the recorded extents of the file of ``kind`` ("count digest"), newest first, up to the last completed
        change.

        Each extent was recorded when a change was planned, and again when it was made; a planned one may or may not be
        real.
        """
        found: list[str] = []
        for _, text, *_ in reversed(self.rows):
            if f"; anchor {kind} " in text:
                outcome = json.loads(text)["outcome"]
                found.append(outcome.rpartition(f"; anchor {kind} ")[2])
                if not outcome.startswith("planned"):
                    break
        return found

    def require(self, path: Path, kind: str, found: str, counted: bool = True) -> None:
        """Raise ``Damaged`` unless ``found`` is a recorded extent, if there is any."""
        noted = self.noted(kind)
        known = noted if counted else [one.partition(" ")[2] for one in noted]
        if noted and found not in known:
            raise Damaged("state.older", path=str(path))


def _read_ledger(data: Path, log: _Log) -> dict[tuple[str, str], Withdrawal]:
    path = data / layout.LEDGER
    if not path.exists():
        if (data / layout.CURRENT).is_symlink():
            raise Damaged("state.older", path=str(path))
        return {}
    content = files.own_bytes(path)
    newest: dict[tuple[str, str], Withdrawal] = {}
    before, chained = "", False
    try:
        *lines, rest = content.split(b"\n")
        if rest:
            raise ValueError
        for line in lines:
            values: dict[str, Any] = json.loads(line)
            recorded = values.pop("digest")
            if digest(json.dumps(values, sort_keys=True)) != recorded:
                raise ValueError
            previous = values.pop("previous", "")
            if (previous or chained) and previous != before:
                raise ValueError
            before, chained = recorded, bool(previous) or chained
            made = Withdrawal(**values)
            newest.pop((made.document, made.content), None)
            newest[made.document, made.content] = made
        with suppress(FileNotFoundError):
            _require_prefix(content, files.own_bytes(data / layout.LEDGER_KNOWN).decode())
        if log.ledger:
            _require_prefix(content, log.ledger)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Damaged("state.older", path=str(path)) from None
    log.require(path, "ledger", f"{len(content)} {_sha256(content)}")
    return newest


def _require_prefix(content: bytes, stated: str) -> None:
    """Raise ``ValueError`` unless ``content`` begins with the bytes whose count and SHA-256 ``stated`` gives."""
    size, _, sha256 = stated.partition(" ")
    if len(content) < int(size) or _sha256(content[: int(size)]) != sha256:
        raise ValueError


def _read_access(data: Path, log: _Log) -> dict[str, frozenset[str]]:
    path = data / layout.ACCESS if (data / layout.ACCESS).exists() else data / layout.ACCESS_OLDER
    if not path.exists():
        if log.noted("access") or log.access_needed:
            raise Damaged("state.older", path=str(path))
        return {}
    changes, recorded = 0, ""
    try:
        values = json.loads(files.own_bytes(path))
        if "format" in values:
            recorded, changes = values.pop("digest", ""), values.get("changes", 0)
            now = _sha256(json.dumps(values, sort_keys=True).encode())
            if values["format"] >= 3 and recorded != now:
                raise ValueError
            values = values["collections"]
        found = {name: frozenset(map(str, groups)) for name, groups in values.items()}
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Damaged("state.older", path=str(path)) from None
    log.require(path, "access", f"{changes} {recorded}")
    stated = int(log.access.partition(" ")[0] or 0)
    if changes < stated or (changes == stated and log.access and log.access != f"{changes} {recorded}"):
        raise Damaged("state.older", path=str(path))
    return found


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
