"""The audit log: its keyed chain shows whatever is done without the key; what waits is entered later."""

from __future__ import annotations

import ctypes
import json
import random
import resource
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Answer, SearchFilter, digest
from localmed.domain.errors import Busy, InputError, LibraryError
from localmed.library import journal
from localmed.library.in_force import in_force
from localmed.library.journal import Entry, Head, entry_from, head_of
from localmed.process.hooks import Hooks
from localmed.site import audit, changes
from localmed.site.audit import Audit, entry_of
from localmed.site.session import Session
from localmed.workflows.recording import Recording, replay
from tests.cli.conftest import COMMAND, environment
from tests.fakes import HashedWords, documents, import_into, opened, write
from tests.words import phrase

ROWS = 12
TRIES = 60
Database = sqlite3.Connection


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with Audit(tmp_path) as log:
        for number in range(ROWS):
            log.add(entry_of("ask", f"{number} statements", "answered", user=f"user{number % 3}"))
    return tmp_path


def faults(data: Path, head: Head | None = None) -> list[str]:
    with Audit(data) as log:
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
    with Audit(data) as log:
        head = log.head()
    assert head
    assert head_of(str(head)) == head
    whole = (data / "site.sqlite").read_bytes()
    for cut in range(1, ROWS + 1):
        (data / "site.sqlite").write_bytes(whole)
        with closing(sqlite3.connect(data / "site.sqlite", isolation_level=None)) as database:
            database.execute("DELETE FROM journal WHERE id > ?", (ROWS - cut,))
        assert "doctor.audit_head" in faults(data, head), cut
        with Audit(data) as log:
            for number in range(cut):
                log.add(entry_of("ask", f"{number} statements", "answered", user="other"))
        assert "doctor.audit_head" in faults(data, head), f"{cut} written anew with the key"


def test_an_erased_person_is_gone_and_the_chain_holds(data: Path) -> None:
    with Audit(data) as log:
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
    with Audit(data) as log:
        log.erase("user1", "safety")
    with closing(sqlite3.connect(data / "site.sqlite", isolation_level=None)) as database:
        number, entry, _ = next(row for row in rows_of(database) if row[1].erased)
        text = replace(entry, time="2001-01-01T00:00:00+00:00").text()
        database.execute("UPDATE journal SET entry = ? WHERE id = ?", (text, number))
    assert faults(data) == ["doctor.audit_erased"]


def test_a_lost_key_is_told_and_not_made_up_for(data: Path) -> None:
    kept = (data / journal.KEY).read_bytes()
    (data / journal.KEY).unlink()
    with Audit(data) as log:
        log.add(entry_of("ask", "more", "answered"))
    assert faults(data) == ["doctor.audit_no_key"]
    assert not (data / journal.KEY).exists()
    (data / journal.KEY).write_bytes(kept)
    assert faults(data) == ["doctor.audit_forged"], "the entry that was written meanwhile"


def test_the_key_may_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(journal.ENVIRONMENT, str(tmp_path / "elsewhere.key"))
    with Audit(tmp_path / "data") as log:
        log.add(entry_of("ask", "1", "answered"))
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

    monkeypatch.setattr(journal, "read_entry", looked)
    with Audit(data) as log:
        found, known = log.verify_newest(None)
        assert (found, known, len(looked_at)) == ([], log.head(), 2 * ROWS)
        looked_at.clear()
        assert log.verify_newest(known) == ([], known)
        assert not looked_at
        log.add(entry_of("ask", "1 statements", "answered"))
        assert log.verify_newest(known) == ([], log.head())
        assert len(looked_at) == 2


def test_of_a_long_log_a_page_verifies_the_newest_entries(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(data / "site.sqlite")) as database, database:
        database.execute("UPDATE journal SET entry = replace(entry, 'answered', 'abstained') WHERE id = 2")
    with Audit(data) as log:
        assert [fault.code for fault in log.verify_newest(None)[0]] == ["doctor.audit_altered"]
        monkeypatch.setattr(audit, "NEWEST", 5)
        assert log.verify_newest(None) == ([], log.head())


@pytest.mark.parametrize(
    ("number", "column"), [(ROWS, "digest"), (ROWS, "mac"), (ROWS + 1, "entry"), (ROWS + 2, "mac")]
)
def test_what_was_altered_since_the_last_look_is_seen_and_not_forgotten(data: Path, number: int, column: str) -> None:
    with Audit(data) as log:
        known = log.head()
        for _ in range(3):
            log.add(entry_of("ask", "1 statements", "answered"))
        with closing(sqlite3.connect(data / "site.sqlite")) as database, database:
            (before,) = database.execute(f"SELECT {column} FROM journal WHERE id = ?", (number,)).fetchone()
            after = before.replace("1 stat", "2 stat") if column == "entry" else before[:-1] + "01"[before[-1] == "0"]
            assert after != before
            database.execute(f"UPDATE journal SET {column} = ? WHERE id = ?", (after, number))
        for _ in range(2):
            found, known = log.verify_newest(known)
            assert found


