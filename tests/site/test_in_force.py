"""What is in force cannot be altered, cut or lost without notice; a repair puts it in force again; nothing is moved
half from the files of before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import Status, digest
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import Damaged, LibraryError, StateLost
from localmed.library import in_force, journal, older
from localmed.library.access import hidden_from
from localmed.library.in_force import copy_of
from localmed.library.journal import entry_from
from localmed.library.migrations import add_checksum_functions, migrate
from localmed.library.state_migrations import BEFORE_JOURNAL, STATE
from localmed.people import accounts
from localmed.site import audit, changes, stops
from localmed.site.audit import Audit, entry_of
from localmed.upkeep import check, repair
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords, answers, documents, import_into, opened, restrict, withdraw, write

NURSES = frozenset({"nurses"})
OF_A_LINE = ("time", "document", "content", "title", "withdrawn", "reason", "actor")  # of the ledger of before
Database = sqlite3.Connection


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    """Something was withdrawn, reinstated, restricted and stopped; the newest row with facts withdraws ``a.txt``."""
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n", "b.txt": "Fever\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    with opened(settings, HashedWords()) as session:
        changes.set_access(session, "ward", ["doctors"])
        changes.withdraw(session, documents(settings)["b.txt"], True, "recalled")
        changes.withdraw(session, documents(settings)["b.txt"], False, "good again")
        stops.stop(session, stops.WORKFLOW, "ebm", "under review")
        changes.withdraw(session, documents(settings)["a.txt"], True, "recalled")
    return settings


def holds(settings: Settings) -> None:
    """All of it is in force."""
    assert answers(settings, "antibiotics") == {"Fever"}
    assert hidden_from(NURSES, settings.data) == {"ward"}
    assert [stop.name for stop in stops.stops(settings.data)] == ["ebm"]


# --- damage ----------------------------------------------------------------------------------------------------------


def with_facts(database: Database) -> list[tuple[int, str]]:
    return database.execute(f"SELECT id, entry FROM journal WHERE {journal.WITH_FACTS} ORDER BY id").fetchall()


def put_in(database: Database, facts: Mapping[str, Any], own: bytes = b"", made: str = "") -> None:
    """A row more with these facts, right digests, and the mac ``made`` or that of one's ``own`` key."""
    ((newest, before, made_before),) = database.execute("SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1")
    entry = replace(entry_of("x", "y", "z"), previous=before, facts=facts)
    made = journal.mac(own, newest + 1, entry.digest(), made_before) if own else made
    database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (newest + 1, entry.text(), entry.digest(), made))


def reversed_without_the_key(database: Database) -> None:
    entry = entry_from(with_facts(database)[-1][1])
    put_in(database, {**entry.facts, "withdrawn": False, "before": entry.digest()}, made="0" * 64)


def rewritten_without_the_key(database: Database) -> None:
    """The newest row with facts says the opposite, its digest is right, its mac is the one before."""
    number, text = with_facts(database)[-1]
    entry = entry_from(text)
    made = replace(entry, facts={**entry.facts, "withdrawn": False})
    database.execute("UPDATE journal SET entry = ?, digest = ? WHERE id = ?", (made.text(), made.digest(), number))


NOTHING = journal.InForce().facts()  # a checkpoint by which nothing is in force
HARMS: dict[str, Callable[[Database], object]] = {
    "flipped": lambda it: it.execute("UPDATE journal SET entry = replace(entry, 'recalled', 'recallee')"),
    "taken out": lambda it: it.execute("DELETE FROM journal WHERE id = ?", (with_facts(it)[1][0],)),
    "cut": lambda it: it.execute("DELETE FROM journal WHERE id >= ?", (with_facts(it)[-1][0],)),
    "emptied": lambda it: it.execute("DELETE FROM journal"),
    "reversed": reversed_without_the_key,
    "lifted without a mac": lambda it: put_in(it, NOTHING),
    "lifted with another key": lambda it: put_in(it, NOTHING, own=b"x" * 32),
    "rewritten": rewritten_without_the_key,
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_what_was_altered_stops_everything_until_it_is_repaired(
    filled: Settings, corpus: Path, harm: Callable[[Database], None]
) -> None:
    holds(filled)
    document = documents(filled)["b.txt"]
    with closing(sqlite3.connect(filled.data / "site.sqlite", isolation_level=None)) as database:
        harm(database)
    in_force._KNOWN.clear()  # as another process sees it; one that knew it goes on with what it knows
    with opened(filled, HashedWords()) as session:
        for call in (
            lambda: answers(filled, "antibiotics"),
            lambda: hidden_from(NURSES, filled.data),
            lambda: stops.stops(filled.data),
            lambda: changes.withdraw(session, document, True, "again"),
            lambda: changes.set_access(session, "ward", []),
            lambda: import_into(filled, write(corpus, {"d.txt": "Gout\n\nColchicine.\n"})),
        ):
            with pytest.raises(Damaged) as raised:
                call()
            assert raised.value.message.code in ("state.altered", "state.cut")
    assert Localmed(filled.data)("doctor").code == 5
    assert Localmed(filled.data)("repair", "--yes").code == 0
    holds(filled)
    assert repair.plan_records(filled.data) == []
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, document, True, "too")
    assert answers(filled, "antibiotics") == set()


