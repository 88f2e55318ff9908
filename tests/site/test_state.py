"""A lost, older or altered ``site.sqlite`` is damage: nothing stopped passes for lifted, nobody for somebody else."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import Damaged, UsageError
from localmed.library import generations, in_force, state
from localmed.library.migrations import add_checksum_functions
from localmed.library.state import rows, selected
from localmed.people import accounts, history, logins, tokens
from localmed.process.hooks import SILENT
from localmed.site import stops
from localmed.upkeep import backup, check, repair
from localmed.upkeep.restore import restore
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords, import_into, opened, write
from tests.site.conftest import NURSE, PASSWORD


def lose(data: Path, harm: str) -> None:
    for path in data.glob("site.sqlite*"):
        path.unlink()
    if harm == "emptied":
        (data / "site.sqlite").touch()
    elif harm == "older":
        shutil.copy2(data.parent / "older.sqlite", data / "site.sqlite")


def stopped(settings: Settings) -> list[tuple[str, str]]:
    return [(stop.kind, stop.name) for stop in stops.stops(settings.data)]


@pytest.mark.parametrize("harm", ["lost", "emptied", "older"])
@pytest.mark.slow
def test_nothing_is_answered_until_it_was_put_right_and_the_stop_holds_then(
    filled: Settings, corpus: Path, harm: str
) -> None:
    lose(filled.data, harm)
    localmed = Localmed(filled.data)
    with opened(filled, HashedWords()) as session:
        calls: list[Callable[[], object]] = [
            lambda: session.ask("Sepsis?", SearchFilter()),
            lambda: session.find("Sepsis?", SearchFilter(), 3, 3).found,
            lambda: stops.stops(filled.data),
            lambda: backup.make(session, filled.data.parent / "backups", SILENT),
        ]
        for call in calls:
            with pytest.raises(Damaged, match="localmed repair"):
                call()
    told = localmed("doctor")
    assert (told.code, "localmed repair" in told.out) == (5, True)
    localmed.ok("repair", "--yes")
    assert stopped(filled) == [("workflow", "ask")]
    with opened(filled, HashedWords()) as session:
        with pytest.raises(UsageError, match="stopped"):
            session.ask("Sepsis?", SearchFilter())
        stops.lift(session, stops.WORKFLOW, "ask")
        assert session.ask("Sepsis?", SearchFilter()).receipts
    assert "nothing to repair" in localmed.ok("repair").out


def test_a_lost_file_is_not_made_anew_by_the_next_change(filled: Settings, corpus: Path) -> None:
    lose(filled.data, "lost")
    with pytest.raises(Damaged, match="localmed repair"):
        import_into(filled, write(corpus, {"b.txt": "Fever."}))
    with pytest.raises(Damaged, match="localmed repair"):
        accounts.first_code(filled.data)
    assert not (filled.data / "site.sqlite").exists()
    assert generations.numbers(filled.data) == [1]


def test_a_fresh_folder_has_lost_nothing(settings: Settings) -> None:
    assert stops.stops(settings.data) == ()
    assert accounts.first_code(settings.data)


@pytest.mark.slow
def test_where_accounts_were_lost_nobody_becomes_the_first_administrator(filled: Settings) -> None:
    assert accounts.first_code(filled.data) == ""
    with rows(filled.data) as state:
        state.execute("DELETE FROM accounts")
    with pytest.raises(Damaged, match="localmed repair"):
        accounts.first_code(filled.data)
    assert Localmed(filled.data)("doctor").code == 5
    Localmed(filled.data).ok("repair", "--yes")
    first = accounts.create_first(filled.data, accounts.first_code(filled.data), "li", PASSWORD, filled.web)
    assert first.role is SessionRole.ADMIN
    with rows(filled.data) as state:
        state.execute("DELETE FROM accounts")
    with pytest.raises(Damaged):
        accounts.first_code(filled.data)


# --- restored from a backup -------------------------------------------------------------------------------------------


@pytest.fixture
def since(filled: Settings) -> Settings:
    """A backup, and after it another stop, another's token revoked, and the nurse's account disabled."""
    with opened(filled, HashedWords()) as session:
        tokens.make(session, "nurse", "report", 1)
        logins.begin(filled.data, NURSE)
        backup.make(session, filled.data.parent / "backups", SILENT)
        stops.stop(session, stops.COLLECTION, "ward", "recalled")
        stops.lift(session, stops.WORKFLOW, "ask")
        tokens.revoke(session, tokens.listing(filled.data)[0].id)
        accounts.change(session, replace(NURSE, disabled=True))
    return filled


def test_what_was_taken_back_since_stays_so(since: Settings) -> None:
    restore(since.data.parent / "backups", since.data, "", True, SILENT)
    assert stopped(since) == [("collection", "ward")]
    assert accounts.account(since.data, "nurse").disabled
    assert tokens.listing(since.data) == []
    with rows(since.data) as state:
        assert state.execute("SELECT count(*) FROM logins").fetchone() == (0,)


@pytest.mark.parametrize("harm", ["lost", "older"])
def test_of_a_folder_without_its_journal_stops_are_put_in_force_again(since: Settings, harm: str) -> None:
    lose(since.data, harm)
    restore(since.data.parent / "backups", since.data, "", True, SILENT)
    assert sorted(stopped(since)) == [("collection", "ward"), ("workflow", "ask")]
    assert not repair.plan_records(since.data)


@pytest.mark.parametrize("harm", ["lost", "altered"])
def test_answers_that_the_key_does_not_open_are_told_and_no_key_is_made_by_looking(filled: Settings, harm: str) -> None:
    key = filled.data / "history.key"
    with opened(filled, HashedWords()) as session:
        stops.lift(session, stops.WORKFLOW, "ask")
        history.keep(session, "", "Sepsis?", session.ask("Sepsis?", SearchFilter()))
        whole = key.read_bytes()
        assert (len(history.listing(session)[0]), history.count_unopened(filled.data)) == (1, 0)
        key.unlink() if harm == "lost" else key.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        assert history.listing(session) == ([], 1)
        assert history.count_unopened(filled.data) == 1
        assert key.exists() is (harm == "altered")
        history.keep(session, "", "Sepsis?", session.ask("Sepsis?", SearchFilter()))  # questions go on
    told = Localmed(filled.data)("doctor", "--full")
    assert (told.code, "history.key" in told.out) == (5, True)


# --- rows that give access: one that is not as it was stored gives none -----------------------------------------------


def changed(settings: Settings, statement: str) -> None:
    """As a disk changes it, past the triggers: one text for another of its length."""
    with closing(sqlite3.connect(settings.data / "site.sqlite")) as database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f"DROP TRIGGER {name}")
        database.execute(statement)
        database.commit()


def readers(settings: Settings) -> dict[str, Callable[[], Any]]:
    login, web = logins.begin(settings.data, NURSE), settings.web
    with opened(settings, HashedWords()) as session:
        token = tokens.make(session, "nurse", "report", 1)
    return {
        "account": lambda: accounts.account(settings.data, "nurse"),
        "accounts": lambda: accounts.accounts(settings.data),
        "login": lambda: logins.current(settings.data, login, web),
        "token": lambda: tokens.current(settings.data, token, web),
        "password": lambda: accounts.sign_in(settings.data, "nurse", PASSWORD, web),
    }


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts SET groups = '[\"doctor\"]'", "UPDATE accounts SET role = 'admin'",
        "UPDATE accounts SET source = 'lokal'",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_an_altered_account_opens_nothing(filled: Settings, statement: str) -> None:
    calls = readers(filled)
    assert all(call() for call in calls.values())
    changed(filled, statement)
    for call in calls.values():
        with pytest.raises(Damaged):
            call()


@pytest.mark.parametrize("table", ["logins", "tokens"])
def test_a_login_or_token_is_not_somebody_elses(filled: Settings, table: str) -> None:
    with opened(filled, HashedWords()) as session:
        accounts.create(session, Account("nursf", SessionRole.READER, ("doctors",)), PASSWORD)
    calls = readers(filled)
    changed(filled, f"UPDATE {table} SET user = 'nursf'")
    with pytest.raises(Damaged):
        calls[table.removesuffix("s")]()


def test_a_change_does_not_take_what_was_altered_for_what_was_stored(filled: Settings) -> None:
    with closing(sqlite3.connect(filled.data / "site.sqlite")) as database:
        query = "SELECT name, sql FROM sqlite_master WHERE name IN ('accounts_compared', 'accounts_changed')"
        kept = database.execute(query).fetchall()
        assert len(kept) == 2
        for name, _ in kept:
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE accounts SET groups = '[\"doctor\"]'")
        for _, sql in kept:
            database.execute(sql)
        database.commit()
    with opened(filled, HashedWords()) as session, pytest.raises(Damaged):
        accounts.set_password(session, "nurse", PASSWORD + "!")


def test_stops_are_made_and_lifted(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        stops.stop(session, stops.WORKFLOW, "ebm", "too")
        stops.stop(session, stops.WORKFLOW, "ebm", "for another reason")
        stops.lift(session, stops.WORKFLOW, "ask")
    assert [(stop.name, stop.reason) for stop in stops.stops(filled.data)] == [("ebm", "for another reason")]


# --- what was found is remembered -------------------------------------------------------------------------------------


@pytest.fixture
def looks(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The data folder once for each time that the file was read; what was written just now counts as settled."""
    read: list[Path] = []

    def counted(data: Path, query: str) -> list[tuple[Any, ...]]:
        read.append(data)
        return selected(data, query)

    monkeypatch.setattr(in_force, "selected", counted)
    monkeypatch.setattr(state, "SETTLED_NS", -(10**12))
    monkeypatch.setattr(state, "WHOLE_SECONDS", 10**30)
    return read