def test_an_erasure_breaks_no_later_look(data: Path) -> None:
    with Audit(data) as log:
        known = log.head()
        log.add(entry_of("ask", "1 statements", "answered", user="user1"))
        log.erase("user1")
        assert log.verify_newest(known) == ([], log.head())
        assert log.verify_newest(None) == ([], log.head())


# --- an answer does not depend on the log, a change does; what may not be written to can be read ----------------------


QUESTION = "Should antibiotics be given within one hour in sepsis?"
Trouble = Callable[[Settings], AbstractContextManager[None]]
WRITE_BEYOND_MODES, READ_BEYOND_MODES = 1, 2  # capabilities of root that a reader's account has not
DROP = 24  # PR_CAPBSET_DROP


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    write(corpus, {"a.txt": "Sepsis\n\nIn sepsis antibiotics should be given within one hour.\n"})
    import_into(settings, corpus)
    with opened(settings, HashedWords()) as session:
        changes.set_access(session, "secret", ["doctors"])
    return settings


@contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Another process writes, and does not end."""
    with closing(sqlite3.connect(settings.data / "site.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def full(_: Settings) -> Iterator[None]:
    """Nothing can grow: what is there may be written over."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def answer_of(session: Session) -> Answer:
    return session.ask(QUESTION, SearchFilter())


def audited(answer: Answer) -> list[str]:
    """What an answer says of the audit log."""
    return [note.code for note in answer.notes if note.code.startswith("audit.")]


def entries(settings: Settings) -> list[Entry]:
    with Audit(settings.data) as log:
        assert log.verify() == []
        return log.entries()


@pytest.mark.parametrize("trouble", [locked, full])
def test_an_answer_that_cannot_be_audited_now_is_given_and_entered_later(filled: Settings, trouble: Trouble) -> None:
    with opened(filled, HashedWords()) as session:
        whole = audited(answer_of(session))
        start = time.monotonic()
        with trouble(filled):
            answer = answer_of(session)
            again = answer_of(session)
        assert time.monotonic() - start < 120  # a few seconds; the machine may be busy with much else
        assert whole == []
        assert audited(answer) == ["audit.later"], "a log that is locked can be read"
        assert answer.receipts == again.receipts
        assert answer.receipts
        before = len([entry for entry in entries(filled) if entry.action == "ask"])
        assert before == 1, "nothing but an entry enters what waits"
        assert audited(answer_of(session)) == []
    late = [entry for entry in entries(filled) if entry.entered]
    assert [(entry.action, entry.outcome) for entry in late] == [("ask", "sections")] * 2
    assert all(entry.time <= entry.entered for entry in late)
    with opened(filled, HashedWords()) as session:
        answer_of(session)
    assert [entry for entry in entries(filled) if entry.entered] == late, "entered once"


def test_what_waits_is_bounded(filled: Settings) -> None:
    long, short = (audit.entry_of("ask", "x" * length, "answered") for length in (500, 1))
    file = filled.data / audit.PENDING
    assert file.stat().st_blocks * 512 >= audit.PENDING_BYTES, "a full disk would have no room for it"
    kept = 0
    while audit._store_pending(file, long) or audit._store_pending(file, short):
        kept += 1
    assert 20 < kept < 200
    assert file.stat().st_size == audit.PENDING_BYTES
    with opened(filled, HashedWords()) as session:
        with locked(filled):
            assert "audit.not" in audited(answer_of(session))
        assert audited(answer_of(session)) == []
    assert len([one for one in entries(filled) if one.entered]) == kept


def test_a_line_that_a_power_cut_tore_is_left_out(filled: Settings) -> None:
    file = filled.data / audit.PENDING
    assert audit._store_pending(file, audit.entry_of("ask", "1 statements", "answered"))
    whole = file.read_bytes()
    line = whole.rstrip(b"\0")
    file.write_bytes((line + line[:40]).ljust(len(whole), b"\0"))
    with Audit(filled.data) as log:
        log.add(audit.entry_of("audit", "test", "done"))
    assert len([entry for entry in entries(filled) if entry.entered]) == 1