@pytest.mark.slow
def test_no_single_character_changed_in_a_row_lifts_anything(filled: Settings) -> None:
    file = filled.data / "site.sqlite"
    whole = file.read_bytes()
    with closing(sqlite3.connect(file)) as database:
        number, text = with_facts(database)[-1]
    for place, character in enumerate(text):
        file.write_bytes(whole)
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            changed = text[:place] + ("e" if character != "e" else "f") + text[place + 1 :]
            database.execute("UPDATE journal SET entry = ? WHERE id = ?", (changed, number))
        in_force._KNOWN.clear()
        with pytest.raises(Damaged):
            in_force.in_force(filled.data)
    file.write_bytes(whole)
    holds(filled)


def test_an_older_file_put_in_its_place_is_missed(filled: Settings) -> None:
    older_file = filled.data.parent / "older.sqlite"
    shutil.copy2(filled.data / "site.sqlite", older_file)
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, documents(filled)["b.txt"], True, "since")
    shutil.copy2(older_file, filled.data / "site.sqlite")
    with pytest.raises(Damaged):
        answers(filled, "antibiotics")
    assert Localmed(filled.data)("repair", "--yes").code == 0
    assert answers(filled, "antibiotics") == set()


def test_the_manifest_knows_a_journal_that_was_cut_with_its_copy(filled: Settings, corpus: Path) -> None:
    older_file = filled.data.parent / "older.sqlite"
    shutil.copy2(filled.data / "site.sqlite", older_file)
    import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    with opened(filled, HashedWords()) as session:
        session.note("test", "x", "done")
        changes.mark(session, documents(filled)["c.txt"], documents(filled)["c.txt"].status)
    shutil.copy2(older_file, filled.data / "site.sqlite")
    (filled.data / "in_force.json").unlink()
    with pytest.raises(Damaged) as raised:
        answers(filled, "antibiotics")
    assert raised.value.message.code == "state.cut"
    with pytest.raises(Damaged):
        repair.plan_records(filled.data)  # nothing is guessed


def test_an_account_that_was_disabled_since_an_older_file_stays_disabled(filled: Settings) -> None:
    eve = Account("eve", SessionRole.ADMIN)
    with opened(filled, HashedWords()) as session:
        accounts.create(session, eve, "a long password of a ward")
        accounts.create(session, replace(eve, user="boss"), "a long password of a ward")
        shutil.copy2(filled.data / "site.sqlite", filled.data.parent / "older.sqlite")
        accounts.change(session, replace(eve, disabled=True))
    shutil.copy2(filled.data.parent / "older.sqlite", filled.data / "site.sqlite")
    with pytest.raises(Damaged, match="localmed repair"):
        accounts.account(filled.data, "eve")
    assert Localmed(filled.data)("repair", "--yes").code == 0
    assert accounts.account(filled.data, "eve").disabled
    assert not accounts.account(filled.data, "boss").disabled


