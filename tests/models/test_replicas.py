"""Several servers with one model: who takes a request, who takes over, and how many are asked at a time."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from localmed.config import ChatSettings
from localmed.domain.errors import Cancelled, Faltered, ModelError
from localmed.domain.ports import UNWATCHED, Request, Watch
from localmed.models import openai_server
from localmed.models.openai_server import Address, OpenAIServer, Replicas
from tests.models.chat_contract import ASK
from tests.models.chat_server import Handle, Handler, serving, well

SECONDS = 60.0  # at most, for what takes less than one
ONE, TWO = ("http", "127.0.0.1", 1), ("http", "127.0.0.1", 2)


def adapter(*addresses: str, seconds: float = SECONDS) -> OpenAIServer:
    settings = ChatSettings(servers=addresses, replicas=addresses[1:], server_seconds=seconds, connect_seconds=5.0)
    return OpenAIServer(addresses[0], "some-model", 2000, settings)


def reply_text(model: OpenAIServer) -> str:
    return model.complete(Request(ASK, 8)).text


def failing(handler: Handler, _body: dict[str, Any]) -> None:
    handler.answer({}, 503)


def test_another_answers_when_one_dies_in_the_middle_of_a_call() -> None:
    asked, die = threading.Event(), threading.Event()

    def dies(handler: Handler, _: dict[str, Any]) -> None:
        asked.set()
        die.wait(SECONDS)
        handler.connection.shutdown(2)

    with serving(dies) as (dying, refused), serving(well(True)) as (living, requests):
        model, texts = adapter(dying, living), list[str]()
        caller = threading.Thread(target=lambda: texts.append(reply_text(model)), daemon=True)
        caller.start()
        assert asked.wait(SECONDS)
        assert not requests
        die.set()
        caller.join(SECONDS)
        assert texts
        assert texts[0].startswith("counted")
        assert reply_text(model) == texts[0]
        assert (len(refused), len(requests)) == (1, 2), "the one that died is left out"


def test_another_answers_when_one_says_5xx() -> None:
    with serving(failing) as (broken, refused), serving(well(True)) as (whole, requests):
        model = adapter(broken, whole)
        for _ in range(3):
            assert reply_text(model).startswith("counted")
        assert (len(refused), len(requests)) == (1, 3)
        assert model.count(["three words here"]) == [3]


def test_who_is_gone_is_passed_over_and_both_gone_is_an_error() -> None:
    with ExitStack() as stack:
        one = stack.enter_context(serving(well(True)))[0]
        two = stack.enter_context(serving(well(True)))[0]
        model = adapter(one, two)
    with pytest.raises(ModelError, match="cannot be reached") as raised:
        reply_text(model)
    assert two in str(raised.value), "the one that was asked last is named"


def test_who_was_left_out_is_asked_how_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_server, "REST_SECONDS", 0.0)
    handles: list[Handle] = [failing]
    with (
        serving(lambda handler, body: handles[0](handler, body)) as (broken, refused),
        serving(well(True)) as (whole, _),
    ):
        model = adapter(broken, whole)
        reply_text(model)
        reply_text(model)
        assert len(refused) == 1, "while it is not well it gets no request"
        handles[0] = well(True)
        _hold(model, 1)
        assert len(refused) == 1, "its health is still bad"
        monkeypatch.setattr(Handler, "do_GET", lambda handler: handler.answer({"status": "ok"}), raising=False)
        _hold(model, 1)
        assert len(refused) == 2, "it is back"


def _hold(model: OpenAIServer, count: int) -> None:
    """Ask while the other replica has ``count`` requests running, so that the one left out is the less busy."""
    model._replicas.replicas[1].running += count
    try:
        reply_text(model)
    finally:
        model._replicas.replicas[1].running -= count


# --- places --------------------------------------------------------------------------------------------------------


def pool(well: bool = True) -> Replicas:
    return Replicas([ONE, TWO], lambda address: well, at_once=1)


def test_the_least_busy_takes_it_and_no_more_than_its_places() -> None:
    both = pool()
    with both.reserve(1, UNWATCHED) as one, both.reserve(1, UNWATCHED) as two:
        assert {one.address, two.address} == {ONE, TWO}
        with pytest.raises(ModelError, match="slots"), both.reserve(0.1, UNWATCHED):
            pass
        with pytest.raises(Cancelled), both.reserve(SECONDS, Watch(cancelled=lambda: True)):
            pass
    with both.reserve(1, UNWATCHED) as again:
        assert again.running == 1


def test_who_waits_gets_the_next_place() -> None:
    both, addresses = pool(), list[Address]()

    def wait() -> None:
        with both.reserve(SECONDS, UNWATCHED) as replica:
            addresses.append(replica.address)

    with both.reserve(1, UNWATCHED):
        with both.reserve(1, UNWATCHED) as second:
            waiting = threading.Thread(target=wait, daemon=True)
            waiting.start()
        waiting.join(SECONDS)
        assert addresses == [second.address]


def test_if_all_are_left_out_the_one_that_was_first_is_tried() -> None:
    both = pool(well=False)
    with suppress(Faltered), both.reserve(1, UNWATCHED) as one:
        with suppress(Faltered), both.reserve(1, UNWATCHED) as two:
            raise Faltered("chat.server_late")
        time.sleep(0.001)  # the clock must move
        raise Faltered("chat.server_late")
    with both.reserve(1, UNWATCHED) as replica:
        assert replica is two
    with both.reserve(1, UNWATCHED) as replica:
        assert replica is two, "it is well again"
    assert one is not two
