"""Many at once: nobody is lost or starved, who goes away frees the place, low priority waits, the end is told."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from localmed.domain.errors import Busy, Cancelled, ModelError
from localmed.domain.ports import UNWATCHED, Message, Reply, Request, Watch
from localmed.models.host.client import Hosted, at_low_priority
from localmed.process import hooks
from tests.models.host.conftest import Start
from tests.models.host.house import WAIT, House, there, until
from tests.scripted import ScriptedChat
from tests.words import pattern

ASK = Request((Message("user", "?"),), 8)


class Endless(ScriptedChat):
    """Speaks until it is cancelled, and says so."""

    def __init__(self) -> None:
        super().__init__([])
        self.cancelled = threading.Event()

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        for _ in range(2000):
            if watch.cancelled():
                self.cancelled.set()
                raise Cancelled("the request was cancelled")
            watch.token("and ")
            time.sleep(0.01)
        return Reply("and ", 1, 1, "stop")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def held(house: House, hosted: Hosted, threads: ThreadPoolExecutor) -> Future[object]:
    """The encoder at work until the test lets it go on."""
    waiting: Future[object] = threads.submit(there(hosted.encoder).encode, [WAIT], "query")
    assert house.encoder.reached.wait(10)
    return waiting


def test_low_priority_waits_for_everybody_else(house: House, hosted: Hosted, threads: ThreadPoolExecutor) -> None:
    first = held(house, hosted, threads)
    encoder = there(hosted.encoder)
    low = threads.submit(at_low_priority(encoder).encode, [f"low {number}" for number in range(70)], "passage")
    until(lambda: house.host.status().waiting["small"] == 1)  # the first of three pieces
    usual = [threads.submit(encoder.encode, [f"usual {number}"], "query") for number in range(3)]
    until(lambda: house.host.status().waiting["small"] == 4)
    house.encoder.go_on.set()
    assert first.result(10) is not None
    for future in [low, *usual]:
        assert len(future.result(10))
    served = [text.split()[0] for text in house.encoder.encoded if text.split()[0] in ("low", "usual")]
    assert served == ["usual"] * 3 + ["low"] * 70


def test_too_many_are_refused_and_the_others_served(start: Start, threads: ThreadPoolExecutor) -> None:
    running = start(waiting=3, per_user=2)
    mine, other = running.hosted("mine"), running.hosted("other")
    first = held(running, mine, threads)
    waiting = [threads.submit(there(mine.encoder).encode, ["mine"], "query") for _ in range(2)]
    until(lambda: running.host.status().waiting["small"] == 2)
    with pytest.raises(Busy, match="this user"):
        there(mine.encoder).encode(["refused"], "query")
    waiting.append(threads.submit(there(other.encoder).encode, ["other"], "query"))
    until(lambda: running.host.status().waiting["small"] == 3)
    with pytest.raises(Busy, match=pattern("model.waiting")):
        there(other.encoder).encode(["refused"], "query")
    running.encoder.go_on.set()
    assert all(len(future.result(10)) == 1 for future in waiting)
    assert first.result(10) is not None
    assert "refused" not in running.encoder.encoded


@pytest.mark.parametrize("how", [Cancelled, InterruptedError])  # who leaves as Ctrl-C does, in the middle of a token
def test_who_cancels_or_goes_away_frees_the_model(start: Start, how: type[Exception]) -> None:
    endless = Endless()
    chat, tokens = there(start(chat=endless).hosted().chat), list[str]()

    def hear(token: str) -> None:
        tokens.append(token)
        if how is InterruptedError:
            raise InterruptedError

    with pytest.raises(how):
        chat.complete(ASK, Watch(hear, lambda: len(tokens) > 3))
    assert endless.cancelled.wait(5)
    assert chat.count(["the queue goes on"]) == [4]


def test_the_end_of_the_host_is_told_to_who_waits(start: Start, threads: ThreadPoolExecutor) -> None:
    running = start(chat=Endless())
    chat = there(running.hosted().chat)
    talking, waiting = threads.submit(chat.complete, ASK), threads.submit(chat.complete, ASK)
    until(lambda: running.host.status().waiting["chat"] == 1)
    began = time.monotonic()
    running.stop()
    assert time.monotonic() - began < 5
    for future in (talking, waiting):
        with pytest.raises(ModelError):
            future.result(10)
    with pytest.raises(ModelError, match=pattern("host.ended.what")):
        chat.complete(ASK)


def test_a_host_whose_folder_is_gone_leaves_the_next_ones_socket(start: Start) -> None:
    first = start()
    shutil.rmtree(first.data)
    second = start()  # nobody else is there, as far as the folder tells
    first.stop()
    assert there(second.hosted().encoder).identity == second.encoder.identity
    shutil.rmtree(second.data)


def test_a_host_that_was_started_again_is_used_without_a_word(start: Start) -> None:
    running = start()
    hosted = running.hosted()
    assert len(there(hosted.encoder).encode(["once"], "query")) == 1
    running.stop()
    running.start()
    assert len(there(hosted.encoder).encode(["again"], "query")) == 1
    assert running.host.status().served == {"encode": 1}


def test_an_encoder_is_told_that_whoever_asked_has_gone(start: Start) -> None:
    """Encoder, reranker and judge look at the hooks of their thread between two batches."""
    house, gone = start(), threading.Event()

    def until_gone(**_: object) -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if hooks.active().cancel.cancelled():
                gone.set()
            hooks.check()
            time.sleep(0.01)

    house.encoder.encode_both = until_gone  # type: ignore[assignment,method-assign]
    wire = house.asked("encoder", "encode_both", {"texts": ["a"], "kind": "query"})
    time.sleep(0.2)
    wire.close()
    assert gone.wait(5)
