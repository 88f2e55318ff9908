"""The child process that owns a chat model: it may crash, hang or run out of memory without harm to anyone else.

Started by ``adapter.py`` as ``python -m localmed.models.llama.child PARENT_PID``. JSON messages, one a line::

    in    first the settings of ``engine.Setup`` with the limits, then any number of
          ["complete", id, {...}]  ["choose", id, {...}]  ["count", id, {...}]  ["tokens", id, {...}]
          and, while one runs, ["cancel", id]
    out   ["loading"]  ["done", {...}]  and for each request  ["token", text]* where it is heard,  ["beat"]*
          ["chosen", of how many branches, of how many] for each batch of a choice
          then one of   ["done", {...}]  ["error", class, what, remedy]

Rules: every message is a sign of progress (a micro-batch or a token), and one comes a second while there is any, so
that silence means a hang; cancellations are looked for between two micro-batches or tokens; the end of the input,
which comes when the parent dies however it dies, ends the process at once, even in the middle of a request. One thread
reads, computes and writes, and no token is sent that nobody hears: on a busy machine each hand-over to another thread
and each waking of the parent costs a request some milliseconds.

What is enforced: memory and core dumps by the kernel (memory not where a GPU is used, whose driver reserves address
space beyond any limit); no network by the kernel where it lets a process leave its network namespace, else by Python's
audit hook only, which C code does not ask. Not covered: the child can read what its user can read.
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
from localmed.models.llama import decisions, engine
from localmed.models.llama.adapter import OUT_OF_MEMORY
from localmed.process import children, confined

_READ = 2**16  # bytes taken from the pipe at a time: its whole content
_BEAT = 1.0  # seconds between two signs of life where nothing else is sent


class Line:
    """The pipes: requests and cancellations come in, replies go out. One thread's own, but for ``watch``."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests, self._replies = requests.fileno(), replies
        self._lines, self._waiting = children.Lines(sys.maxsize), cast(deque[bytes], deque())
        self._taken = select.poll()
        self._taken.register(self._requests, select.POLLIN)
        self._sent = 0.0
        self._keep = requests  # open

    def watch(self) -> None:
        """End the process with the input, in a thread of its own that is never woken before."""
        hung_up = select.poll()
        hung_up.register(self._requests, 0)  # the end is told unasked
        hung_up.poll()
        os._exit(0)

    def next(self) -> Any:
        """The next message, when it comes; the process ends with the input."""
        while not self._waiting:
            self._read()
        return json.loads(self._waiting.popleft())

    def _read(self) -> None:
        chunk = os.read(self._requests, _READ)
        if not chunk:
            os._exit(0)
        self._waiting.extend(self._lines.take(chunk))

    def send(self, *message: Any) -> None:
        """Write one message; nobody left to read it ends the process."""
        try:
            self._replies.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            self._replies.flush()
        except BrokenPipeError:
            os._exit(0)
        self._sent = time.monotonic()

    def checker(self, request: int) -> Callable[[], None]:
        """What is called between two steps of ``request``: shows progress, and raises if it has been cancelled."""

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
    confined.end_without_parent(int(sys.argv[1]))  # any thread of it may have started us, and may end before it does
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    setup = line.next()
    network = confined.leave_network()  # before the first thread, as the kernel demands
    confined.no_core_dump()
    os.nice(setup.pop("nice"))
    threading.Thread(target=line.watch, daemon=True).start()
    try:
        model = _loaded(line, setup, network)
        while True:
            kind, request, *values = line.next()
            if kind != "cancel":  # one that came too late
                serve(model, line, kind, request, *values)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _loaded(line: Line, setup: dict[str, Any], network: str) -> engine.Engine:
    """The model; the process ends with an error message where it cannot be loaded."""
    line.send("loading")
    memory = setup.pop("memory_bytes")
    try:
        if memory and not _uses_gpu(setup["gpu_layers"]):
            confined.limit_memory(memory)
        model = engine.Engine(engine.Setup(**setup))
    except MemoryError:
        raise
    except Exception as error:
        line.send(*_ending(error))
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
    except MemoryError:  # nothing can be trusted after this
        raise
    except Exception as error:
        line.send(*_ending(error))


def _complete(model: engine.Engine, values: dict[str, Any], check: Callable[[], None], send: Any) -> dict[str, Any]:
    prompt = model.tokens(values["parts"])
    if len(prompt) + values["max_tokens"] > model.context:
        raise TooLong("chat.prompt_too_long", prompt=len(prompt), reply=values["max_tokens"], context=model.context)
    grammar = engine.grammar_of(values["schema"]) if values["schema"] else ""
    emit = partial(send, "token") if values["heard"] else lambda _: None  # ``check`` shows that they come
    with model.sampler(grammar, values["temperature"], values["seed"]) as sampler:
        text, count, finish = model.generate(prompt, values["max_tokens"], sampler, check, emit)
    return {"text": text, "prompt_tokens": len(prompt), "reply_tokens": count, "finish": finish}


def _choose(model: engine.Engine, values: dict[str, Any], check: Callable[[], None], send: Any) -> dict[str, Any]:
    prompts = [model.tokens(parts) for parts in values["prompts"]]
    labels = [tuple(model.continuation(values["prompts"][0], label)) for label in values["labels"]]
    chosen = decisions.choose(model, prompts, labels, check, partial(send, "chosen"))
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


def _ending(error: Exception) -> list[Any]:
    """The closing message of a request or start that failed; never the text of a foreign error."""
    if isinstance(error, ModelError):
        reported = error
    elif isinstance(error, ImportError):
        reported = ModelError("chat.not_installed")
    else:
        reported = ModelError("chat.child_failed", place=confined.place(error))
    return ["error", errors.as_json(reported)]


if __name__ == "__main__":
    main()
