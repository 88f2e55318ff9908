"""The SQLite files: migrations from every version, quarantine, the audit chain (vectors: ``test_vectors.py``)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import Busy, Damaged
from localmed.library import migrations
from localmed.library.catalogue import Catalogue
from localmed.library.migrations import GRAPH, LIBRARY, VECTORS, migrate, open_database
from localmed.library.state import Quarantined, connect, quarantined, requarantine, rows, selected
from localmed.library.state_migrations import STATE
from localmed.site.audit import Audit
from tests.words import words

STEPS = ("CREATE TABLE t (a TEXT DEFAULT 'x;y')", "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT 'b'")
GONE = ("stops", "stops_sum", "accounts_sum", "imports")  # into the journal (``library/older.py``) or unread
ROWS = {"INTEGER": 1, "BLOB": b"0", "TEXT": "{}", "REAL": 1.0}  # by the type of a column
OLDER = [
    pytest.param(script, version, id=f"{name} {version}")
    for name, script in {"library": LIBRARY, "state": STATE, "vectors": VECTORS, "graph": GRAPH}.items()
    for version in range(1, len(script))
]


def schema(database: sqlite3.Connection) -> list[str]:
    return [row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")]


@pytest.mark.parametrize(("script", "version"), OLDER)
def test_rows_of_every_version_there_was_are_kept(tmp_path: Path, script: tuple[str, ...], version: int) -> None:
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    with closing(open_database(tmp_path / "x.sqlite", script[:version])) as old:
        names = [name for (name,) in old.execute(tables) if name not in GONE]
        for name in names:
            row = [ROWS[column[2] or "BLOB"] for column in old.execute(f"PRAGMA table_info({name})")]
            old.execute(f"INSERT OR REPLACE INTO {name} VALUES ({','.join('?' * len(row))})", row)
    for _ in range(2):
        with closing(open_database(tmp_path / "x.sqlite", script)) as newest, closing(
            open_database(tmp_path / "fresh.sqlite", script)
        ) as fresh:  # fmt: skip
            assert schema(newest) == schema(fresh)
            counts = {name: newest.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
            assert counts == dict.fromkeys(names, 1)


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "x.sqlite", STEPS[:1])) as database:
        with pytest.raises(sqlite3.OperationalError):
            migrate(database, (STEPS[0], "CREATE TABLE half (x); SELECT nonsense FROM nowhere;"), "x")
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert not any("half" in table for table in schema(database))
        assert not database.in_transaction


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    open_database(tmp_path / "x.sqlite", STEPS).close()
    with pytest.raises(Damaged, match="newer localmed"):
        open_database(tmp_path / "x.sqlite", STEPS[:1])
    with closing(sqlite3.connect(tmp_path / "c.sqlite")) as database:
        database.execute(f"PRAGMA user_version = {len(LIBRARY) + 1}")
    with pytest.raises(Damaged, match="schema"):
        Catalogue(tmp_path / "c.sqlite")
    with pytest.raises(Damaged, match="newer localmed"):
        Catalogue(tmp_path / "c.sqlite", writable=True)


def test_what_is_no_database_is_damaged_and_what_is_locked_is_busy(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database at all, but long enough to be read as one" * 20)
    with pytest.raises(Damaged, match="cannot be read"):
        open_database(tmp_path / "x.sqlite", STEPS)
    with pytest.raises(Damaged):
        Catalogue(tmp_path / "x.sqlite")
    with closing(sqlite3.connect(tmp_path / "y.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Busy):
            open_database(tmp_path / "y.sqlite", STEPS, patience=0.1)


def test_a_log_that_another_process_takes_away_while_one_looks_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, log = tmp_path / "site.sqlite", tmp_path / "site.sqlite-wal"
    open_database(file, STATE, wal=True).close()
    log.write_bytes(b"of another process")
    look = Path.stat

    def last_look(path: Path, **how: bool) -> os.stat_result:
        seen = look(path, **how)
        if path == log:
            log.unlink()
        return seen

    monkeypatch.setattr(Path, "stat", last_look)
    assert migrations.read_rows(file, "SELECT count(*) FROM quarantine") == [(0,)]


def test_a_name_in_the_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    """SQLite quotes it in its error, and Python fails on that before it has an error of SQLite's."""
    with rows(tmp_path) as state:
        state.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = tmp_path / "site.sqlite"
    content = path.read_bytes()
    for place in range(content.index(b"CREATE TABLE holds"), content.index(b"CREATE TABLE holds") + 22):
        path.write_bytes(content[:place] + b"\xf3" + content[place + 1 :])
        with suppress(Damaged):
            selected(tmp_path, "SELECT * FROM holds")
        with suppress(Damaged):
            connect(tmp_path).close()


def test_quarantine_is_kept_by_file(tmp_path: Path) -> None:
    def refused(path: str, line: int = 0) -> Quarantined:
        place = message("reader.line", number=line) if line else None
        return Quarantined("ward", path, place, "00", "recipe", message("reader.json_broken", problem="{", column=3))

    with rows(tmp_path) as state:
        requarantine(state, "ward", "a", [refused("a", 1), refused("a", 2)])
        requarantine(state, "ward", "b", [refused("b")])
        requarantine(state, "ward", "a", [refused("a", 3)])
        kept = quarantined(state, "ward")
        assert [replace(entry, time="") for entry in kept] == [refused("a", 3), refused("b")]
        assert all(entry.time for entry in quarantined(state))
        row = ("clinic", "a", "line 1", "00", "recipe", "a.txt: [1] is no text. Check it", "2026-01-01")
        state.execute("INSERT INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        (older,) = quarantined(state, "clinic")  # in the words of the version that refused it
        assert words((older.place, older.reason)) == ("line 1", "a.txt: [1] is no text. Check it")
        requarantine(state, "clinic", "a", [])
        assert quarantined(state, "clinic") == []


# --- the audit chain: more in tests/site/test_audit.py ----------------------------------------------------------


def test_four_processes_may_make_the_same_files_and_keep_one_chain(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from localmed.site.audit import Audit, entry_of\n"
        "sys.stdin.readline()\n"
        "for number in range(15):\n"
        "    with Audit(Path(sys.argv[1]) / str(number)) as log:\n"
        "        for _ in range(4): log.add(entry_of('ask', str(number), 'answered'))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    failures = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0] * 4, failures
    for number in range(15):
        with Audit(tmp_path / str(number)) as log:
            assert (len(log.entries()), log.verify()) == (16, [])
