"""A site's models: made once, chosen anew by anybody, closed when the last answer that uses them has ended."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from localmed.config import NONE, ChatSettings, Settings
from localmed.domain import Message, message
from localmed.domain.errors import ModelError
from localmed.models import choice
from localmed.models.host import client
from localmed.models.host.client import Remote
from localmed.models.host.protocol import FOLDER, SOCKET, Welcome
from localmed.models.registry import tested
from localmed.models.registry.registry import silent
from localmed.site import changes
from localmed.site.site import Site
from tests.fakes import HashedWords, import_into, opened, write
from tests.models.chat_server import serving
from tests.models.host.house import House
from tests.models.test_openai_server import without_schema
from tests.scripted import ScriptedChat


def interleaved(call: Callable[[], object]) -> Callable[[], None]:
    """``call``, in which other threads have their turn before every line."""

    def yielding(_frame: FrameType, _event: str, _argument: object) -> Any:
        time.sleep(0)
        return yielding

    def run() -> None:
        before = sys.gettrace()
        sys.settrace(yielding)
        try:
            call()
        finally:
            sys.settrace(before)

    return run


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"aspirin.txt": "Aspirin\n\nAspirin thins the blood.\n"}))
    return settings


class Closable(ScriptedChat):
    """A chat model that has something to end."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Closable]:
    """The chat models that were made, each when a site first needed one."""
    chats: list[Closable] = []

    def make(*_: object) -> Closable:
        chats.append(Closable(lambda _: "yes", "chat", 2000))
        return chats[-1]

    monkeypatch.setattr(choice, "chat", make)
    return chats


# --- models chosen anew -----------------------------------------------------------------------------------------------


def test_threads_get_their_models_while_others_are_chosen(settings: Settings) -> None:
    wrong: list[BaseException] = []
    over = threading.Event()

    def ask() -> None:
        try:
            while not over.is_set():
                assert site.registry.folder
        except BaseException as error:
            wrong.append(error)

    with Site(settings, HashedWords()) as site:
        threads = [threading.Thread(target=interleaved(ask)) for _ in range(4)]
        for thread in threads:
            thread.start()
        site.use("reranker", NONE, silent)
        record = site.registry.folder / "registry.json"
        for number in range(500):
            os.utime(record, ns=(number, number))  # as if it were written again
            time.sleep(0)
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.usefixtures("reranked")
def test_what_another_process_chose_serves_from_the_next_question_on(settings: Settings, made: list[Closable]) -> None:
    with Site(settings, HashedWords()) as here, Site(settings, HashedWords()) as there:
        assert here.reranker is not None
        there.use("reranker", NONE, silent)
        assert here.reranker is None
        assert here.chat is not None
        assert here.unfit_roles
        there.keep_unfit((), None)
        assert here.unfit_roles == frozenset()


def test_a_chat_model_is_closed_when_the_last_answer_that_uses_it_has_ended(
    filled: Settings, made: list[Closable]
) -> None:
    with Site(filled, HashedWords()) as site:
        with site.workspace():
            assert site.chat is made[0]
            site.use("reranker", NONE, silent)
            assert site.chat is made[1], "the next question has the next model"
            assert not made[0].closed
        assert made[0].closed
        assert not made[1].closed
    assert made[1].closed


def test_what_a_chat_server_can_do_is_found_out_before_its_self_test(filled: Settings) -> None:
    """A server that takes no schema is asked without one from then on, by the self-test already."""
    with serving(without_schema) as (address, requests):
        chat = ChatSettings(server=address, servers=(address,), server_model="m")
        with opened(replace(filled, chat=chat), HashedWords()) as session:
            unfit = changes.test_chat(session, lambda done, total: None)
            registry = session.site.registry
            assert tested.features(registry.folder, "m") == tested.Features(schema=False, logprobs=False)
            assert unfit, "it says no to everything"
        with_schema = [body["messages"][-1]["content"] for _, _, body in requests if "response_format" in body]
        assert {*with_schema} == {"Write a short greeting."}, "the look at it alone"


def test_an_answer_keeps_the_models_that_it_began_with(filled: Settings, made: list[Closable]) -> None:
    with Site(filled, HashedWords()) as site, site.workspace() as workspace:
        began = dict(workspace.provenance(judged=True).models)
        site.use("reranker", NONE, silent)
        assert dict(workspace.provenance(judged=True).models) == began
        with site.workspace() as other:
            assert "reranker" not in dict(other.provenance().models)


# --- the model host ---------------------------------------------------------------------------------------------------


def house_of(settings: Settings) -> House:
    """A host of the encoder that the site chooses."""
    with Site(settings) as site:
        encoder = choice.choices(site.serving, site.registry.registrations, settings.chat)["encoder"]
    return House(settings.data, choices={"encoder": encoder})


def test_a_host_that_comes_back_with_other_models_is_left_for_ones_own(settings: Settings) -> None:
    house = house_of(settings)
    house.start()
    with Site(settings) as site:
        assert isinstance(site.encoder, Remote)
        house.stop()
        house.choices = {"encoder": "another"}
        house.start()
        assert not isinstance(site.encoder, Remote)
        house.stop()
        house.choices = house_of(settings).choices
        house.start()
        assert isinstance(site.encoder, Remote), "and used again when it has the right ones"
        assert site.encoder.encode(["aspirin"], "query").any()
        house.stop()


def test_a_host_that_was_killed_fails_one_request_and_no_more(settings: Settings) -> None:
    house = house_of(settings)
    house.start()
    socket = settings.data / FOLDER / SOCKET
    left = socket.with_name("left")
    with Site(settings) as site:
        encoder = site.encoder
        assert encoder.encode(["aspirin"], "query").any()
        os.link(socket, left)
        house.stop()
        left.rename(socket)  # as a process that is killed leaves it
        with pytest.raises(ModelError):
            encoder.encode(["aspirin"], "query")
        assert not isinstance(site.encoder, Remote)


def test_a_host_that_was_busy_is_used_by_a_later_question(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ASKED_AGAIN", 0.0)
    house, answers, greet = house_of(settings), False, client.Client.greet

    def greeted(self: client.Client) -> Welcome:
        if not answers:
            raise ModelError("host.not_within")
        return greet(self)

    monkeypatch.setattr(client.Client, "greet", greeted)
    house.start()
    with Site(settings) as site:
        own = site.encoder
        assert not isinstance(own, Remote)
        assert site.encoder is own, "what was made is kept while it stays busy"
        answers, until = True, time.monotonic() + 10
        while not isinstance(site.encoder, Remote) and time.monotonic() < until:
            time.sleep(0.01)
        assert isinstance(site.encoder, Remote)
        assert site.encoder.encode(["aspirin"], "query").any()
    house.stop()


# --- what is told -----------------------------------------------------------------------------------------------------


def test_no_remark_of_another_thread_is_lost(settings: Settings) -> None:
    with opened(settings, HashedWords()) as session:
        told: list[Message] = []

        def add() -> None:
            for number in range(2000):
                session.unaudited.append(message("literal", text=str(number)))

        adding = threading.Thread(target=interleaved(add))
        adding.start()
        draining = interleaved(lambda: told.extend(session.remarks()))
        while adding.is_alive():
            draining()
        told += session.remarks()
    assert len(told) == len(set(told)) == 2000
