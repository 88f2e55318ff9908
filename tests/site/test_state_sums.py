"""Rows of ``site.sqlite`` that give access: one that is not as it was stored gives none, and a lost stop is missed."""

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
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import Damaged, UsageError
from localmed.library import in_force, state
from localmed.library.migrations import sums
from localmed.library.state import selected
from localmed.people import accounts, logins, tokens
from localmed.site import stops
from localmed.upkeep import check, repair
from tests.fakes import HashedWords, opened
from tests.site.conftest import NURSE, PASSWORD


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


def test_what_was_written_just_now_is_read_again(
    filled: Settings, looks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "SETTLED_NS", 10**15)
    stops.stops(filled.data)
    looks.clear()
    stops.stops(filled.data)
    assert len(looks) == 1


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


@pytest.mark.slow
def test_every_stop_and_lift_of_many_holds_at_once(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        for _ in range(20):
            stops.stop(session, stops.WORKFLOW, "ebm", "why")
            assert "ebm" in stops.stopped(filled.data, stops.WORKFLOW)
            stops.lift(session, stops.WORKFLOW, "ebm")
            assert "ebm" not in stops.stopped(filled.data, stops.WORKFLOW)


# --- accounts are what the audit log knows ----------------------------------------------------------------------------


def forged(settings: Settings, statement: str) -> None:
    """As somebody changes it who makes the checksum and the count anew: only the audit log knows better."""
    changed(settings, statement)
    with closing(sqlite3.connect(settings.data / "site.sqlite")) as database:
        sums(database)
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
        for step in (steps := repair.records(filled.data)):
            assert step.shown
            step.do(session)
    assert len(steps) == 1
    assert repair.records(filled.data) == []
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


def test_an_older_file_of_accounts_is_missed(filled: Settings) -> None:
    """The nurse was disabled since: the file of before does not bring the account back."""
    for path in filled.data.glob("site.sqlite*"):
        shutil.copy2(path, filled.data.parent / path.name)
    with opened(filled, HashedWords()) as session:
        accounts.change(session, replace(NURSE, disabled=True))
    for path in filled.data.glob("site.sqlite*"):
        path.unlink()
    for path in filled.data.parent.glob("site.sqlite*"):
        shutil.copy2(path, filled.data / path.name)
    with pytest.raises(Damaged, match="localmed repair"):
        accounts.account(filled.data, "nurse")
