"""An answer does not depend on the audit log, a change does; and a library that may not be written to can be read."""

from __future__ import annotations

import ctypes
import json
import resource
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Answer, SearchFilter
from localmed.domain.errors import Busy, LibraryError
from localmed.library.in_force import in_force
from localmed.library.journal import Entry
from localmed.process.hooks import Hooks
from localmed.site import audit, changes
from localmed.site.audit import Audit
from localmed.site.session import Session
from localmed.workflows.recording import Recording, replay
from tests.cli.conftest import COMMAND, environment
from tests.fakes import HashedWords, documents, import_into, opened, write
from tests.words import phrase

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
    with closing(Audit(settings.data)) as log:
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
    while audit._kept(file, long) or audit._kept(file, short):
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
    assert audit._kept(file, audit.entry_of("ask", "1 statements", "answered"))
    whole = file.read_bytes()
    line = whole.rstrip(b"\0")
    file.write_bytes((line + line[:40]).ljust(len(whole), b"\0"))
    with closing(Audit(filled.data)) as log:
        log.append("audit", "test", "done")
    assert len([entry for entry in entries(filled) if entry.entered]) == 1


@pytest.mark.parametrize("trouble", [locked, full])
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
    with closing(Audit(filled.data)) as log:
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
    settings = Settings(tmp_path / "data")
    folder = write(tmp_path / "documents", {"a.txt": "Sepsis\n\nIn sepsis antibiotics should be given in one hour.\n"})
    assert subprocess.run([*COMMAND, "--data", str(settings.data), "collections", "create", "ward"],
                          check=False, env=environment()).returncode == 0  # fmt: skip
    assert read(settings, "import", str(folder), "-c", "ward").returncode == 0
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
    settings = Settings(tmp_path / "data")
    folder = write(tmp_path / "documents", {"a.txt": "Sepsis\n\nIn sepsis antibiotics should be given in one hour.\n"})
    for command in (
        ("collections", "create", "ward"), ("import", str(folder), "-c", "ward"),
        ("collections", "access", "ward", "--group", "doctors"),
    ):  # fmt: skip
        assert read(settings, *command).returncode == 0
    (tmp_path / "own.toml").write_text('[reader]\ngroups = ["doctors"]\n')
    for groups in ("[]", '["nurses"]'):
        (settings.data / "localmed.toml").write_text(f"[reader]\ngroups = {groups}\n")
        with closed_to_writing(settings.data):
            for options in ((), ("--as-group", "doctors")):
                assert "one hour" not in read(settings, *options, "search", "antibiotics").stdout, (groups, options)
