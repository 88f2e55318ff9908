"""Jobs: what a page is told of them while they run and when they have ended."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus, Message, Provenance, message
from localmed.domain.errors import Cancelled
from localmed.library import state
from localmed.messages import from_text, render
from localmed.process.hooks import Cancel, Hooks, following
from localmed.site import jobs
from localmed.site.canary_gate import ABSTAIN, Canary, ask_all
from localmed.site.session import Session
from tests.fakes import HashedWords, opened
from tests.words import said

CANARIES = tuple(Canary(name, f"What {name}?", ABSTAIN) for name in ("first", "second"))


@pytest.fixture
def session(settings: Settings) -> Iterator[Session]:
    with opened(settings, HashedWords()) as librarian:
        yield librarian


def abstained(canary: Canary) -> Answer:
    return Answer(AnswerStatus.ABSTAINED, canary.question, "en", (), (), (), Provenance("0001", "none"))


def test_a_change_tells_which_canary_is_asked_and_can_be_ended_between_two() -> None:
    seen, cancel = list[tuple[float, float, str]](), Cancel()
    with following(Hooks(progress=lambda *values: seen.append(values), cancel=cancel)):
        assert ask_all(CANARIES, abstained)["second"].passed
        assert [(*at, from_text(name)) for *at, name in seen] == [
            (number, 2, message("canary.asking", question=one.question)) for number, one in enumerate(CANARIES)
        ]
        cancel.cancel()
        with pytest.raises(Cancelled):
            ask_all(CANARIES, abstained)


def ended(session: Session, id_: str) -> Message:
    """What came of a job, once it has ended."""
    end = time.monotonic() + 600
    while (outcome := jobs.job(session, id_).outcome) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    return outcome


def test_the_same_change_of_something_else_is_a_job_of_its_own(session: Session) -> None:
    go_on, changed = threading.Event(), list[str]()

    def begun(document: str) -> str:
        def work(_: Hooks) -> Message:
            assert go_on.wait(600)
            changed.append(document)
            return message("job.changed")

        return jobs.start(session, "mark", work, "/library/documents", document)

    first, again, other = begun("sepsis"), begun("sepsis"), begun("asthma")
    go_on.set()
    assert first == again
    for id_ in (first, other):
        ended(session, id_)
    assert sorted(changed) == ["asthma", "sepsis"]


def test_what_is_not_in_the_audit_log_is_told_with_the_outcome(session: Session) -> None:
    def work(_: Hooks) -> Message:
        session.unaudited.append(message("audit.not", reason=message("job.unknown")))
        return message("job.changed")

    words = render(ended(session, jobs.start(session, "mark", work)), "en")
    assert words.startswith(f"{said('job.changed')}. ")
    assert "Not in the audit log" in words


def test_where_an_unforeseen_fault_arose_stands_in_the_log_without_its_text(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    def work(_: Hooks) -> Message:
        raise FileNotFoundError("record of a patient")

    id_ = jobs.start(session, "mark", work)
    assert ended(session, id_).code == "job.unforeseen"
    assert f"job {id_} FileNotFoundError at " in caplog.text
    assert "patient" not in caplog.text


def test_a_job_goes_on_being_noted_after_a_write_that_was_locked_out(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watcher ended with the first: the job showed as interrupted, could not be cancelled, and was begun again."""
    rows, locked = state.rows, threading.Event()

    @contextmanager
    def busy(data: Path) -> Iterator[Any]:
        if locked.is_set() and threading.current_thread().name.startswith(("watch", "job")):
            raise sqlite3.OperationalError("database is locked")
        with rows(data) as held:
            yield held

    monkeypatch.setattr(jobs, "rows", busy)
    monkeypatch.setattr(jobs, "NOTED", 0.02)
    begun = threading.Event()

    def work(hooks: Hooks) -> Message:
        begun.set()
        while True:
            hooks.cancel.check()
            time.sleep(0.01)

    id_ = jobs.start(session, "rollback", work, "/")
    assert begun.wait(60)
    locked.set()
    time.sleep(0.2)
    locked.clear()
    jobs.cancel(session, id_)
    assert ended(session, id_).code == "job.failed", "it was cancelled"
