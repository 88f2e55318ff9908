"""Steps are told as they happen, and a cancellation ends the work wherever it is: model, encoder, search, import."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.answering.chat import ChatEntailment
from localmed.answering.check import TOGETHER
from localmed.config import Settings
from localmed.domain import Message, SearchFilter, TraceStep
from localmed.domain.errors import Cancelled
from localmed.messages import render
from localmed.models.queue import owned
from localmed.process import hooks
from localmed.process.hooks import Cancel, Hooks, following
from localmed.site import importing
from tests.fakes import HashedWords, described, import_into, opened, write
from tests.scripted import ScriptedChat

QUESTION = "What thins blood?"


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    write(corpus, {f"{number}.txt": f"Aspirin {number}\n\nAspirin thins the blood.\n" for number in range(3)})
    import_into(settings, corpus)
    return settings


def writing(*labels: str) -> ScriptedChat:
    """A model that states a sentence for each of ``labels``, which it then gives them."""
    said = [f"Aspirin thins the blood {how}." for how in ("a little", "again", "still", "well")[: len(labels)]]
    made = [{"text": text, "sentences": [1], "calculated": False} for text in said]
    written = {"covers_patient": "yes", "statements": made, "not_covered": [], "look_for": ""}
    return ScriptedChat([written, *labels])


def test_every_step_is_told_when_it_begins_and_when_it_ended(filled: Settings) -> None:
    begun: list[Message] = []
    ended: list[TraceStep] = []
    with opened(filled, HashedWords(), chat=writing("supported")) as session:
        answer = session.ask(QUESTION, SearchFilter(), hooks=Hooks(begun.append, finished=ended.append))
    assert tuple(ended) == answer.trace
    assert [step.code for step in begun] == [f"workflow.step.{step.name}" for step in ended]
    assert {"find", "cite", "scopes", "write", "check"} <= {step.name for step in ended}
    for language in ("en", "zh"):
        assert not any("workflow." in render(step, language) for step in begun), "a step without words"


def test_a_check_tells_how_many_statements_are_judged(filled: Settings) -> None:
    steps: list[tuple[float, float]] = []
    with opened(filled, HashedWords(), chat=writing(*["supported"] * 3)) as session:
        session.ask(QUESTION, SearchFilter(), hooks=Hooks(progress=lambda done, total, _: steps.append((done, total))))
    assert [step for step in steps if step[1] == 3] == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("step", ["find", "cite", "scopes", "write"])
def test_a_workflow_ends_between_two_steps(filled: Settings, step: str) -> None:
    cancel = Cancel()
    seen: list[str] = []

    def finished(ended: TraceStep) -> None:
        seen.append(ended.name)
        if ended.name == step:
            cancel.cancel()

    with opened(filled, HashedWords(), chat=writing("supported")) as session:
        with pytest.raises(Cancelled) as raised:
            session.ask(QUESTION, SearchFilter(), hooks=Hooks(finished=finished, cancel=cancel))
        assert seen[-1] == step
        assert raised.value.exit_code == 130
        assert session.ask(QUESTION, SearchFilter()).receipts, "the session is as it was"


def test_a_chat_model_is_told_in_the_middle_of_its_work(filled: Settings) -> None:
    cancel = Cancel()
    model = writing(*["supported"] * 3)
    labelled: list[int] = []

    def progress(done: float, *_: object) -> None:
        labelled.append(int(done))
        cancel.cancel()

    with opened(filled, HashedWords(), chat=model) as session, pytest.raises(Cancelled):
        session.ask(QUESTION, SearchFilter(), hooks=Hooks(progress=progress, cancel=cancel))
    assert labelled == [1], "the other two statements are not judged any more"


def test_judging_by_a_chat_model_is_told() -> None:
    cancel = Cancel()
    judge = ChatEntailment(ScriptedChat(["supported"] * 2 * TOGETHER))
    pairs = [(f"premise {number}", "hypothesis") for number in range(2 * TOGETHER)]
    amounts: list[float] = []

    def progress(done: float, *_: object) -> None:
        amounts.append(done)
        cancel.cancel()

    with following(Hooks(progress=progress, cancel=cancel)), pytest.raises(Cancelled):
        judge.judge(pairs)
    assert amounts == [TOGETHER]


def test_who_waits_for_a_model_may_give_up() -> None:
    owner, cancel = threading.RLock(), Cancel()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with owner:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    threading.Timer(0.1, cancel.cancel).start()
    try:
        with following(Hooks(cancel=cancel)), pytest.raises(Cancelled):
            owned(HashedWords(), owner).encode(["text"], "query")
    finally:
        done.set()
        thread.join()


def test_a_search_looks_before_each_index(filled: Settings) -> None:
    cancel = Cancel()

    class Cancelling(HashedWords):
        def encode(self, texts: Sequence[str], kind: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
            cancel.cancel()
            return super().encode(texts, kind)

    with opened(filled, Cancelling()) as session, following(Hooks(cancel=cancel)), pytest.raises(Cancelled):
        session.find(QUESTION, SearchFilter(), 5, 5)


def test_an_import_ends_between_two_files_and_changes_nothing(filled: Settings, corpus: Path) -> None:
    cancel = Cancel()
    write(corpus, {f"new {number}.txt": f"Heparin {number}\n\nHeparin thins the blood.\n" for number in range(9)})
    with opened(filled, HashedWords()) as session:
        with session.workspace() as workspace:
            before = workspace.library.path
        cancelling = Hooks(progress=lambda *_: cancel.cancel(), cancel=cancel)
        with pytest.raises(Cancelled):
            importing.import_paths(session, [corpus], described(), hooks=cancelling)
        with session.workspace() as workspace:
            assert workspace.library.path == before
        assert not (filled.data / "generations" / "building").exists()
        assert importing.import_paths(session, [corpus], described()).counts["read"] == 9


def test_nobody_is_told_of_the_work_of_another_thread() -> None:
    amounts: list[float] = []
    with following(Hooks(progress=lambda done, *_: amounts.append(done))):
        thread = threading.Thread(target=lambda: hooks.active().progress(1, 3, ""))
        thread.start()
        thread.join()
    assert amounts == []