@pytest.mark.parametrize("trouble", [pytest.param(locked, marks=pytest.mark.slow), full])
def test_a_change_that_cannot_be_noted_is_refused_before_it_takes_effect(filled: Settings, trouble: Trouble) -> None:
    document = documents(filled)["a.txt"]
    with opened(filled, HashedWords()) as session:
        start, refusal = time.monotonic(), Busy if trouble is locked else LibraryError
        with trouble(filled), pytest.raises(refusal):
            changes.withdraw(session, document, True, "recalled")
        with trouble(filled), pytest.raises(refusal):
            changes.set_access(session, "ward", ["doctors"])
        assert time.monotonic() - start < 16
    assert in_force(filled.data).withdrawals == {}
    assert sorted(in_force(filled.data).access) == ["secret"]


def test_a_change_whose_outcome_cannot_be_noted_is_done_and_says_so(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        with locked(filled), pytest.raises(Busy), session.change("test", "thing"):
            pass
        with session.change("test", "thing") as change:
            change.outcome = "did it"
            holding = ExitStack()
            holding.enter_context(locked(filled))
        holding.close()
        assert [missed.code for missed in session.unaudited] == ["audit.later"]
        session.note("test", "other", "done")
    with Audit(filled.data) as log:
        assert log.unfinished() == []
    assert [entry.outcome for entry in entries(filled) if entry.entered] == ["did it"]


def test_a_recording_of_an_answer_that_was_not_audited_replays(filled: Settings) -> None:
    recording = Recording()
    with opened(filled, HashedWords()) as session, locked(filled):
        answer = session.ask(QUESTION, SearchFilter(), hooks=Hooks(recorder=recording))
    assert replay(recording.finish(answer))[1]


# --- nothing may be written -------------------------------------------------------------------------------------------


def _without_rights_of_root() -> None:
    for capability in (WRITE_BEYOND_MODES, READ_BEYOND_MODES):
        ctypes.CDLL(None).prctl(DROP, capability, 0, 0, 0)


def read(settings: Settings, *command: str) -> subprocess.CompletedProcess[str]:
    """A command by an account that has no rights beyond the modes of the files."""
    return subprocess.run(
        [*COMMAND, "--data", str(settings.data), *command], preexec_fn=_without_rights_of_root, timeout=120,
        capture_output=True, text=True, check=False, env=environment() | {"LOCALMED_LANGUAGE": "en"},
    )  # fmt: skip


def of_commands(tmp_path: Path) -> Settings:
    """A library that commands have made."""
    settings = Settings(tmp_path / "data")
    folder = write(tmp_path / "documents", {"a.txt": "Sepsis\n\nIn sepsis antibiotics should be given in one hour.\n"})
    for command in (("collections", "create", "ward"), ("import", str(folder), "-c", "ward")):
        assert read(settings, *command).returncode == 0
    return settings


@contextmanager
def closed_to_writing(folder: Path) -> Iterator[None]:
    paths = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    modes = {path: path.stat().st_mode for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.mark.slow
def test_a_library_that_may_not_be_written_to_can_be_read(tmp_path: Path) -> None:
    settings = of_commands(tmp_path)
    with closed_to_writing(settings.data):
        before = sorted(path for path in settings.data.rglob("*") if path.name != "lease")
        assert "Sepsis" in read(settings, "documents", "list").stdout
        assert phrase("access.not_writable") in read(settings, "collections", "create", "more").stderr
        sections = json.loads(read(settings, "search", QUESTION, "--json").stdout)["sections"]
        assert len(sections) == 1
        assert "one hour" in read(settings, "show", sections[0]["passage"]).stdout
        answer = json.loads(read(settings, "ask", QUESTION, "--json").stdout)
        assert answer["status"] == "sections"
        assert [note["code"] for note in answer["notes"] if note["code"].startswith("audit.")] == ["audit.not"]
        assert sorted(path for path in settings.data.rglob("*") if path.name != "lease") == before
        refused = read(settings, "collections", "create", "another")
        assert refused.returncode != 0
        assert refused.stderr.count("\n") == 1


@pytest.mark.slow
def test_who_may_not_write_gets_no_group_by_asking_for_it(tmp_path: Path) -> None:
    """Whatever the settings say of groups: none, or one; and other settings are not asked in their place."""
    settings = of_commands(tmp_path)
    assert read(settings, "collections", "access", "ward", "--group", "doctors").returncode == 0
    (tmp_path / "own.toml").write_text('[reader]\ngroups = ["doctors"]\n')
    for groups in ("[]", '["nurses"]'):
        (settings.data / "localmed.toml").write_text(f"[reader]\ngroups = {groups}\n")
        with closed_to_writing(settings.data):
            for options in ((), ("--as-group", "doctors")):
                assert "one hour" not in read(settings, *options, "search", "antibiotics").stdout, (groups, options)
