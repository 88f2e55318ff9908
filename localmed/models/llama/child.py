"""The child process that owns a chat model: it may crash, hang or run out of memory without harming other processes.

Started by ``adapter.py`` as ``python -m localmed.models.llama.child PARENT_PID``. JSON messages, one a line::

    in    first the fields of ``engine.Setup`` with the limits, then any number of
          ["complete", id, {...}]  ["choose", id, {...}]  ["count", id, {...}]  ["tokens", id, {...}]
          and, while one runs, ["cancel", id]
    out   ["loading"]  ["done", {...}]  and for each request  ["token", text]* if requested,  ["beat"]*
          ["chosen", branches done, branches] for each batch of a choice
          then one of   ["done", {...}]  ["error", {...}]

A message is sent at least once a second while there is progress (a micro-batch or a token), so silence means a hang.
Cancellation is checked between micro-batches and tokens. The end of the input, which comes when the parent dies, ends
the process at once. One thread reads, computes and writes, and tokens are sent only on request: on a busy machine each
hand-over to another thread and each wake-up of the parent costs milliseconds.

The kernel limits memory (not with a GPU, whose driver reserves address space beyond any limit) and core dumps. It
blocks the network if the process may leave its network namespace; otherwise only Python's audit hook does, which C code
bypasses. Not covered: the child can read its user's files.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, cast

from localmed.domain import errors
from localmed.domain.errors import Cancelled, ModelError, TooLong
from localmed.models.llama import engine
from localmed.models.llama.adapter import OUT_OF_MEMORY
from localmed.process import children, confined

_READ = 2**16  # bytes read from the pipe at a time: its whole buffer
_BEAT = 1.0  # seconds between signs of life if nothing else is sent


class Line:
    """The pipes to the parent; used by one thread, except ``watch``."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests, self._replies = requests.fileno(), replies
        self._lines, self._waiting = children.Lines(sys.maxsize), cast(deque[bytes], deque())
        self._taken = select.poll()
        self._taken.register(self._requests, select.POLLIN)
        self._sent = 0.0
        self._keep = requests  # open

    def watch(self) -> None:
        """End the process when the input closes; a thread of its own."""
        hung_up = select.poll()
        hung_up.register(self._requests, 0)  # POLLHUP is always reported
        hung_up.poll()
        os._exit(0)

    def next(self) -> Any:
        """The next message; the process ends with the input."""
        while not self._waiting:
            self._read()
        return json.loads(self._waiting.popleft())

    def _read(self) -> None:
        chunk = os.read(self._requests, _READ)
        if not chunk:
            os._exit(0)
        self._waiting.extend(self._lines.take(chunk))

    def send(self, *message: Any) -> None:
        """Write one message; end the process if nobody can read it."""
        try:
            self._replies.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            self._replies.flush()
        except BrokenPipeError:
            os._exit(0)
        self._sent = time.monotonic()

    def checker(self, request: int) -> Callable[[], None]:
        """A function to call between two steps of ``request``: shows progress, and raises if it was cancelled."""

        def check() -> None:
            while self._taken.poll(0):
                self._read()
            while self._waiting:
                if self.next() == ["cancel", request]:
                    raise Cancelled("model.cancelled")
            if time.monotonic() - self._sent > _BEAT:
                self.send("beat")

        return check


def main() -> None:
    """Load the model, then answer requests until the parent closes its end."""
    line = Line(*confined.take_streams())
    confined.end_without_parent(int(sys.argv[1]))  # the thread that started this process may end before its process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    setup = line.next()
    network = confined.leave_network()  # before the first thread, as the kernel requires
    confined.no_core_dump()
    os.nice(setup.pop("nice"))
    threading.Thread(target=line.watch, daemon=True).start()
    try:
        model = _load(line, setup, network)
        while True:
            kind, request, *values = line.next()
            if kind != "cancel":  # else it came too late
                serve(model, line, kind, request, *values)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _load(line: Line, setup: dict[str, Any], network: str) -> engine.Engine:
    line.send("loading")
    memory = setup.pop("memory_bytes")
    try:
        if memory and not _uses_gpu(setup["gpu_layers"]):
            confined.limit_memory(memory)
        model = engine.Engine(engine.Setup(**setup))
    except MemoryError:
        raise
    except Exception as error:
        line.send(*_error_message(error))
        os._exit(1)
    line.send("done", {"context": model.context, "network": network})
    return model


def _uses_gpu(layers: int) -> bool:
    import llama_cpp

    return layers != 0 and bool(llama_cpp.llama_supports_gpu_offload())


def serve(model: engine.Engine, line: Line, kind: str, request: int, values: dict[str, Any]) -> None:
    """Answer one request."""
    try:
        line.send("done", _DOES[kind](model, values, line.checker(request), line.send))
    except MemoryError:  # the process is in an unknown state
        raise
    except Exception as error:
        line.send(*_error_message(error))


def _complete(model: engine.Engine, values: dict[str, Any], check: Callable[[], None], send: Any) -> dict[str, Any]:
    prompt = model.tokens(values["parts"])
    if len(prompt) + values["max_tokens"] > model.context:
        raise TooLong("chat.prompt_too_long", prompt=len(prompt), reply=values["max_tokens"], context=model.context)
    grammar = engine.grammar_of(values["schema"]) if values["schema"] else ""
    emit = partial(send, "token") if values["heard"] else lambda _: None  # ``check`` sends signs of life
    with model.sampler(grammar, values["temperature"], values["seed"]) as sampler:
        text, count, finish = model.generate(prompt, values["max_tokens"], sampler, check, emit)
    return {"text": text, "prompt_tokens": len(prompt), "reply_tokens": count, "finish": finish}


def _choose(model: engine.Engine, values: dict[str, Any], check: Callable[[], None], send: Any) -> dict[str, Any]:
    prompts = [model.tokens(parts) for parts in values["prompts"]]
    labels = [tuple(model.continuation(values["prompts"][0], label)) for label in values["labels"]]
    chosen = engine.choose(model, prompts, labels, check, partial(send, "chosen"))
    return {"probabilities": [row for row, _ in chosen], "masses": [mass for _, mass in chosen]}


def _count(model: engine.Engine, values: dict[str, Any], check: Callable[[], None], _send: Any) -> dict[str, Any]:
    counts = []
    for text in values["texts"]:
        check()
        counts.append(model.count(text))
    return {"counts": counts}


def _tokens(model: engine.Engine, values: dict[str, Any], _check: Callable[[], None], _send: Any) -> dict[str, Any]:
    reply = model.continuation(values["parts"], values["reply"])
    return {"prompt": model.tokens(values["parts"]), "reply": [*reply, model.end]}


_DOES: dict[str, Callable[..., dict[str, Any]]] = {
    "complete": _complete,
    "choose": _choose,
    "count": _count,
    "tokens": _tokens,
}


def _error_message(error: Exception) -> list[Any]:
    """The message for an error; never the text of a foreign exception."""
    if isinstance(error, ModelError):
        reported = error
    elif isinstance(error, ImportError):
        reported = ModelError("chat.not_installed")
    else:
        reported = ModelError("chat.child_failed", place=confined.place(error))
    return ["error", errors.as_json(reported)]


if __name__ == "__main__":
    main()
