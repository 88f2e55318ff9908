"""Changes are noted before they are made and after, as the caller; who may not make them is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, Status
from localmed.domain.accounts import SessionRole
from localmed.domain.errors import LocalmedError, UsageError
from localmed.library.access import Access
from localmed.library.anchors import PLANNED
from localmed.library.withdrawals import Withdrawals
from localmed.site import changes, importing, lookups
from localmed.site.audit import BEGUN, Audit, AuditEntry
from localmed.site.session import Caller, Session, local_caller
from tests.fakes import HashedWords, described, import_into, opened, reader_of, write

LIBRARIAN = Caller("Dr Lin", None, SessionRole.LIBRARIAN)

# Makes one change and is killed when its outcome is about to be noted.
KILLED = """
import os, signal, sys
from pathlib import Path
from localmed.config import Settings
from localmed.site import changes, lookups
from localmed.site.audit import BEGUN
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from tests.fakes import HashedWords

noted = Session.note

def note(self, action, subject, outcome, *more, **named):
    if outcome != BEGUN and not outcome.startswith("planned"):
        os.kill(os.getpid(), signal.SIGKILL)
    return noted(self, action, subject, outcome, *more, **named)

Session.note = note
settings = Settings(Path(sys.argv[1]))
with Site(settings, HashedWords()) as site:
    session = Session(site, local_caller(settings))
    document = lookups.documents(session)[0]
    {
        "withdraw": lambda: changes.withdraw(session, document, True, "recalled"),
        "access": lambda: changes.set_access(session, "ward", ["doctors"]),
        "rollback": lambda: changes.rollback(session, 1),
    }[sys.argv[2]]()
