"""The child process that owns a chat model: it may crash, hang or run out of memory without harm to anyone else.

Started by ``process.py`` as ``python -m localmed.models.llama.child PARENT_PID``. JSON messages, one a line::

    in    first the settings of ``engine.Setup`` with the limits, then any number of
          ["complete", id, {...}]  ["choose", id, {...}]  ["count", id, {...}]  and, while one runs, ["cancel", id]
    out   ["loading"]*  ["ready", {...}]  and for each request  ["token", text]*  ["beat"]*
          then one of   ["done", {...}]  ["error", class, what, remedy]

Rules: every message is a sign of progress (a micro-batch or a token), so that silence means a hang; a thread of its
own reads the requests, so that a cancellation is seen while a prompt is read; the end of the input, which comes when
the parent dies however it dies, ends the process at once, even in the middle of a request.

What is enforced: memory and core dumps by the kernel (memory not where a GPU is used, whose driver reserves address
space beyond any limit); no network by the kernel where it lets a process leave its network namespace, else by Python's
audit hook only, which C code does not ask. Not covered: the child can read what its user can read.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from localmed.errors import Cancelled, ModelError
from localmed.models.llama import decisions, engine
from localmed.models.llama.process import OUT_OF_MEMORY

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # from <linux/sched.h>
_BEAT = 1.0  # seconds between two signs of life where nothing else is sent

Message = list[Any]


class Line:
    """The pipes: requests come in, by a thread; replies go out."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests, self._replies = requests, replies
        self._cancelled = -1
        self._sent = 0.0
        self.waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()

    def listen(self) -> None:
        """Take in requests and cancellations; end the process with the input, or where one cannot be taken in."""
        try:
            for line in self._requests:
                message = json.loads(line)
                if message[0] == "cancel":
                    self._cancelled = message[1]
                else:
                    self.waiting.put(message)
            os._exit(0)
        except MemoryError:  # a thread that ended would leave the process deaf
            os._exit(OUT_OF_MEMORY)
        except Exception:
            os._exit(1)

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
            if self._cancelled == request:
                raise Cancelled("the request was cancelled")
            if time.monotonic() - self._sent > _BEAT:
                self.send("beat")

        return check


def main() -> None:
    """Load the model, then answer requests until the parent closes its end."""
    requests, replies = _take_streams()
    if os.getppid() != int(sys.argv[1]):  # it died before we began
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    setup = json.loads(requests.readline() or "{}")
    if not setup:
        os._exit(0)
    line = Line(requests, replies)
    network = _without_network()  # before the first thread, as the kernel demands
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would leave prompts on the disk
    os.nice(setup.pop("nice"))
    threading.Thread(target=line.listen, daemon=True).start()
    model = _loaded(line, setup, network)
    while True:
        serve(model, line, *line.waiting.get())


def _loaded(line: Line, setup: dict[str, Any], network: str) -> engine.Engine:
    """The model; the process ends with an error message where it cannot be loaded."""
    line.send("loading")
    memory = setup.pop("memory_bytes")
    try:
        if memory and not _uses_gpu(setup["gpu_layers"]):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        model = engine.Engine(engine.Setup(**setup))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        line.send(*_ending(error))
        os._exit(1)
    line.send("ready", {"context": model.context, "network": network})
    return model


def _uses_gpu(layers: int) -> bool:
    import llama_cpp

    return layers != 0 and bool(llama_cpp.llama_supports_gpu_offload())


def serve(model: engine.Engine, line: Line, kind: str, request: int, given: dict[str, Any]) -> None:
    """Answer one request."""
    try:
        line.send("done", _DOES[kind](model, given, line.checker(request), line.send))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        line.send(*_ending(error))


def _complete(model: engine.Engine, given: dict[str, Any], check: Callable[[], None], send: Any) -> dict[str, Any]:
    prompt = model.tokens(given["parts"])
    _fits(len(prompt), given["max_tokens"], model.context)
    grammar = engine.grammar_of(given["schema"]) if given["schema"] else ""
    with model.sampler(grammar, given["temperature"], given["seed"]) as sampler:
        text, count, finish = model.generate(
            prompt, given["max_tokens"], sampler, check, lambda piece: send("token", piece)
        )
    return {"text": text, "prompt_tokens": len(prompt), "reply_tokens": count, "finish": finish}


def _choose(model: engine.Engine, given: dict[str, Any], check: Callable[[], None], _send: Any) -> dict[str, Any]:
    prompts = [model.tokens(parts) for parts in given["prompts"]]
    labels = [tuple(model.continuation(given["prompts"][0], label)) for label in given["labels"]]
    return {"probabilities": decisions.choose(model, prompts, labels, check)}


def _count(model: engine.Engine, given: dict[str, Any], check: Callable[[], None], _send: Any) -> dict[str, Any]:
    counts = []
    for text in given["texts"]:
        check()
        counts.append(model.count(text))
    return {"counts": counts}


_DOES: dict[str, Callable[..., dict[str, Any]]] = {"complete": _complete, "choose": _choose, "count": _count}


def _fits(prompt: int, reply: int, context: int) -> None:
    if prompt + reply > context:
        raise ModelError(
            f"the prompt has {prompt} tokens, the reply may have {reply} and the context holds {context}",
            "Give fewer passages, ask for a shorter reply or raise chat.context",
        )


def _ending(error: Exception) -> Message:
    """The closing message of a request or start that failed; never the text of a foreign error."""
    if isinstance(error, ModelError):
        return ["error", type(error).__name__, error.what, error.remedy]
    if isinstance(error, ImportError):
        return ["error", "ModelError", "llama-cpp-python is not installed", "Install localmed with the extra [llama]"]
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "localmed" in frame.filename]
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return ["error", "ModelError", f"the model's process failed ({type(error).__name__}{where})", "Ask again"]


def _without_network() -> str:
    """Leave the network; say who enforces it, "kernel" or "interpreter"."""
    sys.addaudithook(_refuse_sockets)
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(CLONE_NEWNET) == 0 or unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        return "kernel"
    return "interpreter"


def _refuse_sockets(event: str, _arguments: Any) -> None:
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        raise PermissionError("the model's process has no network")


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent, moved away from where libraries read and print; those get ``/dev/null``."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return requests, replies


if __name__ == "__main__":
    main()
