"""Damage is told by what reads stored bytes; a fault of the program is no reason to read the whole library."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import Message, SearchFilter, message
from localmed.domain.errors import Damaged, UnreadableIndex
from localmed.library import generations, reading
from localmed.library.tantivy_index import TantivyIndex
from localmed.site.session import Session
from tests.fakes import HashedWords, import_into, opened, write

READERS = 16


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"sepsis.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    return settings


@pytest.fixture
def whole_checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The generations that were read whole."""
    check, read = generations.check, list[Path]()

    def counted(generation: Path, whole: bool) -> list[Message]:
        if whole:
            read.append(generation)
        return check(generation, whole)

    monkeypatch.setattr(generations, "check", counted)
    return read


def failures(session: Session, work: Callable[[Any], object]) -> list[BaseException | None]:
    """What ``READERS`` at once are told."""

    def one(_: int) -> None:
        with session.workspace() as workspace:
            work(workspace)

    with ThreadPoolExecutor(READERS) as pool:
        return [future.exception() for future in [pool.submit(one, number) for number in range(READERS)]]


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), OSError("x"), TypeError("x")])
def test_a_fault_of_the_program_reads_nothing_and_is_no_damage(
    filled: Settings, whole_checks: list[Path], error: Exception
) -> None:
    def fail(_: Any) -> None:
        raise error

    with opened(filled, HashedWords()) as session:
        assert {type(one) for one in failures(session, fail)} == {type(error)}
    assert whole_checks == []


class Broken:
    """A searcher that cannot read its files."""

    num_docs = 1

    def __getattr__(self, name: str) -> Any:
        raise ValueError("corrupt")


def find(together: threading.Barrier, workspace: Any) -> object:
    together.wait(60)
    return workspace.find("antibiotics", SearchFilter(), 5)


@pytest.mark.parametrize("problems", [[message("file.changed", file="lexical/a.store")], []])
def test_what_an_engine_says_is_looked_into_once_for_all_who_ask(
    filled: Settings, monkeypatch: pytest.MonkeyPatch, problems: list[Message]
) -> None:
    check, read = generations.check, list[Path]()

    def decayed(generation: Path, whole: bool) -> list[Message]:
        if not whole:
            return check(generation, whole)
        read.append(generation)
        time.sleep(0.5)  # a real library takes minutes
        return problems

    monkeypatch.setattr(generations, "check", decayed)
    monkeypatch.setattr(reading, "_WHOLE", reading._Whole())
    opening = TantivyIndex.__init__

    def broken(index: TantivyIndex, *arguments: Any, **options: Any) -> None:
        opening(index, *arguments, **options)
        object.__setattr__(index._searcher, "_searcher", Broken())

    monkeypatch.setattr(TantivyIndex, "__init__", broken)
    with opened(filled, HashedWords()) as session:
        errors = failures(session, partial(find, threading.Barrier(READERS)))
        assert {type(error) for error in errors} <= {Damaged, UnreadableIndex}
        codes = {error.message.code for error in errors if isinstance(error, Damaged)}
        assert codes == ({"generation.damaged"} if problems else {"library.index"})
        assert len(read) <= 2, "those that asked while the first was read wait for one more"
