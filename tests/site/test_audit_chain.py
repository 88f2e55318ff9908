"""The audit log's keyed chain: whatever somebody without the key does to it is seen, erasure is none of that."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from localmed.domain import digest
from localmed.domain.errors import InputError
from localmed.library import journal
from localmed.library.journal import Entry, Head, entry_from, head_of
from localmed.site import audit
from localmed.site.audit import Audit, entry_of

ROWS = 12
TRIES = 60
Database = sqlite3.Connection


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with closing(Audit(tmp_path)) as log:
        for number in range(ROWS):
            log.add(entry_of("ask", f"{number} statements", "answered", user=f"user{number % 3}"))
    return tmp_path


def faults(data: Path, head: Head | None = None) -> list[str]:
    with closing(Audit(data)) as log:
        return [fault.code for fault in log.verify(head)]


def numbers(database: Database) -> list[int]:
    return [number for (number,) in database.execute("SELECT id FROM journal ORDER BY id")]


def flip(database: Database, dice: random.Random) -> None:
    """A character of a row, of any column."""
    number, column = dice.choice(numbers(database)), dice.choice(("entry", "digest", "mac"))
    ((text,),) = database.execute(f"SELECT {column} FROM journal WHERE id = ?", (number,))
    place = dice.randrange(len(text))
    other = dice.choice([letter for letter in "0123456789abcdef" if letter != text[place]])
    changed = text[:place] + other + text[place + 1 :]
    database.execute(f"UPDATE journal SET {column} = ? WHERE id = ?", (changed, number))


def delete(database: Database, dice: random.Random) -> None:
    database.execute("DELETE FROM journal WHERE id = ?", (dice.choice(numbers(database)[:-1]),))


def reorder(database: Database, dice: random.Random) -> None:
    first, second = dice.sample(numbers(database), 2)
    for before, after in ((first, -1), (second, first), (-1, second)):
        database.execute("UPDATE journal SET id = ? WHERE id = ?", (after, before))


def chained_anew(database: Database, rows: list[tuple[int, Entry, str]]) -> None:
    """Write rows with every digest right, as somebody who knows the program and not the key can."""
    database.execute("DELETE FROM journal")
    previous = ""
    for number, entry, mac in rows:
        made = replace(entry, previous=previous)
        previous = made.digest()
        database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (number, made.text(), previous, mac))


def rows_of(database: Database) -> list[tuple[int, Entry, str]]:
    rows = database.execute("SELECT id, entry, mac FROM journal ORDER BY id")
    return [(number, entry_from(text), mac) for number, text, mac in rows]


def recompute(database: Database, dice: random.Random) -> None:
    """Another actor in an entry, and both chains anew, the macs under a key of one's own or left out."""
    rows, place = rows_of(database), dice.randrange(ROWS)
    number, entry, mac = rows[place]
    rows[place] = (number, replace(entry, actor="somebody else"), mac)
    chained_anew(database, rows)
    previous, own = "", dice.choice([b"x" * 32, None])
    for row_number, recorded in database.execute("SELECT id, digest FROM journal ORDER BY id").fetchall():
        previous = journal.mac(own, row_number, recorded, previous) if own else ""
        database.execute("UPDATE journal SET mac = ? WHERE id = ?", (previous, row_number))


def drop_and_recompute(database: Database, dice: random.Random) -> None:
    """A row less, digests anew, the macs that were there."""
    rows = rows_of(database)
    del rows[dice.randrange(ROWS - 1)]
    chained_anew(database, rows)


def put_in(database: Database, dice: random.Random) -> None:
    """A row more at the end, with a right digest and any mac."""
    rows = rows_of(database)
    chained_anew(database, [*rows, (ROWS + 1, rows[0][1], dice.choice(["", rows[-1][2], "0" * 64]))])


def empty(database: Database, dice: random.Random) -> None:
    """Say that a row was erased which nobody erased."""
    number, entry, _ = dice.choice(rows_of(database))
    left = replace(entry, actor="", subject="", salt="", erased=True)
    database.execute("UPDATE journal SET entry = ? WHERE id = ?", (left.text(), number))


@pytest.mark.parametrize("tamper", [flip, delete, reorder, recompute, drop_and_recompute, put_in, empty])
@pytest.mark.slow
def test_what_is_done_without_the_key_is_seen_every_time(
    data: Path, tamper: Callable[[Database, random.Random], None]
) -> None:
    assert faults(data) == []
    whole = (data / "site.sqlite").read_bytes()
    for seed in range(TRIES):
        (data / "site.sqlite").write_bytes(whole)
        with closing(sqlite3.connect(data / "site.sqlite", isolation_level=None)) as database:
            tamper(database, random.Random(seed))
        assert faults(data), (tamper.__name__, seed)


def test_a_tail_cut_behind_a_head_that_was_taken_away_is_seen_every_time(data: Path) -> None:
    with closing(Audit(data)) as log:
        head = log.head()
    assert head
    assert head_of(str(head)) == head
    whole = (data / "site.sqlite").read_bytes()
    for cut in range(1, ROWS + 1):
        (data / "site.sqlite").write_bytes(whole)
        with closing(sqlite3.connect(data / "site.sqlite", isolation_level=None)) as database:
            database.execute("DELETE FROM journal WHERE id > ?", (ROWS - cut,))
        assert "doctor.audit_head" in faults(data, head), cut
        with closing(Audit(data)) as log:
            for number in range(cut):
                log.add(entry_of("ask", f"{number} statements", "answered", user="other"))
        assert "doctor.audit_head" in faults(data, head), f"{cut} written anew with the key"


