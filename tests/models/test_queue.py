"""The queue in front of a model: order, bounds, cancellation, fairness; no model and hardly any waiting."""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import closing
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as some

from localmed.domain.errors import Busy, ModelError
from localmed.models.queue import Turns, Worker


def order(turns: Turns[str]) -> list[str]:
    return [turns.next() for _ in range(len(turns))]


def turns_of(*items: str) -> Turns[str]:
    """``items`` wait, each for the user of its first letter; at low priority where that is an l."""
    turns: Turns[str] = Turns(10, 10)
    for item in items:
        turns.put(item[0], item, low=item[0] == "l")
    return turns


def test_users_take_turns_and_low_priority_comes_last() -> None:
    assert order(turns_of("a1", "a2", "l1", "a3", "b1", "c1", "b2")) == ["a1", "b1", "c1", "a2", "b2", "a3", "l1"]
    turns = turns_of("a1", "b1")
    assert turns.next() == "a1"
    turns.put("a", "a2")
    assert order(turns) == ["b1", "a2"], "who comes back waits behind the others"


def test_both_bounds_refuse_and_lose_nothing() -> None:
    turns: Turns[str] = Turns(waiting=3, per_user=2)
    turns.put("a", "a1")
    turns.put("a", "a2")
    with pytest.raises(Busy, match="waiting_each"):
        turns.put("a", "a3")
    turns.put("b", "b1")
    with pytest.raises(Busy, match=r"chat\.waiting"):
        turns.put("c", "c1")
    assert order(turns) == ["a1", "b1", "a2"]
    with pytest.raises(IndexError):
        turns.next()
    turns.put("c", "c1")  # a refused user is not remembered
    assert order(turns) == ["c1"]


@given(some.lists(some.tuples(some.sampled_from("abcd"), some.booleans()), max_size=40))
def test_none_is_lost_and_each_line_keeps_its_order(requests: list[tuple[str, bool]]) -> None:
    turns: Turns[tuple[str, bool, int]] = Turns(100, 100)
    for number, (user, low) in enumerate(requests):
        turns.put(user, (user, low, number), low)
    served = [turns.next() for _ in requests]
    assert sorted(item[2] for item in served) == list(range(len(requests)))
    for user in "abcd":
        for low in (False, True):
            mine = [item[2] for item in served if item[:2] == (user, low)]
            assert mine == sorted(mine)
    assert [item[1] for item in served] == sorted(item[1] for item in served)


def test_an_error_belongs_to_whoever_asked_and_who_left_is_not_served() -> None:
    def fail() -> None:
        raise ModelError("this one")

    gate, done = threading.Event(), list[str]()
    with closing(Worker(waiting=10, per_user=10)) as worker:
        worker.submit("first", gate.wait)
        assert worker.submit("a", lambda: done.append("a")).cancel()
        failed, well = worker.submit("a", fail), worker.submit("b", lambda: 7)
        last, low = (
            worker.submit("a", lambda: done.append("last")),
            worker.submit("b", lambda: done.append("low"), True),
        )
        usual = worker.submit("b", lambda: done.append("usual"))
        gate.set()
        with pytest.raises(ModelError, match="this one"):
            failed.result(5)
        assert well.result(5) == 7
        for future in (last, low, usual):
            future.result(5)
        assert done == ["last", "usual", "low"], "in turns"


def test_who_has_gone_keeps_no_place_and_no_text() -> None:
    class Text(str):
        """Can be referred to weakly."""

    gate = threading.Event()
    with closing(Worker(waiting=3, per_user=2)) as worker:
        worker.submit("first", gate.wait)
        while worker.waiting():
            time.sleep(0.001)
        kept = [worker.submit(user, lambda: 1) for user in "ab"]
        for _ in range(5):
            text = Text("of a patient")
            left, seen = worker.submit("a", partial(len, text)), weakref.ref(text)
            with pytest.raises(Busy):
                worker.submit("c", lambda: 2)
            assert left.cancel()
            del left, text
            assert seen() is None  # at once, not when garbage is collected
            assert worker.waiting() == 2
        gate.set()
        assert [future.result(5) for future in kept] == [1, 1]


def test_closing_cancels_who_waits_and_refuses_who_comes() -> None:
    worker, gate, begun = Worker(10, 10), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return gate.wait()

    running = worker.submit("a", work)
    waiting = worker.submit("b", lambda: 1)
    assert begun.wait(10), "what has not begun would be cancelled too"
    threading.Timer(0.05, gate.set).start()
    worker.close()
    assert running.result(1)
    assert waiting.cancelled()
    with pytest.raises(Busy):
        worker.submit("c", lambda: 1)