def test_a_new_edition_that_is_reinstated_lifts_nothing_of_the_old_text(filled: Settings, corpus: Path) -> None:
    old = (corpus / "a.txt").read_text("utf-8")
    import_into(filled, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics by the new table.\n"}))
    withdraw(filled.data, documents(filled)["a.txt"], False)
    import_into(filled, write(corpus, {"copy.txt": old}))
    with opened(filled, HashedWords()) as session, session.workspace() as workspace:
        library = workspace.library
        assert library.status(documents(filled)["copy.txt"].id) is Status.WITHDRAWN
        assert library.status(documents(filled)["a.txt"].id) is Status.CURRENT


@pytest.mark.parametrize("harm", ["another", "lost"])
def test_with_another_key_nothing_is_changed_until_somebody_says_so(filled: Settings, harm: str) -> None:
    key = filled.data / "audit.key"
    key.write_bytes(b"x" * 32) if harm == "another" else key.unlink()
    in_force._KNOWN.clear()
    with pytest.raises(Damaged) as raised:
        withdraw(filled.data, documents(filled)["b.txt"])
    assert raised.value.message.code == ("state.another_key" if harm == "another" else "state.no_key")
    assert Localmed(filled.data)("repair", "--yes").code == 0
    holds(filled)
    withdraw(filled.data, documents(filled)["b.txt"])
    in_force._KNOWN.clear()
    assert answers(filled, "antibiotics") == set()
    with Audit(filled.data) as log:
        assert log.verify() == []
    assert repair.plan_records(filled.data) == []


def test_a_repair_is_enough_though_the_clock_went_back(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(filled.data / "site.sqlite", isolation_level=None)) as database:
        HARMS["emptied"](database)
    in_force._KNOWN.clear()
    monkeypatch.setattr(audit, "now", lambda: "2001-01-01T00:00:00+00:00")
    assert Localmed(filled.data)("repair", "--yes").code == 0
    holds(filled)


# --- the copy --------------------------------------------------------------------------------------------------------


def test_without_its_copy_all_goes_on_and_the_next_change_writes_it(filled: Settings) -> None:
    (filled.data / "in_force.json").unlink()
    holds(filled)
    assert [error.message.code for error in check.state(filled.data)] == ["state.copy"]
    with opened(filled, HashedWords()) as session:
        changes.set_access(session, "icu", ["doctors"])
    assert copy_of(filled.data) == in_force.in_force(filled.data)


def test_a_copy_that_was_altered_is_told_and_repaired(filled: Settings) -> None:
    copy = filled.data / "in_force.json"
    copy.write_text(copy.read_text("utf-8").replace("recalled", "recallee"), "utf-8")
    holds(filled)
    assert [error.message.code for error in check.state(filled.data)] == ["state.copy"]
    assert Localmed(filled.data)("repair", "--yes").code == 0
    assert list(check.state(filled.data)) == []
    holds(filled)


def test_a_crash_before_the_copy_was_written_loses_nothing(filled: Settings) -> None:
    copy = (filled.data / "in_force.json").read_bytes()
    with opened(filled, HashedWords()) as session:
        changes.set_access(session, "icu", ["doctors"])
    (filled.data / "in_force.json").write_bytes(copy)
    assert hidden_from(NURSES, filled.data) == {"ward", "icu"}
    with closing(sqlite3.connect(filled.data / "site.sqlite", isolation_level=None)) as database:
        HARMS["taken out"](database)
    in_force._KNOWN.clear()
    assert Localmed(filled.data)("repair", "--yes").code == 0
    assert hidden_from(NURSES, filled.data) == {"ward", "icu"}, "the rows since the copy count too"


# --- writers ---------------------------------------------------------------------------------------------------------


def test_of_writers_at_once_none_loses_what_another_has_set(settings: Settings) -> None:
    names = [f"collection-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: restrict(settings.data, name, ["doctors"]), names))
    assert sorted(in_force.in_force(settings.data).access) == sorted(names)


@pytest.mark.slow
def test_processes_lose_no_withdrawal(filled: Settings) -> None:
    program = (
        "import sys; from pathlib import Path; from localmed.domain import Document\n"
        "from tests.fakes import withdraw\n"
        "for n in range(20): withdraw(Path(sys.argv[1]), Document(sys.argv[2] + str(n), 'c', 'k', 't', 'en', 's', '',"
        " 'content', 'text'))"
    )
    children = [subprocess.Popen([sys.executable, "-c", program, str(filled.data), name]) for name in ("one", "two")]
    assert [child.wait(120) for child in children] == [0, 0]
    assert len(in_force.in_force(filled.data).withdrawals) == 42
    with Audit(filled.data) as log:
        assert log.verify() == []


def test_a_change_that_finds_no_room_is_not_made(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise LibraryError("library.full", folder=str(path.parent), free="0")

    monkeypatch.setattr(in_force, "_write", full)
    with pytest.raises(LibraryError):
        withdraw(filled.data, documents(filled)["b.txt"])
    monkeypatch.undo()
    holds(filled)
    with Audit(filled.data) as log:
        assert log.verify() == []


def test_the_rows_with_facts_are_found_by_an_index(filled: Settings) -> None:
    """One question is one row, and there are hundreds of thousands."""
    with closing(sqlite3.connect(filled.data / "site.sqlite")) as database:
        for query in (journal.NEWEST_FACTS, journal.SINCE_CHECKPOINT):
            plan = " ".join(row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {query}"))
            assert "USING INDEX journal_facts" in plan


def test_who_was_erased_is_in_no_row_and_not_in_the_copy(filled: Settings) -> None:
    (user,) = {entry.actor for entry in in_force.in_force(filled.data).withdrawals.values()}
    with Audit(filled.data) as log:
        assert log.erase(user, "safety")
        assert log.verify() == []
        assert log.erase("safety", "boss")
        assert log.verify() == []
    assert user not in (filled.data / "in_force.json").read_text("utf-8")
    in_force._KNOWN.clear()
    holds(filled)
    withdraw(filled.data, documents(filled)["b.txt"])
    assert answers(filled, "antibiotics") == set()


# --- the files of before ---------------------------------------------------------------------------------------------


def as_before(data: Path, access: str = "access.json") -> None:
    """Give the data folder the files that localmed wrote before there was a journal in ``site.sqlite``."""
    now = in_force.in_force(data)
    with closing(sqlite3.connect(data / "state.sqlite", isolation_level=None)) as state:
        add_checksum_functions(state)
        migrate(state, STATE[:BEFORE_JOURNAL], "state.sqlite")
        for stop in now.stops:
            row = (stop.kind, stop.name, stop.reason, stop.user, stop.time)
            state.execute("INSERT INTO stops VALUES (?, ?, ?, ?, ?)", row)
    lines, before = b"", ""
    for one in now.withdrawals.values():
        values: dict[str, object] = {name: getattr(one, name) for name in OF_A_LINE}
        values |= {"previous": before} if before else {}
        before = digest(json.dumps(values, sort_keys=True))
        lines += (json.dumps(values | {"digest": before}, ensure_ascii=False) + "\n").encode()
    (data / "withdrawals").write_bytes(lines)
    known = f"{len(lines)} {hashlib.sha256(lines).hexdigest()}"
    (data / "withdrawals.known").write_text(known)
    collections = {name: sorted(groups) for name, groups in now.access.items()}
    of_access = {"format": 3, "changes": 1, "collections": collections}
    recorded = hashlib.sha256(json.dumps(of_access, sort_keys=True).encode()).hexdigest()
    whole = of_access | {"digest": recorded} if access == "access.json" else collections
    (data / access).write_text(json.dumps(whole))
    with closing(sqlite3.connect(data / "audit.sqlite", isolation_level=None)) as log:
        log.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, entry TEXT NOT NULL, digest TEXT NOT NULL)")
        previous = ""
        outcomes = ["begun", f"in force; anchor ledger {known}"]
        outcomes += [f"doctors; anchor access 1 {recorded}"] if access == "access.json" else []
        for number, outcome in enumerate(outcomes, 1):
            entry = replace(entry_of("withdraw", "x", outcome, user="Dr Lin"), previous=previous)
            previous = entry.digest()
            log.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, entry.text(), previous))
    for name in ("site.sqlite", "in_force.json", "audit.key"):
        (data / name).unlink()


@pytest.mark.parametrize("access", ["access.json", "readers.json"])
def test_the_files_of_before_are_moved_with_all_that_they_put_in_force(filled: Settings, access: str) -> None:
    as_before(filled.data, access)
    holds(filled)
    assert not [name for name in older.OLD if (filled.data / name).exists()]
    assert list(check.state(filled.data)) == []
    with Audit(filled.data) as log:
        assert log.verify() == []
        assert [entry.actor for entry in log.entries()][:2] == ["Dr Lin"] * 2
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, documents(filled)["a.txt"], False, "good again")
    assert answers(filled, "antibiotics") == {"Fever", "Sepsis"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("withdrawals", b"recalled", b"recallee"),
        ("withdrawals", b"\n", b""),
        ("withdrawals", None, b""),
        ("access.json", b"doctors", b"doctorx"),
        ("access.json", None, b"{"),
        ("access.json", None, b'{"format": 2, "collections": {}}'),
        ("access.json", None, b"{}"),
        ("state.sqlite", None, b""),
    ],
)
def test_a_file_of_before_that_was_altered_is_not_moved(
    filled: Settings, name: str, old: bytes | None, new: bytes
) -> None:
    as_before(filled.data)
    file = filled.data / name
    whole = file.read_bytes()
    file.write_bytes(whole.replace(old, new) if old else new)
    with pytest.raises(Damaged) as raised:
        answers(filled, "antibiotics")
    assert raised.value.message.code in ("state.older", "state.lost")
    assert not (filled.data / "site.sqlite").exists()
    file.write_bytes(whole)
    holds(filled)


