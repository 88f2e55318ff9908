"""Changes are noted before they are made and after, as the caller; who may not make them is refused."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, SearchFilter, Status
from localmed.domain.accounts import SessionRole
from localmed.domain.errors import LocalmedError, UnknownName, UsageError
from localmed.library import generations, journal
from localmed.library.in_force import in_force
from localmed.library.journal import Entry
from localmed.site import changes, importing, lookups, page_images
from localmed.site.audit import BEGUN, Audit
from localmed.site.session import Caller, Session, local_caller
from tests.fakes import HashedWords, described, import_into, opened, reader_of, restrict, write

LIBRARIAN = Caller("Dr Lin", None, SessionRole.LIBRARIAN)


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"a.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    import_into(settings, write(corpus, {"b.txt": "Heparin\n\nHeparin thins the blood.\n"}))
    return settings


def entries(settings: Settings) -> list[Entry]:
    with Audit(settings.data) as audit:
        assert audit.verify() == []
        return audit.entries()


def unfinished(settings: Settings) -> list[tuple[str, str]]:
    with Audit(settings.data) as audit:
        return [(entry.action, entry.actor) for entry in audit.unfinished()]


def test_a_change_is_noted_before_and_after_as_the_caller(filled: Settings) -> None:
    with opened(filled, HashedWords(), caller=LIBRARIAN) as session:
        document = lookups.documents(session)[0]
        changes.withdraw(session, document, True, "recalled")
        number = changes.mark(session, lookups.documents(session)[1], Status.SUPERSEDED)
    withdrawn, *marked = entries(filled)
    assert (withdrawn.action, withdrawn.subject, withdrawn.outcome) == ("withdraw", document.id, "in force")
    assert withdrawn.facts["withdrawn"] is True
    assert [entry.outcome for entry in marked] == [BEGUN, "superseded"]
    assert marked[1].generation == f"{number:04d}"
    assert {entry.actor for entry in (withdrawn, *marked)} == {"Dr Lin"}
    assert [one.actor for one in in_force(filled.data).withdrawals.values()] == ["Dr Lin"]
    assert unfinished(filled) == []


def test_a_change_that_fails_says_so(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session, pytest.raises(LocalmedError):
        changes.rollback(session, 99)
    assert [entry.outcome for entry in entries(filled)] == [BEGUN, "failed: UnknownName"]
    assert unfinished(filled) == []


def test_nothing_is_changed_that_cannot_be_noted(filled: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> object:
        raise OSError(errno.ENOSPC, "no room")

    with opened(filled, HashedWords()) as session:
        document = lookups.documents(session)[0]
        monkeypatch.setattr(journal, "append", full)
        for change in (
            lambda: changes.withdraw(session, document, True, "recalled"),
            lambda: changes.set_access(session, "ward", ["doctors"]),
            lambda: changes.rollback(session, 1),
        ):
            with pytest.raises((LocalmedError, OSError)):
                change()
        monkeypatch.undo()
        with session.workspace() as workspace:
            assert workspace.library.path.name == "0002"
    assert not in_force(filled.data).withdrawals
    assert not in_force(filled.data).access


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


@pytest.mark.parametrize(
    "caller", [replace(reader_of(), groups=None), reader_of("ward"), replace(LIBRARIAN, groups=frozenset({"ward"}))]
)
def test_a_reader_changes_nothing(filled: Settings, caller: Caller) -> None:
    """Neither one who reads everything, nor one of groups, nor a librarian who does not see the whole library."""
    with opened(filled, HashedWords(), caller=caller) as session:
        for name, change in CHANGES.items():
            with pytest.raises(UsageError):
                change(session)
            assert generations.current(filled.data).name == "0002", name
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
    with opened(filled, HashedWords(), caller=reader_of("ward")) as session:
        session.ask("Does aspirin or heparin thin the blood?", SearchFilter())
    (entry,) = entries(filled)
    assert (entry.actor, entry.action, entry.intent) == ("reader", "ask", "")
    assert "blood" not in json.dumps(entry.subject + entry.outcome)


def test_the_original_of_a_hidden_document_is_given_to_nobody_who_kept_evidence_of_it(
    filled: Settings, tmp_path: Path
) -> None:
    with opened(filled, HashedWords()) as session:
        evidence = session.search("What thins the blood?", SearchFilter(), 5).evidence[0]
    restrict(filled.data, evidence.passage.collection, ["doctors"])
    with opened(filled, HashedWords(), caller=reader_of("doctors")) as doctor:
        assert lookups.original_of(doctor, evidence).is_file()
    with opened(filled, HashedWords(), caller=reader_of("nurses")) as nurse:
        for look in (
            lambda: lookups.original_of(nurse, evidence),
            lambda: lookups.draw_page(nurse, evidence, tmp_path / "page.png"),
            lambda: page_images.page_image(nurse, evidence),
        ):
            with pytest.raises(UnknownName):
                look()
