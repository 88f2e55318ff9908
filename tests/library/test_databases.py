"""The SQLite files: migrations from every version, the vector cache, the import log and the audit chain."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localmed.domain import Message, message
from localmed.domain.errors import Busy, Damaged
from localmed.library import migrations
from localmed.library.catalogue import Catalogue
from localmed.library.migrations import GRAPH, LIBRARY, VECTORS, migrate, open_database
from localmed.library.state import FILE, Quarantined, State, selected
from localmed.library.state_migrations import STATE
from localmed.library.vectors import VectorCache
from localmed.site.audit import Audit, entry_of
from tests.fakes import HashedWords
from tests.words import words

STEPS = (
    "CREATE TABLE t (a TEXT DEFAULT 'x;y'); CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t WHERE a = 'z'; END;",
    "ALTER TABLE t ADD COLUMN b TEXT NOT NULL DEFAULT 'b'; UPDATE t SET b = a;",
    "CREATE TABLE u (t TEXT); INSERT INTO u SELECT b FROM t;",
)


def schema(database: sqlite3.Connection) -> list[str]:
    return [row[0] for row in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")]


@pytest.mark.parametrize("version", range(len(STEPS) + 1))
def test_every_older_version_becomes_the_newest(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.sqlite"
    old = open_database(path, STEPS[:version])
    if version:
        old.execute("INSERT INTO t (a) VALUES ('kept')")
    old.close()
    for _ in range(2):
        database = open_database(path, STEPS)
        fresh = open_database(tmp_path / "fresh.sqlite", STEPS)
        assert schema(database) == schema(fresh)
        assert database.execute("PRAGMA user_version").fetchone() == (3,)
        if version:
            assert database.execute("SELECT a FROM t").fetchall() == [("kept",)]
        database.close()
        fresh.close()


@pytest.mark.parametrize("script", [LIBRARY, STATE, VECTORS])
def test_the_real_ones_work_on_an_empty_file(tmp_path: Path, script: tuple[str, ...]) -> None:
    database = open_database(tmp_path / "x.sqlite", script)
    assert database.execute("PRAGMA user_version").fetchone() == (len(script),)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


GONE = ("stops", "stops_sum", "accounts_sum")  # moved into the journal (``library/older.py``)
ROWS = {"INTEGER": 1, "BLOB": b"0", "TEXT": "{}", "REAL": 1.0}  # by the type of a column
OLDER = [
    pytest.param(script, version, id=f"{name} {version}")
    for name, script in {"library": LIBRARY, "state": STATE, "vectors": VECTORS, "graph": GRAPH}.items()
    for version in range(1, len(script))
]


def tables(database: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [row[0] for row in database.execute(query)]


@pytest.mark.parametrize(("script", "version"), OLDER)
def test_rows_of_every_version_there_was_are_kept(tmp_path: Path, script: tuple[str, ...], version: int) -> None:
    with closing(open_database(tmp_path / "x.sqlite", script[:version])) as old:
        names = [name for name in tables(old) if name not in GONE]
        for name in names:
            row = [ROWS[column[2] or "BLOB"] for column in old.execute(f"PRAGMA table_info({name})")]
            old.execute(f"INSERT OR REPLACE INTO {name} VALUES ({','.join('?' * len(row))})", row)
    with closing(open_database(tmp_path / "x.sqlite", script)) as newest, closing(
        open_database(tmp_path / "fresh.sqlite", script)
    ) as fresh:  # fmt: skip
        assert schema(newest) == schema(fresh)
        assert {name: newest.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names} == dict.fromkeys(
            names, 1
        )


def test_going_back_to_a_version_that_knows_less_loses_no_audit_row(tmp_path: Path) -> None:
    with closing(Audit(tmp_path)) as log:
        log.add(entry_of("import", "ward", "finished"))
    path = tmp_path / FILE
    open_database(path, (*STATE, "ALTER TABLE journal ADD COLUMN later TEXT;")).close()  # the version after this one
    with pytest.raises(Damaged, match="newer localmed"):
        Audit(tmp_path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM journal").fetchone() == (1,)


def test_a_step_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    database = open_database(tmp_path / "x.sqlite", STEPS[:1])
    with pytest.raises(sqlite3.OperationalError):
        migrate(database, (STEPS[0], "CREATE TABLE half (x); SELECT nonsense FROM nowhere;"), "x")
    assert database.execute("PRAGMA user_version").fetchone() == (1,)
    assert not any("half" in table for table in schema(database))
    assert not database.in_transaction
    database.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    open_database(tmp_path / "x.sqlite", STEPS).close()
    with pytest.raises(Damaged, match="newer localmed"):
        open_database(tmp_path / "x.sqlite", STEPS[:2])
    database = sqlite3.connect(tmp_path / "c.sqlite")
    database.execute(f"PRAGMA user_version = {len(LIBRARY) + 1}")
    database.close()
    with pytest.raises(Damaged, match="schema"):
        Catalogue(tmp_path / "c.sqlite")
    with pytest.raises(Damaged, match="newer localmed"):
        Catalogue(tmp_path / "c.sqlite", writable=True)


def test_what_is_no_database_is_damaged_and_what_is_locked_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database at all, but long enough to be read as one" * 20)
    with pytest.raises(Damaged, match="cannot be read"):
        open_database(tmp_path / "x.sqlite", STEPS)
    with pytest.raises(Damaged):
        Catalogue(tmp_path / "x.sqlite")
    holder = sqlite3.connect(tmp_path / "y.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(migrations, "BUSY_SECONDS", 0.1)
    with pytest.raises(Busy):
        open_database(tmp_path / "y.sqlite", STEPS)
    holder.close()


def run_together(code: str, *arguments: str) -> None:
    """Run ``code`` in four processes that begin at the same moment."""
    waiting = f"import sys; sys.stdin.readline()\n{code}"
    command = [sys.executable, "-c", waiting, *arguments]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    failures = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0] * 4, failures


def test_four_processes_may_make_the_same_file(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from localmed.library.state import State\n"
        "for number in range(15): State(Path(sys.argv[1]) / str(number)).close()"
    )
    run_together(code, str(tmp_path))


def test_a_log_that_another_process_takes_away_while_one_looks_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, log = tmp_path / "site.sqlite", tmp_path / "site.sqlite-wal"
    with closing(open_database(file, STATE, wal=True)):
        pass
    log.write_bytes(b"of another process")
    look = Path.stat

    def last_look(path: Path, **how: bool) -> os.stat_result:
        seen = look(path, **how)
        if path == log:
            log.unlink()
        return seen

    monkeypatch.setattr(Path, "stat", last_look)
    assert migrations.read_rows(file, "SELECT count(*) FROM quarantine") == [(0,)]


# --- vectors ---------------------------------------------------------------------------------------------------------


def test_a_vector_is_encoded_once(tmp_path: Path) -> None:
    encoder = HashedWords()
    cache = VectorCache(tmp_path, encoder)
    first = cache.encode(["one", "two", "one"])
    assert encoder.encoded == ["one", "two"]
    assert np.array_equal(first[0], first[2])
    cache.close()
    again = VectorCache(tmp_path, encoder)
    many = [f"text {number}" for number in range(1200)]
    assert np.array_equal(again.encode(["two", *many, "one"])[[-1, 0]], first[:2])
    assert again.encoded == 1200
    assert len(encoder.encoded) == 1202
    expected = encoder.encode(many, "passage")
    assert np.abs(again.encode(many) - expected).max() < 1e-3
    again.close()


def test_encoders_never_mix(tmp_path: Path) -> None:
    one, two = HashedWords("1"), HashedWords("2")
    for encoder in (one, two, one):
        cache = VectorCache(tmp_path, encoder)
        cache.encode(["text"])
        cache.close()
    assert (one.encoded, two.encoded) == (["text"], ["text"])


def test_vectors_survive_kill(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal; from pathlib import Path; from tests.fakes import HashedWords\n"
        "from localmed.library.vectors import VectorCache\n"
        "VectorCache(Path(sys.argv[1]), HashedWords()).encode(['one', 'two']); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=False)
    assert ran.returncode == -9
    encoder = HashedWords()
    cache = VectorCache(tmp_path, encoder)
    cache.encode(["one", "two", "three"])
    assert encoder.encoded == ["three"]
    cache.close()


def test_a_damaged_cache_costs_time_only(tmp_path: Path) -> None:
    encoder = HashedWords()
    path = tmp_path / f"{encoder.identity.slug}.sqlite"
    path.write_bytes(b"damaged" * 1000)
    cache = VectorCache(tmp_path, encoder)
    first = cache.encode(["one"])
    cache._database.execute("UPDATE vectors SET vector = x'00'")
    assert np.array_equal(cache.encode(["one"]), first)
    assert cache.encoded == 2
    assert np.array_equal(cache.encode(["one"]), first)
    assert cache.encoded == 2
    cache.close()


# --- state and audit -------------------------------------------------------------------------------------------------


def test_quarantine_is_kept_by_file(tmp_path: Path) -> None:
    def refused(path: str, line: int = 0) -> Quarantined:
        place = message("reader.line", number=line) if line else None
        return Quarantined("ward", path, place, "00", "recipe", message("reader.json_broken", problem="{", column=3))

    with State(tmp_path) as state:
        state.requarantine("ward", "a", [refused("a", 1), refused("a", 2)])
        state.requarantine("ward", "b", [refused("b")])
        state.requarantine("ward", "a", [refused("a", 3)])
    with State(tmp_path) as state:
        kept = state.quarantined("ward")
        assert [replace(entry, time="") for entry in kept] == [refused("a", 3), refused("b")]
        assert all(entry.time for entry in state.quarantined())
        assert state.quarantined("other") == []


def test_what_an_older_version_refused_is_shown_in_its_words(tmp_path: Path) -> None:
    with State(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "site.sqlite")) as database, database:
        row = ("ward", "a", "line 1", "00", "recipe", "a.txt: [1] is no text. Check it", "2026-01-01")
        database.execute("INSERT INTO quarantine VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    with State(tmp_path) as state:
        (kept,) = state.quarantined()
        assert words((kept.place, kept.reason)) == ("line 1", "a.txt: [1] is no text. Check it")
        state.requarantine("ward", "a", [])
        assert state.quarantined() == []


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    log = Audit(tmp_path)
    for number in range(5):
        log.append("ask", f"{number} statements", "answered", "0001")
    assert log.verify() == []
    assert [entry.subject for entry in log.entries()] == [f"{number} statements" for number in range(5)]
    log.close()
    return tmp_path


def after(data: Path, statement: str) -> list[Message]:
    database = sqlite3.connect(data / "site.sqlite")
    database.execute(statement)
    database.commit()
    database.close()
    log = Audit(data)
    try:
        return log.verify()
    finally:
        log.close()


def test_an_altered_entry_breaks_the_chain(audit: Path) -> None:
    altered = "UPDATE journal SET entry = replace(entry, '2 statements', '9 statements') WHERE id = 3"
    assert after(audit, altered) == [message("doctor.audit_altered", number=3)]


@pytest.mark.parametrize("row", [1, 3])
def test_a_deleted_entry_breaks_the_chain(audit: Path, row: int) -> None:
    faults = [message(code, number=row + 1) for code in ("doctor.audit_before", "doctor.audit_forged")]
    assert after(audit, f"DELETE FROM journal WHERE id = {row}") == faults


def test_an_altered_entry_with_a_new_digest_breaks_the_chain(audit: Path) -> None:
    assert after(audit, "UPDATE journal SET entry = (SELECT entry FROM journal WHERE id = 1), "
                        "digest = (SELECT digest FROM journal WHERE id = 1) WHERE id = 2")  # fmt: skip


def test_four_processes_keep_one_chain(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from localmed.site.audit import Audit\n"
        "log = Audit(Path(sys.argv[1]))\n"
        "for number in range(25): log.append('ask', str(number), 'answered')"
    )
    run_together(code, str(tmp_path))
    log = Audit(tmp_path)
    assert len(log.entries()) == 100
    assert log.verify() == []
    log.close()


def test_a_name_in_the_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    """SQLite quotes it in its error, and Python fails on that before it has an error of SQLite's."""
    with State(tmp_path) as state:
        state.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = tmp_path / "site.sqlite"
    content = path.read_bytes()
    for place in range(content.index(b"CREATE TABLE holds"), content.index(b"CREATE TABLE holds") + 22):
        path.write_bytes(content[:place] + b"\xf3" + content[place + 1 :])
        for look in (lambda: selected(tmp_path, "SELECT * FROM holds"), lambda: State(tmp_path)):
            with suppress(Damaged):
                opened = look()
                if isinstance(opened, State):
                    opened.close()
