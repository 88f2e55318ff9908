"""What is in force cannot be altered, cut or lost without notice; a repair puts it in force again; nothing is moved
half from the files of before.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.cli.main import run
from localmed.config import Settings
from localmed.domain import Status, digest
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import Damaged, LibraryError, StateLost
from localmed.library import in_force, journal, older
from localmed.library.access import hidden_from
from localmed.library.in_force import copy_of
from localmed.library.journal import entry_from
from localmed.library.migrations import migrate, sums
from localmed.library.state_migrations import BEFORE_JOURNAL, STATE
from localmed.people import accounts
from localmed.site import audit, changes, stops
from localmed.site.audit import Audit, entry_of
from localmed.upkeep import check, repair
from tests.fakes import HashedWords, answers, documents, import_into, opened, restrict, withdraw, write
from tests.site.test_cut_off import killed_before

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


def code(settings: Settings, *command: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["--data", str(settings.data), *command])
    return int(ended.value.code or 0)


# --- damage ----------------------------------------------------------------------------------------------------------


def with_facts(database: Database) -> list[tuple[int, str]]:
    return database.execute(f"SELECT id, entry FROM journal WHERE {journal.WITH_FACTS} ORDER BY id").fetchall()


def flipped(database: Database) -> None:
    number, text = with_facts(database)[-1]
    database.execute("UPDATE journal SET entry = ? WHERE id = ?", (text.replace("recalled", "recallee"), number))


def taken_out(database: Database) -> None:
    database.execute("DELETE FROM journal WHERE id = ?", (with_facts(database)[1][0],))


def cut(database: Database) -> None:
    database.execute("DELETE FROM journal WHERE id >= ?", (with_facts(database)[-1][0],))


def emptied(database: Database) -> None:
    database.execute("DELETE FROM journal")


def reversed_without_the_key(database: Database) -> None:
    """A row more that says the opposite, with right digests."""
    _, text = with_facts(database)[-1]
    ((newest, before),) = database.execute("SELECT id, digest FROM journal ORDER BY id DESC LIMIT 1")
    entry = entry_from(text)
    facts = {**entry.facts, "withdrawn": False, "before": entry.digest()}
    made = replace(entry, previous=before, facts=facts)
    database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (newest + 1, made.text(), made.digest(), "0" * 64))


def lifted_without_a_mac(database: Database) -> None:
    """A checkpoint in which nothing is in force, with a right digest and no mac."""
    ((newest, before),) = database.execute("SELECT id, digest FROM journal ORDER BY id DESC LIMIT 1")
    made = replace(entry_of("x", "y", "z"), previous=before, facts=journal.InForce().facts())
    database.execute("INSERT INTO journal VALUES (?, ?, ?, '')", (newest + 1, made.text(), made.digest()))


def lifted_with_a_key_of_ones_own(database: Database) -> None:
    ((newest, before, made_before),) = database.execute("SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1")
    made = replace(entry_of("x", "y", "z"), previous=before, facts=journal.InForce().facts())
    own = journal.mac(b"x" * 32, newest + 1, made.digest(), made_before)
    database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (newest + 1, made.text(), made.digest(), own))


def rewritten_without_the_key(database: Database) -> None:
    """The newest row with facts says the opposite, its digest is right, its mac is the one before."""
    number, text = with_facts(database)[-1]
    entry = entry_from(text)
    made = replace(entry, facts={**entry.facts, "withdrawn": False})
    database.execute("UPDATE journal SET entry = ?, digest = ? WHERE id = ?", (made.text(), made.digest(), number))


@pytest.mark.parametrize(
    "harm",
    [
        flipped,
        taken_out,
        cut,
        emptied,
        reversed_without_the_key,
        lifted_without_a_mac,
        lifted_with_a_key_of_ones_own,
        rewritten_without_the_key,
    ],
)
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
    assert code(filled, "doctor") == 5
    assert code(filled, "repair", "--yes") == 0
    holds(filled)
    assert repair.records(filled.data) == []
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
    assert code(filled, "repair", "--yes") == 0
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
        repair.records(filled.data)  # nothing is guessed


def test_an_account_that_was_disabled_since_an_older_file_stays_disabled(filled: Settings) -> None:
    eve = Account("eve", SessionRole.ADMIN)
    with opened(filled, HashedWords()) as session:
        accounts.create(session, eve, "a long password of a ward")
        accounts.create(session, replace(eve, user="boss"), "a long password of a ward")
        shutil.copy2(filled.data / "site.sqlite", filled.data.parent / "older.sqlite")
        accounts.change(session, replace(eve, disabled=True))
    shutil.copy2(filled.data.parent / "older.sqlite", filled.data / "site.sqlite")
    assert code(filled, "repair", "--yes") == 0
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
    assert code(filled, "repair", "--yes") == 0
    holds(filled)
    withdraw(filled.data, documents(filled)["b.txt"])
    in_force._KNOWN.clear()
    assert answers(filled, "antibiotics") == set()
    with Audit(filled.data) as log:
        assert log.verify() == []
    assert repair.records(filled.data) == []


def test_a_repair_is_enough_though_the_clock_went_back(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(filled.data / "site.sqlite", isolation_level=None)) as database:
        emptied(database)
    in_force._KNOWN.clear()
    monkeypatch.setattr(audit, "now", lambda: "2001-01-01T00:00:00+00:00")
    assert code(filled, "repair", "--yes") == 0
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
    assert code(filled, "repair", "--yes") == 0
    assert list(check.state(filled.data)) == []
    holds(filled)


def test_a_crash_before_the_copy_was_written_loses_nothing(filled: Settings) -> None:
    copy = (filled.data / "in_force.json").read_bytes()
    with opened(filled, HashedWords()) as session:
        changes.set_access(session, "icu", ["doctors"])
    (filled.data / "in_force.json").write_bytes(copy)
    assert hidden_from(NURSES, filled.data) == {"ward", "icu"}
    with closing(sqlite3.connect(filled.data / "site.sqlite", isolation_level=None)) as database:
        taken_out(database)
    in_force._KNOWN.clear()
    assert code(filled, "repair", "--yes") == 0
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
            assert plan.count("journal_facts") >= 1
            assert (
                "SCAN journal " not in plan.replace("USING", " USING").replace("journal_facts", "")[:40]
                or "INDEX" in plan
            )


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
        sums(state)
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
