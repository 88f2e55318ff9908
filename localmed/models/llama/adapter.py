"""A ``ChatModel`` on a GGUF file: starts the child process, sends it requests, and replaces it when it fails.

One request runs at a time. The child is ended if it is silent for longer than a named bound, loads for too long,
crashes or sends an invalid message; the caller gets a ``ModelError`` that says which, and the next request starts a new
child. The child's messages are validated. Requests and replies are neither kept nor logged.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from localmed.config import ChatSettings
from localmed.domain import errors
from localmed.domain.errors import Cancelled, LocalmedError, ModelError, UsageError
from localmed.domain.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.models import structured
from localmed.models.templates import find_template, render
from localmed.process import children

COMMAND = children.command("localmed.models.llama.child")
OUT_OF_MEMORY = 3  # exit code of a child that ran out of memory and is in an unknown state
_LOOK = 0.02  # seconds between checks for cancellation: imperceptible, and 50 wake-ups a second cost nothing
SPLIT = re.compile(r"(?P<name>.+)-00001-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """A registered model file; ``context`` is the longest context that the model was trained for, in tokens."""

    name: str
    path: Path
    sha256: str
    template: str
    context: int


class LlamaChat:
    """A ``CountingChat``. Requests wait for each other; a queue in front makes that fair.

    ``admit`` is called before each load and raises if the file may not be loaded (its hash has changed).
    """

    def __init__(
        self,
        file: ChatFile,
        settings: ChatSettings,
        admit: Callable[[], object] = lambda: None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._file, self._settings = file, settings
        self._template = find_template(file.template)
        self.identity = ChatIdentity(file.name, file.sha256, min(settings.context, file.context))
        self.owner = Owner(self._setup, settings, admit, command)

    def close(self) -> None:
        """End the child process."""
        self.owner.close()

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        if request.max_tokens < 1:
            raise UsageError("chat.no_tokens")
        values = {
            "parts": render(self._template, request.messages),
            "max_tokens": request.max_tokens,
            "schema": json.dumps(request.schema) if request.schema is not None else "",
            "temperature": request.temperature,
            "seed": request.seed,
            "heard": watch.token is not UNWATCHED.token,  # each token would wake this process on the child's core
        }
        answer = self.owner.ask("complete", values, watch)
        try:
            counts = int(answer["prompt_tokens"]), int(answer["reply_tokens"])
            reply = Reply(str(answer["text"]), *counts, answer["finish"])
        except (KeyError, TypeError, ValueError):
            raise ModelError("chat.answered_else") from None
        return structured.validate_reply(reply, request.schema)

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``; measured if the labels have at least half of the probability."""
        structured.check_labels(labels)
        prompts = [render(self._template, structured.append_branch(prefix, branch)) for branch in branches]
        if not prompts:
            return []
        answer = self.owner.ask("choose", {"prompts": prompts, "labels": list(labels)}, watch)
        rows = answer.get("probabilities")
        if not isinstance(rows, list) or [len(row) for row in rows] != [len(labels)] * len(prompts):
            raise ModelError("chat.answered_else")
        measured = [float(mass) >= structured.LEAST_MASS for mass in answer["masses"]]
        return [Choice(tuple(map(float, row)), known) for row, known in zip(rows, measured, strict=True)]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``CountingChat``."""
        if not texts:
            return []
        return [int(number) for number in self.owner.ask("count", {"texts": list(texts)})["counts"]]

    def tokens(self, messages: Sequence[Message], reply: str) -> tuple[list[int], list[int]]:
        """The tokens of a prompt as the model reads it, and of a reply with the token that ends a turn."""
        answer = self.owner.ask("tokens", {"parts": render(self._template, messages), "reply": reply})
        return list(map(int, answer["prompt"])), list(map(int, answer["reply"]))

    def _setup(self) -> Mapping[str, Any]:
        settings, file = self._settings, self._file
        try:
            size = sum(part.stat().st_size for part in parts(file.path))
        except OSError:
            raise ModelError("chat.no_file", name=file.name) from None
        return {
            "path": str(file.path),
            "context": self.identity.context,
            "micro_batch": min(settings.micro_batch, self.identity.context),
            "sequences": settings.sequences,
            "threads": settings.threads or len(os.sched_getaffinity(0)),
            "gpu_layers": settings.gpu_layers,
            "marks": self._template.marks,
            "end": self._template.end,
            "nice": settings.nice,
            "memory_bytes": 2 * size + settings.child_memory_bytes,
        }


def parts(path: Path) -> list[Path]:
    """The files of a model whose first is ``path``; large models have several, ``NAME-00001-of-00003.gguf``."""
    split = SPLIT.fullmatch(path.name)
    if not split:
        return [path]
    name, count = split["name"], split["count"]
    return [path.with_name(f"{name}-{number:05d}-of-{count}.gguf") for number in range(1, int(count) + 1)]


class Owner:
    """Owns the child process of one model: starts it at first use and ends it after a long idle time.

    ``setup`` is the first message to the child; ``admit`` is called before every start and may raise.
    """

    def __init__(
        self,
        setup: Callable[[], Mapping[str, Any]],
        settings: ChatSettings,
        admit: Callable[[], object],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._setup, self._settings, self._admit, self._command = setup, settings, admit, tuple(command)
        self._lock = threading.Lock()
        self._child: children.Child | None = None
        self._requests, self._closed = 0, False
        self._idle: threading.Timer | None = None
        self._used = 0.0  # monotonic time of the end of the last request
        self.facts: dict[str, Any] = {}  # the child's greeting

    @property
    def pid(self) -> int | None:
        """The child's process id, None without a child."""
        child = self._child
        return child.pid if child else None

    def close(self) -> None:
        """End the child after its current request; no other is started."""
        with self._lock:
            self._closed = True
            self._drop()
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None

    def ask(self, kind: str, values: Mapping[str, Any], watch: Watch = UNWATCHED) -> dict[str, Any]:
        """The child's answer; raise ``ModelError``, or ``Cancelled`` if ``watch`` cancels."""
        with self._lock:
            if self._closed:
                raise ModelError("model.chosen_anew")
            try:
                answer = self._exchange(kind, values, watch)
            except BaseException:
                self._drop()
                raise
            finally:
                self._used = time.monotonic()
                if self._idle is None:
                    self._wake_after(self._settings.idle_seconds)
        if isinstance(answer, LocalmedError):  # the request failed, the child is fine
            raise answer
        return answer

    def _exchange(self, kind: str, values: Mapping[str, Any], watch: Watch) -> dict[str, Any] | LocalmedError:
        child = self._child if self._child and self._child.alive() else self._start(watch)
        self._requests += 1
        bound = self._settings.hang_seconds
        self._send(child, [kind, self._requests, values], bound)
        return self._await_answer(child, watch, bound, self._requests)

    def _start(self, watch: Watch) -> children.Child:
        self._drop()
        self._admit()
        child = self._child = children.Child(self._command, self._settings.reply_bytes)
        bound = self._settings.load_seconds
        self._send(child, self._setup(), bound)
        facts = self._await_answer(child, watch, bound)
        if isinstance(facts, LocalmedError):
            raise facts
        self.facts = facts
        return child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _wake_after(self, seconds: float) -> None:
        self._idle = threading.Timer(seconds, self._unload)
        self._idle.daemon = True
        self._idle.start()

    def _unload(self) -> None:
        """End the child after ``idle_seconds`` without a request, else check again later."""
        with self._lock:
            left = self._used + self._settings.idle_seconds - time.monotonic()
            if left > 0 and self._child is not None:
                self._wake_after(left)
            else:
                self._idle = None
                self._drop()

    # --- messages ----------------------------------------------------------------------------------------------

    def _send(self, child: children.Child, message: object, bound: float) -> None:
        """Write ``message``; the child must read some of it every ``bound`` seconds."""
        try:
            child.send(json.dumps(message).encode("ascii") + b"\n", bound)
        except TimeoutError:
            raise ModelError("chat.silent", bound=bound) from None
        except OSError:
            raise _ending_error(child) from None

    def _await_answer(
        self, child: children.Child, watch: Watch, bound: float, request: int = 0
    ) -> dict[str, Any] | LocalmedError:
        """The child's answer, or the error that it reports; tokens and progress are passed on.

        Without ``request``, its greeting after loading, within ``bound`` seconds in total.
        """
        deadline, cancelled = time.monotonic() + bound, False
        while True:
            if not cancelled and watch.cancelled():
                if not request:
                    raise Cancelled("model.cancelled")
                cancelled = True
                self._send(child, ["cancel", request], bound)
            message = self._message(child)
            if message and request:
                deadline = time.monotonic() + bound
            if time.monotonic() > deadline:
                raise ModelError("chat.silent" if request else "chat.slow", bound=bound)
            if message is None:
                continue
            kind, *values = message
            if kind == "token" and not cancelled:
                watch.token(values[0])
            elif kind == "chosen":
                watch.progress(*values)
            elif kind == "error" or (kind == "done" and not cancelled):
                return cast(dict[str, Any] | LocalmedError, values[0])
            elif kind == "done":  # the request had ended before the child read the cancellation
                return Cancelled("model.cancelled")

    def _message(self, child: children.Child) -> list[Any] | None:
        """The next valid message, None if there is none yet."""
        try:
            line = child.line(_LOOK)
        except BrokenPipeError:
            raise _ending_error(child) from None
        except children.TooLong:
            raise ModelError("chat.message_too_long", most=self._settings.reply_bytes) from None
        if line is None:
            return None
        try:
            kind, *values = json.loads(line)
            if tuple(map(type, values)) != _KNOWN[kind]:
                raise TypeError
            return [kind, *([errors.from_json(values[0], ModelError)] if kind == "error" else values)]
        except (ValueError, TypeError, LookupError, RecursionError):
            raise ModelError("chat.answered_else") from None


_KNOWN: Mapping[str, tuple[type, ...]] = {
    "loading": (), "beat": (), "token": (str,), "chosen": (int, int), "done": (dict,), "error": (dict,)
}  # fmt: skip
_ENDINGS = {
    None: "chat.stopped",
    -signal.SIGKILL: "chat.killed",
    OUT_OF_MEMORY: "chat.out_of_memory",
    -signal.SIGILL: "chat.other_processor",
}


def _ending_error(child: children.Child) -> ModelError:
    code = child.code()
    return ModelError(_ENDINGS[code]) if code in _ENDINGS else ModelError("chat.crashed", how=children.outcome(code))
