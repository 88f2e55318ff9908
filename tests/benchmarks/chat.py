"""The chat model's child against llama-cpp-python called directly, on GGUF files with random weights built here.

What the weights are does not change what is computed, only what comes of it; so a model of about 100 million random
weights stands for a real one of that size. Both sides read the same tokens with the same number of threads; a decision
asked of llama-cpp-python is a chat completion held to a schema of two labels, which is how it is usually done.

The time of a token and of a call is taken with one thread on each side, llama-cpp-python's default on two cores. With
two, libgomp's threads stay busy for milliseconds after a call, on a core that the other side's next call wants: that
is what would be measured. The other rows have a thread a core; on a machine that is not idle start them with
``GOMP_SPINCOUNT=1000`` (our child sets it for itself), else they show the row about a busy machine once more.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from localmed.config import ChatSettings
from localmed.domain.ports import Choice, Message, Request
from localmed.models.llama.adapter import ChatFile, LlamaChat
from tests.benchmarks import chat_owner
from tests.benchmarks.common import Place, Row, met
from tests.models.tiny_gguf import TINY, Shape, write_gguf

LABELS = ("relevant", "irrelevant")
SCHEMA = {"type": "object", "properties": {"label": {"enum": list(LABELS)}}, "required": ["label"]}
PASSAGES, PREFIX, LENGTH = 20, 200, 250  # how many, and tokens
ROUNDS = 3
CALLS, LONG = 30, 257  # how many, and tokens of a reply
BUSY_CALLS, BUSY_LONG = 3, 17
THREADS = len(os.sched_getaffinity(0))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYLLABLES = [f"▁{''.join(letters)}" for letters in itertools.product(LETTERS, repeat=2)]  # each one token
ANSWER = ('{"', "label", '":', '▁"', "relevant", "irrelevant", '"}', "▁")
LARGE = Shape(width=768, layers=12, heads=12, hidden=2048, context=4096, half=True, pieces=(*SYLLABLES, *ANSWER))


def run(place: Place) -> list[Row]:
    """All rows; six minutes on two cores."""
    tiny = write_gguf(place.work / "tiny.gguf", shape=TINY)
    large = write_gguf(place.work / "large.gguf", shape=LARGE)
    return [
        *overhead(tiny),
        *decisions(large),
        busy(large),
        *chat_owner.killed(partial(ours, tiny)),
        *chat_owner.cancelling(partial(ours, large)),
        chat_owner.fairness(partial(ours, tiny)),
    ]


@contextmanager
def ours(path: Path, threads: int = THREADS) -> Iterator[LlamaChat]:
    """The adapter on ``path``."""
    file = ChatFile(path.stem, path, "", "chatml", 4096)
    with closing(LlamaChat(file, ChatSettings(context=2048, threads=threads))) as model:
        model.count(["loads it"])
        yield model


@contextmanager
def theirs(path: Path, threads: int = THREADS) -> Iterator[Any]:
    """llama-cpp-python on ``path`` with its own defaults but for the number of threads and the template."""
    from llama_cpp import Llama

    with closing(
        Llama(str(path), n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False, chat_format="chatml")
    ) as model:
        yield model


def completed(model: Any, messages: Sequence[Message], tokens: int, schema: dict[str, Any] | None = None) -> Any:
    """One chat completion of llama-cpp-python."""
    form = {"response_format": {"type": "json_object", "schema": schema}} if schema else {}
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return model.create_chat_completion(turns, max_tokens=tokens, temperature=0.0, **form)


# --- per token and per call ------------------------------------------------------------------------------------


def overhead(path: Path) -> list[Row]:
    """Time a token and time a call beyond it, ours and theirs in turn, on the tiny model."""
    with ours(path, threads=1) as mine, theirs(path, threads=1) as other:
        sides = {"ours": partial(_ours, mine), "theirs": partial(completed, other)}
        calls: dict[str, list[float]] = {name: [] for name in sides}
        tokens: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(CALLS):
            messages = (Message("user", f"the dose {number}"),)
            for name, ask in sides.items():
                calls[name].append(_seconds(partial(ask, messages, 1))[0])
            for name, ask in sides.items():
                seconds, length = _seconds(partial(ask, messages, LONG))
                if length > LONG // 4:  # the model may have ended its turn early
                    tokens[name].append((seconds - statistics.median(calls[name])) / (length - 1))
    a_call = {name: statistics.median(values) for name, values in calls.items()}
    a_token = {name: statistics.median(values) for name, values in tokens.items()}
    more, ratio = (a_call["ours"] - a_call["theirs"]) * 1000, a_token["ours"] / a_token["theirs"]
    how = f"GGUF of 0.5 MB, one thread each, medians of {CALLS} calls in turn, "
    note = f"up to {LONG} tokens; {a_token['ours'] * 1e6:.0f} against {a_token['theirs'] * 1e6:.0f} µs"
    one = f"one token; {a_call['ours'] * 1000:.1f} against {a_call['theirs'] * 1000:.1f} ms"
    name = "chat adapter against llama-cpp-python, "
    return [
        Row(f"{name}a token", "<= 1.05x", f"{ratio:.2f}x", met(ratio <= 1.05), how + note),
        Row(f"{name}a call", "<= 2 ms more", f"{more:+.1f} ms", met(more <= 2), how + one),
    ]


def _ours(model: LlamaChat, messages: tuple[Message, ...], tokens: int) -> Any:
    return model.complete(Request(messages, tokens))


def _seconds(call: Callable[[], Any]) -> tuple[float, int]:
    """How long ``call`` took and how many tokens it generated."""
    began = time.perf_counter()
    reply = call()
    return time.perf_counter() - began, _length(reply)


def _length(reply: Any) -> int:
    return int(reply["usage"]["completion_tokens"] if isinstance(reply, dict) else reply.reply_tokens)


def busy(path: Path) -> Row:
    """Time a token on a machine whose cores other processes want too: a reindexing, an encoder, somebody's browser."""
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    messages = (Message("user", words(20, 1)),)
    with ours(path) as mine, theirs(path) as other, _others():
        for _ in range(BUSY_CALLS):
            for name, ask in {"ours": partial(_ours, mine), "theirs": partial(completed, other)}.items():
                took, length = _seconds(partial(ask, messages, BUSY_LONG))
                seconds[name].append(took / length)
    middle = {name: statistics.median(values) * 1000 for name, values in seconds.items()}
    measured = f"{middle['ours']:.0f} against {middle['theirs']:.0f} ms"
    how = f"100M random weights, {THREADS} threads, {THREADS} other processes that compute, {BUSY_CALLS} calls in turn"
    return Row("a token on a busy machine, ours against llama-cpp-python", "-", measured, "-", how)


