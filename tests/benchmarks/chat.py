"""The chat model's child against llama-cpp-python called directly, on GGUF files with random weights built here.

What the weights are does not change what is computed, only what comes of it; so a model of about 100 million random
weights stands for a real one of that size. Both sides read the same tokens with the same number of threads; a decision
asked of llama-cpp-python is a chat completion held to a schema of two labels, which is how it is usually done.
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from localmed.config import ChatSettings
from localmed.errors import ModelError
from localmed.models.llama.adapter import ChatFile, LlamaChat
from localmed.models.queue import Worker
from localmed.ports import Choice, Message, Request
from tests.benchmarks.common import Place, Row, met
from tests.models.tiny_gguf import TINY, Shape, write_gguf

LABELS = ("relevant", "irrelevant")
SCHEMA = {"type": "object", "properties": {"label": {"enum": list(LABELS)}}, "required": ["label"]}
PASSAGES, PREFIX, LENGTH = 20, 200, 250  # how many, and tokens
ROUNDS = 3
CALLS = 30
KILLS = 50
THREADS = len(os.sched_getaffinity(0))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = [f"▁{''.join(each)}" for each in itertools.product(LETTERS, repeat=2)]  # each one token
ANSWER = ('{"', "label", '":', '▁"', "relevant", "irrelevant", '"}', "▁")
LARGE = Shape(width=768, layers=12, heads=12, hidden=2048, context=4096, half=True, pieces=(*SYLLABLES, *ANSWER))


def run(place: Place) -> list[Row]:
    """All rows; five minutes on two cores."""
    tiny = write_gguf(place.work / "tiny.gguf", shape=TINY)
    large = write_gguf(place.work / "large.gguf", shape=LARGE)
    return [*overhead(tiny), *decisions(large), *killed(tiny), fairness()]


@contextmanager
def ours(path: Path, **settings: Any) -> Iterator[LlamaChat]:
    """The adapter on ``path``."""
    file = ChatFile(path.stem, path, "", "chatml", 4096)
    with closing(LlamaChat(file, ChatSettings(context=2048, threads=THREADS, **settings))) as model:
        model.count(["loads it"])
        yield model


@contextmanager
def theirs(path: Path) -> Iterator[Any]:
    """llama-cpp-python on ``path`` with its own defaults but for the number of threads and the template."""
    from llama_cpp import Llama

    with closing(
        Llama(str(path), n_ctx=2048, n_threads=THREADS, n_threads_batch=THREADS, verbose=False, chat_format="chatml")
    ) as model:
        yield model


def asked(model: Any, messages: Sequence[Message], tokens: int, schema: dict[str, Any] | None = None) -> Any:
    """One chat completion of llama-cpp-python."""
    form = {"response_format": {"type": "json_object", "schema": schema}} if schema else {}
    turns = [{"role": each.role, "content": each.content} for each in messages]
    return model.create_chat_completion(turns, max_tokens=tokens, temperature=0.0, **form)


# --- per token and per call ------------------------------------------------------------------------------------


def overhead(path: Path) -> list[Row]:
    """Time a token and time a call beyond it, ours and theirs in turn, on the tiny model."""
    short, long = 1, 257
    found: dict[tuple[str, int], list[float]] = {}
    with ours(path) as mine, theirs(path) as other:
        for number in range(CALLS):
            messages = (Message("user", f"the dose {number}"),)  # a prefix of its own: nothing to reuse but the turn
            for tokens in (short, long):
                calls: dict[str, Callable[[], Any]] = {
                    "ours": lambda asked_of=messages, most=tokens: mine.complete(Request(asked_of, most)),
                    "theirs": lambda asked_of=messages, most=tokens: asked(other, asked_of, most),
                }
                for name, call in calls.items():
                    began = time.perf_counter()
                    reply = call()
                    if tokens == short or _length(reply) == tokens:  # the model may have ended its turn earlier
                        found.setdefault((name, tokens), []).append(time.perf_counter() - began)
    middle = {key: statistics.median(values) for key, values in found.items()}
    token = {name: (middle[name, long] - middle[name, short]) / (long - short) for name in ("ours", "theirs")}
    more = (middle["ours", short] - middle["theirs", short]) * 1000
    ratio = token["ours"] / token["theirs"]
    how = f"GGUF of 0.5 MB, medians of {CALLS} calls in turn, {long - short} tokens; "
    each = f"{token['ours'] * 1e6:.0f} against {token['theirs'] * 1e6:.0f} µs"
    return [
        Row("chat adapter against llama-cpp-python, a token", "<= 1.05x", f"{ratio:.2f}x", met(ratio <= 1.05), how + each),
        Row("chat adapter against llama-cpp-python, a call", "<= 2 ms more", f"{more:+.1f} ms", met(more <= 2), how),
    ]


def _length(reply: Any) -> int:
    return int(reply["usage"]["completion_tokens"] if isinstance(reply, dict) else reply.reply_tokens)


# --- many decisions --------------------------------------------------------------------------------------------


def words(count: int, seed: int) -> str:
    """``count`` words of one token each."""
    return " ".join(SYLLABLES[(seed * 131 + at * 17) % len(SYLLABLES)][1:] for at in range(count))


def decisions(path: Path) -> list[Row]:
    """Twenty passages in one batch of label choices, against twenty chat calls."""
    prefix = (Message("system", words(PREFIX, 1)), Message("user", ""))
    branches = [words(LENGTH, 2 + number) for number in range(PASSAGES)]
    seconds: dict[str, list[float]] = {"batch": [], "cleared": [], "reused": []}
    tokens = 0
    with ours(path) as mine, theirs(path) as other:
        for _ in range(ROUNDS):
            together = _timed(seconds["batch"], lambda: mine.choose(prefix, branches, LABELS))
            for name in ("cleared", "reused"):
                tokens = _timed(seconds[name], lambda kind=name: _one_by_one(other, prefix, branches, kind))
        alone = [mine.choose(prefix, [branch], LABELS)[0] for branch in branches]
    return _compared(seconds, together, alone, tokens)


def _timed(seconds: list[float], call: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    result = call()
    seconds.append(time.perf_counter() - began)
    return result


def _one_by_one(model: Any, prefix: Sequence[Message], branches: Sequence[str], kind: str) -> int:
    """The tokens that were generated in all."""
    total = 0
    for branch in branches:
        if kind == "cleared":
            model.reset()
            model._ctx.kv_cache_clear()
        total += _length(asked(model, [*prefix[:-1], Message("user", branch)], 64, SCHEMA))
    return total


def _compared(
    seconds: dict[str, list[float]], together: list[Choice], alone: list[Choice], tokens: int
) -> list[Row]:
    ratios = {
        name: statistics.median(slow / fast for slow, fast in zip(seconds[name], seconds["batch"], strict=True))
        for name in ("cleared", "reused")
    }
    equal = sum(one.best == other.best for one, other in zip(together, alone, strict=True))
    apart = max(
        abs(one - other)
        for pair in zip(together, alone, strict=True)
        for one, other in zip(pair[0].probabilities, pair[1].probabilities, strict=True)
    )
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    how = (
        f"{PASSAGES} passages of {LENGTH} tokens, prefix {PREFIX}, 100M random weights in float16, {THREADS} cores, "
        f"{ROUNDS} rounds in turn; {middle['batch']:.1f} s against {middle['cleared']:.1f} s and {middle['reused']:.1f} s; "
        f"{tokens / PASSAGES:.1f} tokens generated a call"
    )
    return [
        Row("20 label choices as a batch against 20 chat calls, cache cleared", ">= 1.9x", f"{ratios['cleared']:.2f}x", met(ratios["cleared"] >= 1.9), how),
        Row("the same, with llama-cpp-python's prefix reuse", ">= 1.25x", f"{ratios['reused']:.2f}x", met(ratios["reused"] >= 1.25), how),
        Row("labels as when read one by one", f"{PASSAGES} of {PASSAGES}", f"{equal} of {PASSAGES}", met(equal == PASSAGES), f"largest difference of a probability {apart:.1e}"),
    ]  # fmt: skip


# --- a child that is killed ------------------------------------------------------------------------------------


def killed(path: Path) -> list[Row]:
    """kill -9 of the child during each kind of call."""
    prompt = (Message("user", words(1500, 3)),)
    kinds: dict[str, Callable[[LlamaChat], object]] = {
        "complete": lambda model: model.complete(Request(prompt, 500)),
        "constrained": lambda model: model.complete(Request(prompt, 500, SCHEMA)),
        "choose": lambda model: model.choose(prompt, [words(300, at) for at in range(40)], LABELS),
        "count": lambda model: model.count([words(20_000, at) for at in range(200)]),
    }
    rows = []
    for name, call in kinds.items():
        errors = recoveries = 0
        pids = set()
        with ours(path) as model:
            for _ in range(KILLS):
                pids.add(model.owner.pid)
                errors += _killed_once(model, call)
                recoveries += len(model.count(["again"])) == 1
        orphans = sum(psutil.pid_exists(pid) for pid in pids if pid)
        measured = f"{errors} clean errors, {recoveries} recoveries, {orphans} orphans"
        met_all = (errors, recoveries, orphans) == (KILLS, KILLS, 0)
        rows.append(Row(f"kill -9 during {name}, {KILLS} times", f"{KILLS}, {KILLS}, 0", measured, met(met_all), ""))
    return rows


def _killed_once(model: LlamaChat, call: Callable[[LlamaChat], object]) -> bool:
    """Whether a kill in the middle of ``call`` ended in a ``ModelError``."""
    pid = model.owner.pid
    assert pid
    timer = threading.Timer(0.01, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        call(model)
    except ModelError:
        return True
    finally:
        timer.join()
    return False


# --- the queue -------------------------------------------------------------------------------------------------


def fairness() -> Row:
    """Eight users with twenty requests each, one of whom asks everything before the others begin."""
    users, requests = 8, 20
    waits: list[float] = []
    with closing(Worker(waiting=256, each=32)) as worker:
        futures = []
        for user in range(users):
            for _ in range(requests):
                began = time.perf_counter()
                futures.append(worker.submit(str(user), lambda since=began: waits.append(time.perf_counter() - since) or time.sleep(0.005)))
        for future in futures:
            future.result()
    ratio = max(waits) / statistics.median(waits)
    measured = f"{users * requests - len(waits)} lost, max wait {ratio:.1f}x the median"
    return Row("8 users x 20 requests through the queue", "none lost, <= 3x", measured, met(len(waits) == users * requests and ratio <= 3), "jobs of 5 ms, all asked at once")
