"""Rows of ``state.sqlite`` that give access: one that is not as it was stored gives none, and a lost stop is missed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.errors import Damaged
from localmed.library.state import rows
from localmed.operations import accounts, logins, stops, tokens
from tests.fakes import HashedWords, import_into, opened, write

PASSWORD = "a long password of a ward"
NURSE = Account("nurse", SessionRole.READER, ("nurses",))


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    with opened(settings, HashedWords()) as session:
        accounts.create(session, NURSE, PASSWORD)
        stops.stop(session, stops.WORKFLOW, "departments", "under review")
    return settings


def changed(settings: Settings, statement: str) -> None:
    """As a disk changes it, past the triggers: one text for another of its length."""
    with closing(sqlite3.connect(settings.data / "state.sqlite")) as database:
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
    with closing(sqlite3.connect(filled.data / "state.sqlite")) as database:
        kept = database.execute("SELECT name, sql FROM sqlite_master WHERE name LIKE 'accounts_c%'").fetchall()
        assert len(kept) == 2
        for name, _ in kept:
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE accounts SET groups = '[\"doctor\"]'")
        for _, sql in kept:
            database.execute(sql)
        database.commit()
    with opened(filled, HashedWords()) as session, pytest.raises(Damaged):
        accounts.set_password(session, "nurse", PASSWORD + "!")


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM stops", "UPDATE stops SET name = 'departmentt'", "DELETE FROM stops_sum", "DROP TABLE stops_sum",
     "ALTER TABLE stops RENAME TO stopr"],
)  # fmt: skip
def test_a_stop_that_is_lost_is_no_stop_that_was_lifted(filled: Settings, statement: str) -> None:
    assert [stop.name for stop in stops.stops(filled.data)] == ["departments"]
    changed(filled, statement)
    with pytest.raises(Damaged):
        stops.stops(filled.data)


def test_stops_are_made_and_lifted(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        stops.stop(session, stops.WORKFLOW, "ask", "too")
        stops.stop(session, stops.WORKFLOW, "ask", "for another reason")
        stops.lift(session, stops.WORKFLOW, "departments")
    assert [(stop.name, stop.reason) for stop in stops.stops(filled.data)] == [("ask", "for another reason")]
    with rows(filled.data) as state:
        assert state.execute("SELECT sum = (SELECT sum FROM stops_now) FROM stops_sum").fetchone() == (1,)