def test_a_file_that_an_earlier_localmed_wrote_after_the_move_is_not_removed(filled: Settings) -> None:
    as_before(filled.data)
    holds(filled)
    for name in ("withdrawals", "access.json"):
        (filled.data / name).write_text("{}\n")
        in_force.in_force._known.clear()  # as another process sees it; one that knew it does not look
        with pytest.raises(Damaged) as raised:
            answers(filled, "antibiotics")
        assert raised.value.message.code == "state.older_beside"
        (filled.data / name).unlink()
    holds(filled)


def test_two_changes_that_were_cut_off_are_no_damage(filled: Settings) -> None:
    as_before(filled.data)
    with closing(sqlite3.connect(filled.data / "audit.sqlite", isolation_level=None)) as log:
        for number in (4, 5):
            entry = entry_of("access", "icu", f"planned; anchor access 2 {number}")
            log.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, entry.text(), entry.digest()))
    holds(filled)


@pytest.mark.parametrize("name", ["withdrawals", "access.json", "state.sqlite"])
def test_a_file_of_before_that_is_lost_is_missed(filled: Settings, name: str) -> None:
    as_before(filled.data)
    (filled.data / name).unlink()
    with pytest.raises(Damaged) as raised:
        answers(filled, "antibiotics")
    assert raised.value.message.code == "state.older" or isinstance(raised.value, StateLost)