@contextmanager
def _others() -> Iterator[None]:
    """A process a core that computes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(THREADS)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


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
            together = _timed(seconds["batch"], partial(mine.choose, prefix, branches, LABELS))
            for name in ("cleared", "reused"):
                tokens = _timed(seconds[name], partial(_one_by_one, other, prefix, branches, name))
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
        total += _length(completed(model, [*prefix[:-1], Message("user", branch)], 64, SCHEMA))
    return total


def _compared(seconds: dict[str, list[float]], together: list[Choice], alone: list[Choice], tokens: int) -> list[Row]:
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
        f"{ROUNDS} rounds in turn; {middle['batch']:.1f} s against {middle['cleared']:.1f} s (cleared) and "
        f"{middle['reused']:.1f} s (reused); {tokens / PASSAGES:.1f} tokens generated a call"
    )
    cleared, reused = ratios["cleared"], ratios["reused"]
    close = f"largest difference of a probability {apart:.1e}"
    what = "20 label choices as a batch against 20 chat calls, "
    return [
        Row(f"{what}cache cleared", ">= 1.9x", f"{cleared:.2f}x", met(cleared >= 1.9), how),
        Row(f"{what}prefix reused", ">= 1.25x", f"{reused:.2f}x", met(reused >= 1.25), how),
        Row("labels as when read one by one", str(PASSAGES), str(equal), met(equal == PASSAGES), close),
    ]