"""


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"a.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    import_into(settings, write(corpus, {"b.txt": "Heparin\n\nHeparin thins the blood.\n"}))
    return settings


def entries(settings: Settings) -> list[AuditEntry]:
    with closing(Audit(settings.data)) as audit:
        assert audit.verify() == []
        return audit.entries()


def unfinished(settings: Settings) -> list[tuple[str, str]]:
    with closing(Audit(settings.data)) as audit:
        return [(entry.action, entry.actor) for entry in audit.unfinished()]


def test_a_change_is_noted_before_and_after_as_the_caller(filled: Settings) -> None:
    with opened(filled, HashedWords(), caller=LIBRARIAN) as session:
        document = lookups.documents(session)[0]
        changes.withdraw(session, document, True, "recalled")
        number = changes.mark(session, lookups.documents(session)[1], Status.SUPERSEDED)
    begun, planned, withdrawn, *marked = entries(filled)
    assert planned.outcome == f"{PLANNED}{Withdrawals(filled.data).anchor()}"
    assert (begun.action, begun.subject, begun.outcome) == ("withdraw", document.id, BEGUN)
    assert (withdrawn.action, withdrawn.intent) == ("withdraw", begun.digest())
    assert withdrawn.outcome == f"in force{Withdrawals(filled.data).anchor()}"
    assert [entry.outcome for entry in marked] == [BEGUN, "superseded"]
    assert marked[1].generation == f"{number:04d}"
    assert {entry.actor for entry in (begun, withdrawn, *marked)} == {"Dr Lin"}
    assert Withdrawals(filled.data).entries[0].actor == "Dr Lin"
    assert unfinished(filled) == []


def test_a_change_that_fails_says_so(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session, pytest.raises(LocalmedError):
        changes.rollback(session, 99)
    assert [entry.outcome for entry in entries(filled)] == [BEGUN, "failed: UnknownName"]
    assert unfinished(filled) == []


@pytest.mark.parametrize("action", ["withdraw", "access", "rollback"])
@pytest.mark.slow
def test_a_change_that_is_killed_once_it_holds_is_in_the_log(filled: Settings, action: str) -> None:
    command = [sys.executable, "-c", KILLED, str(filled.data), action]
    ran = subprocess.run(command, capture_output=True, timeout=150, check=False)
    assert ran.returncode == -9, ran.stderr.decode()
    assert [kind for kind, _ in unfinished(filled)] == [action]
    with opened(filled, HashedWords()) as session, session.workspace() as workspace:
        effects = {"withdraw": bool(Withdrawals(filled.data).entries), "access": bool(Access(filled.data).all()),
                   "rollback": workspace.library.path.name == "0001"}  # fmt: skip
    assert [name for name, holds in effects.items() if holds] == [action]


def test_nothing_is_changed_that_cannot_be_noted(filled: Settings) -> None:
    (filled.data / "audit.sqlite").write_bytes(b"not a database, not at all" * 100)
    with opened(filled, HashedWords()) as session:
        document = lookups.documents(session)[0]
        for change in (
            lambda: changes.withdraw(session, document, True, "recalled"),
            lambda: changes.set_access(session, "ward", ["doctors"]),
            lambda: changes.rollback(session, 1),
        ):
            with pytest.raises(LocalmedError):
                change()
        with session.workspace() as workspace:
            assert workspace.library.path.name == "0002"
    assert not Withdrawals(filled.data).entries
    assert not Access(filled.data).all()


CHANGES: dict[str, Callable[[Session], object]] = {
    "import": lambda session: importing.import_paths(session, [session.data], described()),
    "update": lambda session: importing.update(session, "ward"),
    "update all": importing.update_all,
    "collection": lambda session: changes.put_collection(session, Collection("new", "New")),
    "remove": lambda session: changes.remove(session, lookups.documents(session)[:1]),
    "mark": lambda session: changes.mark(session, lookups.documents(session)[0], Status.SUPERSEDED),
    "govern": lambda session: changes.govern(session, []),
    "withdraw": lambda session: changes.withdraw(session, lookups.documents(session)[0], True, "why"),
    "access": lambda session: changes.set_access(session, "ward", []),
    "rollback": lambda session: changes.rollback(session, None),
    "prune": changes.prune,
    "reindex": changes.reindex,
    "upgrade": changes.upgrade,
    "model": lambda session: changes.remove_model(session, "none"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize(
    "caller", [replace(reader_of(), groups=None), reader_of("ward"), replace(LIBRARIAN, groups=frozenset({"ward"}))]
)
def test_a_reader_changes_nothing(filled: Settings, name: str, caller: Caller) -> None:
    """Neither one who reads everything, nor one of groups, nor a librarian who does not see the whole library."""
    with opened(filled, HashedWords(), caller=caller) as session:
        with session.workspace() as workspace:
            before = workspace.library.path
        with pytest.raises(UsageError):
            CHANGES[name](session)
        with session.workspace() as workspace:
            assert workspace.library.path == before
    assert entries(filled) == []


def test_a_librarian_chooses_no_model(filled: Settings) -> None:
    with opened(filled, HashedWords(), caller=LIBRARIAN) as session:
        with pytest.raises(UsageError) as raised:
            changes.use_model(session, "reranker", "none", lambda *_: None)
        assert raised.value.message.code == "session.role"
    assert entries(filled) == []


def test_who_runs_a_command_may_do_what_the_data_folder_lets_them(settings: Settings) -> None:
    assert local_caller(settings).role is SessionRole.ADMIN
    grouped = replace(settings, reader=replace(settings.reader, groups=("ward",)))
    caller = local_caller(grouped)
    assert (caller.role, caller.groups) == (SessionRole.READER, frozenset({"ward"}))


def test_an_answer_is_noted_as_the_caller_and_holds_no_text(filled: Settings) -> None:
    from localmed.domain import SearchFilter

    with opened(filled, HashedWords(), caller=reader_of("ward")) as session:
        session.ask("Does aspirin or heparin thin the blood?", SearchFilter())
    (entry,) = entries(filled)
    assert (entry.actor, entry.action, entry.intent) == ("reader", "ask", "")
    assert "blood" not in json.dumps(entry.subject + entry.outcome)
