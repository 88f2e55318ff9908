"""A lost, emptied or older ``site.sqlite`` is damage: nothing stopped may pass for lifted, nobody for the first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.cli.main import run
from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.accounts import SessionRole
from localmed.domain.errors import Damaged, UsageError
from localmed.library import generations
from localmed.library.state import rows
from localmed.people import accounts, history, logins, tokens
from localmed.process.hooks import SILENT
from localmed.site import stops
from localmed.upkeep import backup, repair
from localmed.upkeep.restore import restore
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


def code(settings: Settings, *command: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["--data", str(settings.data), *command])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("harm", ["lost", "emptied", "older"])
@pytest.mark.slow
def test_nothing_is_answered_until_it_was_put_right_and_the_stop_holds_then(
    filled: Settings, corpus: Path, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lose(filled.data, harm)
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
    assert code(filled, "doctor") == 5
    assert "localmed repair" in capsys.readouterr().out
    assert code(filled, "repair", "--yes") == 0
    assert stopped(filled) == [("workflow", "ask")]
    capsys.readouterr()
    with opened(filled, HashedWords()) as session:
        with pytest.raises(UsageError, match="stopped"):
            session.ask("Sepsis?", SearchFilter())
        stops.lift(session, stops.WORKFLOW, "ask")
        assert session.ask("Sepsis?", SearchFilter()).receipts
    assert code(filled, "repair") == 0
    assert "nothing to repair" in capsys.readouterr().out


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
    assert code(filled, "doctor") == 5
    assert code(filled, "repair", "--yes") == 0
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
    assert not repair.records(since.data)


@pytest.mark.parametrize("harm", ["lost", "altered"])
def test_answers_that_the_key_does_not_open_are_told_and_no_key_is_made_by_looking(
    filled: Settings, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = filled.data / "history.key"
    with opened(filled, HashedWords()) as session:
        stops.lift(session, stops.WORKFLOW, "ask")
        history.keep(session, "", "Sepsis?", session.ask("Sepsis?", SearchFilter()))
        whole = key.read_bytes()
        assert (len(history.listing(session)[0]), history.unopened(filled.data)) == (1, 0)
        key.unlink() if harm == "lost" else key.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        assert history.listing(session) == ([], 1)
        assert history.unopened(filled.data) == 1
        assert key.exists() is (harm == "altered")
        history.keep(session, "", "Sepsis?", session.ask("Sepsis?", SearchFilter()))  # questions go on
    assert code(filled, "doctor", "--full") == 5
    assert "history.key" in capsys.readouterr().out
