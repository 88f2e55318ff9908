"""What becomes of a chat model's child that is killed, on a GGUF file of random weights that is built here."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from localmed.config import ChatSettings
from localmed.domain.errors import ModelError
from localmed.domain.ports import Message, Request, Watch
from localmed.models.llama.adapter import ChatFile, LlamaChat
from tests.benchmarks.common import Place, Row, met
from tests.models.tiny_gguf import TINY, write_gguf

Call = Callable[[LlamaChat, Watch], object]

LABELS = ("relevant", "irrelevant")
KILLS = 50
SPREAD = 0.6  # of an undisturbed call's shortest time: the kills fall evenly into it, and none after the end

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


def run(place: Place) -> list[Row]:
    """kill -9 of the child during each kind of call, at moments spread over the call."""
    path = write_gguf(place.work / "tiny.gguf", shape=TINY)
    return [_killed(path, name, call) for name, call in KINDS.items()]


def _killed(path: Path, name: str, call: Call) -> Row:
    errors = recoveries = 0
    pids = set()
    with closing(LlamaChat(ChatFile(path.stem, path, "", "chatml", 4096), ChatSettings(context=2048))) as model:
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
