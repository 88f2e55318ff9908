"""Sixteen threads at one site while the library changes: a short run of ``tests/benchmarks/threads.py``."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Message, SearchFilter, TraceStep
from localmed.domain.errors import Busy, Damaged
from localmed.library.dense import DenseIndex
from localmed.library.in_force import in_force
from localmed.library.lexical import LexicalIndex
from localmed.process.hooks import Hooks
from localmed.site import changes, importing, lookups
from localmed.site.session import RUNS
from tests.benchmarks.threads import hammer
from tests.fakes import HashedWords, described, import_into, opened, reader_of, write

QUESTION = "Does aspirin or heparin thin the blood?"
SECONDS = 20


@pytest.mark.slow
def test_nothing_withdrawn_hidden_or_torn_is_shown_while_the_library_changes(tmp_path: Path) -> None:
    log = hammer(tmp_path, SECONDS)
    assert log.wrong == []
    for name in ("answers", "searches", "look-ups", "lists", "imports of three collections", "withdrawals",
                 "restrictions"):  # fmt: skip
        assert log.done[name], f"no {name}"
    assert log.done["refusals"] < log.done["answers"]


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    texts = {f"{name}.txt": f"{name.title()}\n\n{name.title()} thins the blood.\n" for name in ("aspirin", "heparin")}
    import_into(settings, write(corpus, texts))
    return settings


def test_what_is_withdrawn_while_an_answer_is_made_is_not_in_it(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        document = next(document for document in lookups.documents(session) if document.title == "Aspirin")

        def withdraw(step: TraceStep) -> None:
            if step.name == "cite" and not withdrawn:
                withdrawn.append(step.name)
                changes.withdraw(session, document, True, "test")

        withdrawn: list[str] = []
        answer = session.ask(QUESTION, SearchFilter(), hooks=Hooks(finished=withdraw))
        assert withdrawn
        assert {source.document_title for source in answer.evidence} == {"Heparin"}


def test_what_is_hidden_while_an_answer_is_made_is_not_in_it(filled: Settings, tmp_path: Path) -> None:
    with opened(filled, HashedWords()) as librarian:
        write(tmp_path / "more", {"warfarin.txt": "Warfarin\n\nWarfarin thins the blood.\n"})
        importing.import_paths(librarian, [tmp_path / "more"], described("pharmacy"))

        def close(step: TraceStep) -> None:
            if step.name == "cite":
                changes.set_access(librarian, "pharmacy", ["pharmacists"])

        reader = type(librarian)(librarian.site, reader_of("nurses"))
        answer = reader.ask("Does warfarin or heparin thin the blood?", SearchFilter(), hooks=Hooks(finished=close))
        assert answer.evidence
        assert in_force(librarian.data).access
        assert "Warfarin" not in {source.document_title for source in answer.evidence}


def test_documents_withdrawn_again_and_again_are_no_endless_loop(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        document = next(document for document in lookups.documents(session) if document.title == "Aspirin")

        def reinstate(step: Message) -> None:
            if step.code == "workflow.step.find":
                changes.withdraw(session, document, False, "test")
                runs.append(step)

        def withdraw(step: TraceStep) -> None:
            if step.name == "cite":
                changes.withdraw(session, document, True, "test")

        runs: list[Message] = []
        with pytest.raises(Busy):
            session.ask(QUESTION, SearchFilter(), hooks=Hooks(reinstate, finished=withdraw))
        assert len(runs) == RUNS


def test_threads_share_no_open_library(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        barrier, seen = threading.Barrier(4), []

        def lease() -> None:
            with session.workspace() as workspace:
                seen.append(workspace.library)
                barrier.wait(30)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda _: lease(), range(4)))
        assert len({id(library) for library in seen}) == 4
        with session.workspace() as workspace:
            assert workspace.library in seen, "one that is idle is used again"


def test_a_leased_library_stays_while_another_generation_is_published(filled: Settings, corpus: Path) -> None:
    with opened(filled, HashedWords()) as session:
        with session.workspace() as before:
            write(corpus, {"new.txt": "Warfarin\n\nWarfarin thins the blood.\n"})
            importing.import_paths(session, [corpus], described())
            assert before.find(QUESTION, SearchFilter(), 9).sections
            assert len(before.library.catalogue.documents()) == 2
        with session.workspace() as after:
            assert after.library.path != before.library.path
            assert len(after.library.catalogue.documents()) == 3


def test_reading_makes_no_index(filled: Settings) -> None:
    empty = filled.data / "empty"
    empty.mkdir()
    for opening in (lambda: LexicalIndex(empty), lambda: DenseIndex(empty)):
        with pytest.raises(Damaged):
            opening()
    assert list(empty.iterdir()) == []
