"""Who waits and who is refused; what goes wrong on the way of an answer, and search beside it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localmed.domain.errors import Busy, Cancelled, ModelError
from localmed.process.hooks import Cancel, Hooks
from localmed.site.session import Session
from localmed.site.site import Site
from localmed.web.admission import BEGUN_WITHIN, Queue
from tests.fakes import HashedWords
from tests.web.conftest import Clients, served

QUESTION = "What is the maximum dose of paracetamol in adults?"


def test_places_are_few_for_one_and_bounded_in_all() -> None:
    queue = Queue(at_once=1, waiting=2, for_one=2)
    queue.enter("a")
    queue.enter("a")
    with pytest.raises(Busy):
        queue.enter("a")
    queue.enter("b")
    with pytest.raises(Busy) as refused:
        queue.enter("c")
    assert dict(refused.value.message.parameters)["seconds"] == 6


def test_whoever_came_first_is_first_and_leaves_a_place() -> None:
    queue, order = Queue(at_once=1, waiting=3, for_one=9), []
    places = [queue.enter("a") for _ in range(3)]

    def work(number: int) -> None:
        with queue.turn(places[number], Hooks()):
            order.append(number)
            time.sleep(0.02)

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2]
    assert queue.enter("b")


def test_who_gives_up_while_waiting_leaves_the_place() -> None:
    queue, cancel = Queue(at_once=1, waiting=1, for_one=9), Cancel()
    queue.enter("a")
    place = queue.enter("a")
    cancel.cancel()
    with pytest.raises(Cancelled), queue.turn(place, Hooks(cancel=cancel)):
        pass
    assert queue.enter("a")


def test_a_place_that_nobody_takes_up_is_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(at_once=1, waiting=0, for_one=9)
    queue.enter("a")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + BEGUN_WITHIN + 1)
    assert queue.enter("b")


@pytest.fixture
def narrow(copied_clients: Clients) -> Iterator[Clients]:
    """A server that makes one answer at once, for whom nobody waits."""
    web = replace(copied_clients.settings.web, answers_at_once=1, answers_waiting=1, answers_for_one=1)
    changed = replace(copied_clients.settings, web=web)
    with Site(changed, HashedWords()) as site:
        yield Clients(changed, site)


def test_a_full_queue_is_429_and_search_still_answers(narrow: Clients) -> None:
    reader = narrow("reader")
    reader.http.app.state.queue.enter("reader")  # type: ignore[attr-defined]
    reply = reader.form("/ask", question=QUESTION)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
    assert "ask again in about 2 s" in reply.text
    assert "4 g in 24 hours" in reader.form("/search", question="paracetamol").text


def test_a_host_that_dies_mid_answer_is_told_and_leaves_its_place(
    narrow: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise ModelError("host.gone")

    reader = narrow("reader")
    monkeypatch.setattr(Session, "ask", dies)
    values = {"form": reader.token(), "question": QUESTION}
    for _ in range(2):
        reply = reader.http.post("/ask", data=values, headers={"accept": "text/event-stream"})
        events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
        assert events[-1]["kind"] == "error"
    assert "4 g in 24 hours" in reader.form("/search", question="paracetamol").text


def test_slow_clients_hold_nobody_up(client: Clients) -> None:
    reader = client("reader")
    with served(client) as url:
        host, port = url.removeprefix("http://").split(":")
        slow = [socket.create_connection((host, int(port))) for _ in range(50)]  # more than there are threads
        for one in slow:
            one.sendall(b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n"
                        b"Content-Type: application/x-www-form-urlencoded\r\n\r\nquestion=")  # fmt: skip
        begun = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=10) as quick:
            quick.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert quick.recv(15).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - begun < 10
        for one in slow:
            one.close()
    assert reader.get("/search").status_code == 200