@pytest.mark.slow
def test_a_move_that_is_killed_at_any_step_leaves_what_was_or_what_is(filled: Settings, tmp_path: Path) -> None:
    as_before(filled.data)
    steps = 0
    for step in range(1, 60):
        copy = Settings(tmp_path / f"copy{step}", library=filled.library)
        shutil.copytree(filled.data, copy.data, symlinks=True)
        killed = killed_before(step, lambda copy=copy: older.adopt(copy.data))  # type: ignore[misc]
        holds(copy)
        shutil.rmtree(copy.data)
        if not killed:
            break
        steps += 1
    assert 3 < steps < 59


# --- kill -9 between any two steps of a withdrawal: in force and noted, or neither ------------------------------------


MOST = 40  # steps; a withdrawal has fewer


@pytest.fixture
def plain(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "Fever\n\nWait.\n"}))
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, documents(settings)["b.txt"], True, "before")
    return settings


def writes(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an audit event of Python's is a step to another state of the disk.

    Reads are none: what was looked at a moment ago is not read again, so that their number varies with the load.
    """
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if event == "sqlite3.connect":
        return "mode=ro" not in str(arguments[0])
    return event in ("os.rename", "fcntl.flock")


def killed_before(step: int, call: Callable[[], object]) -> bool:
    """Run ``call`` in a fork that is killed before its ``step``-th step; whether it came to that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none of them
        child = os.fork()
    if not child:
        left = [step]

        def kill(event: str, arguments: tuple[Any, ...]) -> None:
            if writes(event, arguments):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("withdrawn", [True, False])
@pytest.mark.slow
def test_a_withdrawal_that_is_killed(plain: Settings, tmp_path: Path, withdrawn: bool) -> None:
    if not withdrawn:
        with opened(plain, HashedWords()) as session:
            changes.withdraw(session, documents(plain)["a.txt"], True, "test")
    document = documents(plain)["a.txt"]
    outcomes: list[bool] = []
    for step in range(1, MOST):
        copy = Settings(tmp_path / f"copy{step}", library=plain.library)
        shutil.copytree(plain.data, copy.data, symlinks=True)
        with opened(copy, HashedWords()) as session:
            if not killed_before(step, lambda session=session: changes.withdraw(session, document, withdrawn, "test")):  # type: ignore[misc]
                break
            changes.set_access(session, "ward", ["staff"])
        lines = [line for line in in_force.in_force(copy.data).withdrawals.values() if line.reason == "test"]
        outcomes.append(bool(lines) and lines[-1].withdrawn is withdrawn)
        with Audit(copy.data) as log:
            noted = {(one.subject, one.action, one.outcome) for one in log.entries()}
        done = (document.id, "withdraw" if withdrawn else "reinstate", "in force")
        assert (done in noted) is outcomes[-1], step
        shutil.rmtree(copy.data)
    assert step < MOST - 1
    assert outcomes == sorted(outcomes)
    assert {*outcomes} == {False, True}
