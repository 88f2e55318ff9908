"""The parent's side of a chat model's child: start it, ask it, follow it, and replace it when it fails.

Rules: one request at a time, whoever calls; silence for longer than a named bound is a hang and ends the child, as do a
crash and a message that is none; the caller gets a ``ModelError`` that says which, and the next request starts a new
child. What the child sends is checked before it is believed, and nothing that it was sent or sends is kept or logged.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from localmed.config import ChatSettings
from localmed.domain import errors
from localmed.domain.errors import Cancelled, LocalmedError, ModelError
from localmed.domain.ports import UNWATCHED, Watch
from localmed.process import children

COMMAND = children.command("localmed.models.llama.child")

OUT_OF_MEMORY = 3  # the exit code of a child that ran out of it: nothing in it could be trusted after that

_LOOK = 0.02  # seconds between two looks at a cancellation: not felt, and 50 wake-ups a second cost nothing

Message = list[Any]


class Owner:
    """Owns the child of one model. Loads it when it is first needed and unloads it when it has long been idle.

    ``setup`` is the child's first message, ``admit`` is called before every start and may raise: a model file that has
    changed since it was registered is not loaded.
    """

    def __init__(
        self,
        setup: Callable[[], Mapping[str, Any]],
        settings: ChatSettings,
        admit: Callable[[], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._setup, self._settings, self._admit, self._command = setup, settings, admit, tuple(command)
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._requests, self._closed = 0, False
        self._idle: threading.Timer | None = None
        self._used = 0.0  # when the last request ended, on the monotonic clock
        self.facts: dict[str, Any] = {}  # what the child said of itself when it was ready

    @property
    def pid(self) -> int | None:
        """The child's process, while there is one."""
        child = self._child
        return child.pid if child else None

    def close(self) -> None:
        """End the child, if there is one, after the request that it works at; no other is started."""
        with self._lock:
            self._closed = True
            self._drop()
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None

    def ask(self, kind: str, values: Mapping[str, Any], watch: Watch = UNWATCHED) -> dict[str, Any]:
        """The child's answer to one request; raise ``ModelError``, or ``Cancelled`` if ``watch`` says so."""
        with self._lock:
            if self._closed:
                raise ModelError("model.chosen_anew")
            try:
                answer = self._answer(kind, values, watch)
            except _Told as told:  # the child is well, it was the request
                raise told.error from None
            except BaseException:
                self._drop()
                raise
            finally:
                self._used = time.monotonic()
                if self._idle is None:
                    self._wake_after(self._settings.idle_seconds)
            return answer

    def _answer(self, kind: str, values: Mapping[str, Any], watch: Watch) -> dict[str, Any]:
        child = self._child if self._child and self._child.alive() else self._started(watch)
        self._requests += 1
        child.send([kind, self._requests, values], self._settings.hang_seconds)
        return child.followed(watch, self._requests, self._settings.hang_seconds)

    def _started(self, watch: Watch) -> _Child:
        self._drop()
        self._admit()
        self._child = _Child(self._command, self._settings.reply_bytes)
        self._child.send(self._setup(), self._settings.load_seconds)
        try:
            self.facts = self._child.loaded(watch, self._settings.load_seconds)
        except _Told as told:
            self._drop()
            raise told.error from None
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _wake_after(self, seconds: float) -> None:
        self._idle = threading.Timer(seconds, self._unload)
        self._idle.daemon = True
        self._idle.start()

    def _unload(self) -> None:
        """End the child if nobody has asked for ``idle_seconds``, else look again when that may be so."""
        with self._lock:
            left = self._used + self._settings.idle_seconds - time.monotonic()
            if left > 0 and self._child is not None:
                self._wake_after(left)
            else:
                self._idle = None
                self._drop()


class _Told(Exception):
    """The child reported an error and goes on."""

    def __init__(self, error: LocalmedError) -> None:
        super().__init__()
        self.error = error


class _Child:
    """The process and its messages."""

    def __init__(self, command: Sequence[str], most: int) -> None:
        self._process, self._most = children.Child(command, most), most
        self.pid, self.alive, self.kill = self._process.pid, self._process.alive, self._process.kill

    def send(self, message: object, bound: float) -> None:
        """Write ``message``, of which the child must take some within ``bound`` seconds, and so on."""
        try:
            self._process.send(json.dumps(message).encode("ascii") + b"\n", bound)
        except TimeoutError:
            raise _silent(bound) from None
        except OSError:
            raise self._ending() from None

    def loaded(self, watch: Watch, bound: float) -> dict[str, Any]:
        """What the child says of itself once the model is there."""
        deadline = time.monotonic() + bound
        while True:
            if watch.cancelled():
                raise Cancelled("chat.cancelled_loading")
            message = self._message(min(_LOOK, deadline - time.monotonic()))
            if message and message[0] == "ready":
                return cast(dict[str, Any], message[1])
            if time.monotonic() > deadline:
                raise ModelError("chat.slow", bound=bound)

    def followed(self, watch: Watch, request: int, bound: float) -> dict[str, Any]:
        """The answer to ``request``, its tokens passed on as they come."""
        silent_since, cancelled = time.monotonic(), False
        while True:
            if not cancelled and watch.cancelled():
                cancelled = True
                self.send(["cancel", request], bound)
            message = self._message(_LOOK)
            if message is None:
                if time.monotonic() - silent_since > bound:
                    raise _silent(bound)
                continue
            silent_since = time.monotonic()
            if message[0] == "token" and not cancelled:
                watch.token(str(message[1]))
            elif message[0] == "chosen":
                watch.progress(int(message[1]), int(message[2]))
            elif message[0] == "done":
                if cancelled:  # it had ended before the child read of it, and goes on
                    raise _Told(Cancelled("model.cancelled"))
                return cast(dict[str, Any], message[1])

    def _message(self, seconds: float) -> Message | None:
        """The next message, None if there is none within ``seconds``; raise ``_Told`` for a reported error."""
        line = self._line(seconds)
        if line is None:
            return None
        try:
            message = json.loads(line)
            kind, values = message[0], message[1:]
            if kind == "error":
                error = errors.from_json(values[0], ModelError)
            elif (kind, [type(value) for value in values]) not in _KNOWN:
                raise TypeError
        except (ValueError, TypeError, LookupError, RecursionError):
            raise ModelError("chat.no_message") from None
        if kind == "error":
            raise _Told(error)
        return cast(Message, message)

    def _line(self, seconds: float) -> bytes | None:
        try:
            return self._process.line(seconds)
        except BrokenPipeError:
            raise self._ending() from None
        except children.TooLong:
            raise ModelError("chat.message_too_long", most=self._most) from None

    def _ending(self) -> ModelError:
        """Why the child ended in the middle of a request."""
        code = self._process.code()
        if code is None:
            return ModelError("chat.stopped")
        if code == -signal.SIGKILL:
            return ModelError("chat.killed")
        if code == OUT_OF_MEMORY:
            return ModelError("chat.out_of_memory")
        if code == -signal.SIGILL:
            return ModelError("chat.other_processor")
        return ModelError("chat.crashed", how=children.outcome(code))


_KNOWN: tuple[tuple[str, list[type]], ...] = (
    ("loading", []),
    ("beat", []),
    ("token", [str]),
    ("chosen", [int, int]),
    ("ready", [dict]),
    ("done", [dict]),
)


def _silent(bound: float) -> ModelError:
    return ModelError("chat.silent", bound=bound)
