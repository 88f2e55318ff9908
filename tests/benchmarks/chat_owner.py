"""What becomes of a chat model's child that is killed or told to stop, and of many users who want it at once."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from typing import Any

import psutil

from localmed.domain.errors import Cancelled, ModelError
from localmed.domain.ports import Message, Request, Watch
from localmed.models.llama.adapter import LlamaChat
from localmed.models.queue import Worker
from tests.benchmarks.common import Row, met

Opened = Callable[[], AbstractContextManager[LlamaChat]]
Call = Callable[[LlamaChat, Watch], object]

LABELS = ("relevant", "irrelevant")
KILLS = 50
SPREAD = 0.6  # of an undisturbed call's shortest time: the kills fall evenly into it, and none after the end
CANCELS = 20
LOOK = 20.0  # milliseconds between two questions whether a request is cancelled
USERS, REQUESTS = 8, 20

LISTED: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
PROMPT = (Message("user", "the dose " * 700),)  # two tokens each
KINDS: dict[str, Call] = {
    "complete": lambda model, watch: model.complete(Request(PROMPT, 500), watch),
    "constrained": lambda model, watch: model.complete(Request(PROMPT, 500, LISTED), watch),
    "choose": lambda model, watch: model.choose(
        PROMPT, [f"{'the dose ' * 100}{at}" for at in range(40)], LABELS, watch
    ),
    "count": lambda model, watch: model.owner.ask("count", {"texts": ["the dose " * 20_000] * 20}, watch),
}


# --- a child that is killed ------------------------------------------------------------------------------------


def killed(opened: Opened) -> list[Row]:
    """kill -9 of the child during each kind of call, at moments spread over the call."""
    return [_killed(name, call, opened) for name, call in KINDS.items()]


def _killed(name: str, call: Call, opened: Opened) -> Row:
    errors = recoveries = 0
    pids = set()
    with opened() as model:
        before = model.count(["the dose"])
        whole = min(_undisturbed(model, call) for _ in range(3))
        for number in range(KILLS):
            pids.add(model.owner.pid)
            errors += _killed_once(model, call, whole * SPREAD * number / KILLS)
            recoveries += model.count(["the dose"]) == before
    orphans = sum(psutil.pid_exists(pid) for pid in pids if pid)
    measured = f"{errors} clean errors, {recoveries} recoveries, {orphans} orphans"
    met_all = (errors, recoveries, orphans) == (KILLS, KILLS, 0)
    how = f"0 to {whole * SPREAD * 1000:.0f} ms after the request was sent"
    return Row(f"kill -9 during {name}, {KILLS} times", f"{KILLS}, {KILLS}, 0", measured, met(met_all), how)


def _undisturbed(model: LlamaChat, call: Call) -> float:
    """The seconds that ``call`` takes."""
    began = time.perf_counter()
    with suppress(ModelError):  # a reply that is cut before the array ends
        call(model, Watch())
    return time.perf_counter() - began


def _killed_once(model: LlamaChat, call: Call, delay: float) -> bool:
    """Whether a kill ``delay`` seconds into ``call`` ended in a ``ModelError`` that says so, and in no zombie."""
    pid = model.owner.pid
    assert pid
    timer = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))

    def sent() -> bool:  # asked as soon as the request is under way
        if timer.ident is None:
            timer.start()
        return False

    try:
        call(model, Watch(cancelled=sent))
    except ModelError as error:
        return "was killed" in error.what and not psutil.pid_exists(pid)
    finally:
        timer.join()
    return False


# --- a request that is cancelled ---------------------------------------------------------------------------------


def cancelling(opened: Opened) -> list[Row]:
    """How long after the caller said so a request ends, while the prompt is read and while tokens come."""
    prompt, reply = Request((Message("user", "the dose " * 300),), 1), Request((Message("user", "the dose"),), 200)
    with opened() as model:
        tokens = model.complete(prompt).prompt_tokens
        batch = _undisturbed(model, lambda chat, watch: chat.complete(prompt, watch)) / (tokens / 256) * 1000
        token = _token(model, reply)
        reading = [_cancelled(model, prompt, batch / 1000 * (1 + number % 4)) for number in range(CANCELS)]
        writing = [_cancelled(model, reply, token / 1000 * (5 + number)) for number in range(CANCELS)]
    return [
        _row("while a prompt is read", "micro-batch", batch, reading),
        _row("while tokens come", "token", token, writing),
    ]


def _token(model: LlamaChat, request: Request) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    reply = model.complete(request)
    return (time.perf_counter() - began) / max(1, reply.reply_tokens) * 1000


def _cancelled(model: LlamaChat, request: Request, after: float) -> float:
    """Milliseconds from the cancellation, ``after`` seconds into the request, to its end."""
    pid, moment = model.owner.pid, time.perf_counter() + after
    try:
        model.complete(request, Watch(cancelled=lambda: time.perf_counter() >= moment))
    except Cancelled:
        assert model.owner.pid == pid
        return (time.perf_counter() - moment) * 1000
    raise AssertionError("the request ended before it was cancelled")


def _row(when: str, unit: str, step: float, delays: list[float]) -> Row:
    middle, most = statistics.median(delays), max(delays)
    how = (
        f"{CANCELS} times, 100M random weights; longest {most:.0f} ms, a {unit} takes {step:.0f} ms, looks every 20 ms"
    )
    within = met(middle <= step + LOOK)
    return Row(f"cancelling {when}, to the end of the call", f"one {unit}", f"{middle:.0f} ms", within, how)


# --- the queue -------------------------------------------------------------------------------------------------


def fairness(opened: Opened) -> Row:
    """Eight users with twenty requests each, one user after the other, all before the first is done."""
    waits: list[float] = []
    replies: list[int] = []
    with opened() as model, closing(Worker(waiting=256, per_user=32)) as worker:

        def job(user: int, since: float) -> None:
            waits.append(time.perf_counter() - since)
            replies.append(model.complete(Request((Message("user", f"the dose {user}"),), 20)).prompt_tokens)

        futures = [
            worker.submit(str(user), partial(job, user, time.perf_counter()))
            for user in range(USERS)
            for _ in range(REQUESTS)
        ]
        wait(futures)
    ratio = max(waits) / statistics.median(waits)
    well = len(replies) == len(futures) and ratio <= 3
    measured = f"{len(futures) - len(replies)} lost, longest wait {ratio:.1f}x the median"
    how = "requests of up to 20 tokens to the tiny model"
    return Row(f"{USERS} users x {REQUESTS} requests through the queue", "none lost, <= 3x", measured, met(well), how)