def test_an_erased_person_is_gone_and_the_chain_holds(data: Path) -> None:
    with closing(Audit(data)) as log:
        assert log.erase("user1", "safety") == 4
        assert log.verify(log.head()) == []
        assert not [entry for entry in log.entries() if "user1" in asdict(entry).values()]
        assert log.erase("user1", "safety") == 0
        assert log.erase("", "safety") == 0
    with closing(sqlite3.connect(data / "site.sqlite")) as database:
        rows = database.execute("SELECT entry, digest FROM journal").fetchall()
    erased = [(json.loads(text), recorded) for text, recorded in rows if json.loads(text)["erased"]]
    assert len(erased) == 4
    for values, recorded in erased:
        entry = entry_from(json.dumps(values))
        assert (entry.salt, entry.actor) == ("", "")
        guess = replace(entry, actor="user1", subject="1 statements", erased=False)
        assert guess.digest() != recorded, "without its salt nobody can try who it was"


def test_what_is_left_of_an_erased_entry_cannot_be_altered(data: Path) -> None:
    with closing(Audit(data)) as log:
        log.erase("user1", "safety")
    with closing(sqlite3.connect(data / "site.sqlite", isolation_level=None)) as database:
        number, entry, _ = next(row for row in rows_of(database) if row[1].erased)
        text = replace(entry, time="2001-01-01T00:00:00+00:00").text()
        database.execute("UPDATE journal SET entry = ? WHERE id = ?", (text, number))
    assert faults(data) == ["doctor.audit_erased"]


def test_a_lost_key_is_told_and_not_made_up_for(data: Path) -> None:
    kept = (data / journal.KEY).read_bytes()
    (data / journal.KEY).unlink()
    with closing(Audit(data)) as log:
        log.append("ask", "more", "answered")
    assert faults(data) == ["doctor.audit_no_key"]
    assert not (data / journal.KEY).exists()
    (data / journal.KEY).write_bytes(kept)
    assert faults(data) == ["doctor.audit_forged"], "the entry that was written meanwhile"


def test_the_key_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(journal.ENVIRONMENT, str(tmp_path / "elsewhere.key"))
    with closing(Audit(tmp_path / "data")) as log:
        log.append("ask", "1", "answered")
        assert log.verify() == []
    assert not (tmp_path / "data" / journal.KEY).exists()
    assert (tmp_path / "elsewhere.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", ["", "x", "localmed-audit-head x y z", "localmed-audit-head 1 2", digest("x")])
def test_what_is_no_head_is_refused(line: str) -> None:
    with pytest.raises(InputError):
        head_of(line)


def test_the_newest_entries_are_verified_from_where_the_last_look_ended(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[str] = []

    def looked(text: str) -> Entry:
        looked_at.append(text)
        return entry_from(text)

    monkeypatch.setattr(journal, "readable", looked)
    with closing(Audit(data)) as log:
        found, known = log.verify_newest(None)
        assert (found, known, len(looked_at)) == ([], log.head(), 2 * ROWS)
        looked_at.clear()
        assert log.verify_newest(known) == ([], known)
        assert not looked_at
        log.append("ask", "1 statements", "answered")
        assert log.verify_newest(known) == ([], log.head())
        assert len(looked_at) == 2


def test_of_a_long_log_a_page_verifies_the_newest_entries(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(data / "site.sqlite")) as database, database:
        database.execute("UPDATE journal SET entry = replace(entry, 'answered', 'abstained') WHERE id = 2")
    with closing(Audit(data)) as log:
        assert [fault.code for fault in log.verify_newest(None)[0]] == ["doctor.audit_altered"]
        monkeypatch.setattr(audit, "NEWEST", 5)
        assert log.verify_newest(None) == ([], log.head())


@pytest.mark.parametrize(
    ("number", "column"), [(ROWS, "digest"), (ROWS, "mac"), (ROWS + 1, "entry"), (ROWS + 2, "mac")]
)
def test_what_was_altered_since_the_last_look_is_seen_and_not_forgotten(data: Path, number: int, column: str) -> None:
    with closing(Audit(data)) as log:
        known = log.head()
        for _ in range(3):
            log.append("ask", "1 statements", "answered")
        with closing(sqlite3.connect(data / "site.sqlite")) as database, database:
            (before,) = database.execute(f"SELECT {column} FROM journal WHERE id = ?", (number,)).fetchone()
            after = before.replace("1 stat", "2 stat") if column == "entry" else before[:-1] + "01"[before[-1] == "0"]
            assert after != before
            database.execute(f"UPDATE journal SET {column} = ? WHERE id = ?", (after, number))
        for _ in range(2):
            found, known = log.verify_newest(known)
            assert found


def test_an_erasure_breaks_no_later_look(data: Path) -> None:
    with closing(Audit(data)) as log:
        known = log.head()
        log.add(entry_of("ask", "1 statements", "answered", user="user1"))
        log.erase("user1")
        assert log.verify_newest(known) == ([], log.head())
        assert log.verify_newest(None) == ([], log.head())