def test_an_unchanged_file_is_read_once(filled: Settings, looks: list[Path]) -> None:
    for _ in range(5):
        assert [stop.name for stop in stops.stops(filled.data)] == ["ask"]
    assert len(looks) <= 4  # the newest row; the rows, and those that copy and manifest name, where it is new


def test_what_was_read_is_read_again_while_it_may_change_unseen(
    filled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    remembered = state.Remembered(reads.append)
    monkeypatch.setattr(state, "SETTLED_NS", 10**15)
    remembered(filled.data)
    remembered(filled.data)
    assert len(reads) == 2, "it was written just now"
    monkeypatch.setattr(state, "SETTLED_NS", 0)
    remembered(filled.data)
    remembered(filled.data)
    assert len(reads) == 3
    monkeypatch.setattr(state, "stamp_of", lambda path: (1, 1, 1, 1))
    remembered(filled.data)
    assert len(reads) == 4
    remembered(filled.data)
    with state.rows(filled.data) as rows, state.transaction(rows):
        rows.execute("DELETE FROM jobs")
        rows.execute("INSERT INTO jobs (id, kind, user, started, seen, back, same) VALUES ('j', '', '', 0, 0, '', '')")
        remembered(filled.data)
    remembered(filled.data)
    assert len(reads) > 4, "the header that processes share tells of a change that no date tells of"


@pytest.mark.parametrize("name", ["ebm", "plan", "verify"])
@pytest.mark.slow
def test_another_process_s_stop_holds_at_the_next_look(filled: Settings, looks: list[Path], name: str) -> None:
    assert [stop.name for stop in stops.stops(filled.data)] == ["ask"]
    other = (
        "import sys; from pathlib import Path\n"
        "from localmed.config import Settings; from localmed.site import stops\n"
        "from tests.fakes import HashedWords, opened; settings = Settings(Path(sys.argv[1]))\n"
        "with opened(settings, HashedWords()) as session: stops.stop(session, stops.WORKFLOW, sys.argv[2], 'why')"
    )
    subprocess.run([sys.executable, "-c", other, str(filled.data), name], check=True, timeout=300)
    assert {stop.name for stop in stops.stops(filled.data)} == {"ask", name}


# --- accounts are what the audit log knows ----------------------------------------------------------------------------


def forged(settings: Settings, statement: str) -> None:
    """As somebody changes it who makes the checksum and the count anew: only the audit log knows better."""
    changed(settings, statement)
    with closing(sqlite3.connect(settings.data / "site.sqlite")) as database:
        add_checksum_functions(database)
        database.execute("UPDATE accounts SET sum = checksum(user, role, groups, source, password, disabled, subject)")
        database.commit()


FORGERIES = [
    "UPDATE accounts SET role = 'admin' WHERE user = 'nurse'",
    "UPDATE accounts SET groups = '[\"doctors\"]' WHERE user = 'nurse'",
    "UPDATE accounts SET password = (SELECT password FROM accounts WHERE user = 'nurse') WHERE user = 'boss'",
    "INSERT INTO accounts SELECT 'mallory', 'admin', '[]', source, password, 0, created, subject, 0, 0, 0 "
    "FROM accounts WHERE user = 'nurse'",
    "DELETE FROM accounts WHERE user = 'nurse'",
]


@pytest.mark.parametrize("statement", FORGERIES)
@pytest.mark.slow
def test_an_account_that_no_session_made_opens_nothing(filled: Settings, statement: str) -> None:
    calls = readers(filled)
    assert all(call() for call in calls.values())
    forged(filled, statement)
    for call in calls.values():
        with pytest.raises(Damaged, match="localmed repair"):
            call()
    with opened(filled, HashedWords()) as session:
        for change in (
            lambda: accounts.set_password(session, "boss", PASSWORD + "!"),
            lambda: accounts.create(session, Account("li", SessionRole.READER), PASSWORD),
            lambda: accounts.change(session, Account("boss", SessionRole.ADMIN, ("x",))),
        ):
            with pytest.raises(Damaged, match="localmed repair"):
                change()
        with pytest.raises(Damaged):
            list(check.state(filled.data))


@pytest.mark.parametrize("statement", FORGERIES[:4])
@pytest.mark.slow
def test_repair_gives_back_the_rights_that_the_log_knows(filled: Settings, statement: str) -> None:
    forged(filled, statement)
    with opened(filled, HashedWords()) as session:
        for step in (steps := repair.plan_records(filled.data)):
            assert step.shown
            step.do(session)
    assert len(steps) == 1
    assert repair.plan_records(filled.data) == []
    rights = {account.user: account for account in accounts.accounts(filled.data)}
    assert rights["nurse"] == NURSE
    assert rights["boss"] == Account("boss", SessionRole.ADMIN)
    assert all(account.disabled for user, account in rights.items() if user not in ("nurse", "boss"))
    if "password" in statement:
        with pytest.raises(UsageError):
            accounts.sign_in(filled.data, "boss", PASSWORD, filled.web)
    elif "INSERT" not in statement:
        assert accounts.sign_in(filled.data, "nurse", PASSWORD, filled.web) == NURSE
    with opened(filled, HashedWords()) as session:
        accounts.set_password(session, "nurse", PASSWORD + "!")
    assert accounts.sign_in(filled.data, "nurse", PASSWORD + "!", filled.web) == NURSE
