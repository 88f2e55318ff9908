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
        self._child: children.Child | None = None
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
            except BaseException:
                self._drop()
                raise
            finally:
                self._used = time.monotonic()
                if self._idle is None:
                    self._wake_after(self._settings.idle_seconds)
        if isinstance(answer, LocalmedError):  # the child is well, it was the request
            raise answer
        return answer

    def _answer(self, kind: str, values: Mapping[str, Any], watch: Watch) -> dict[str, Any] | LocalmedError:
        child = self._child if self._child and self._child.alive() else self._started(watch)
        self._requests += 1
        bound = self._settings.hang_seconds
        self._send(child, [kind, self._requests, values], bound)
        return self._followed(child, watch, bound, self._requests)

    def _started(self, watch: Watch) -> children.Child:
        self._drop()
        self._admit()
        child = self._child = children.Child(self._command, self._settings.reply_bytes)
        bound = self._settings.load_seconds
        self._send(child, self._setup(), bound)
        facts = self._followed(child, watch, bound)
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
        """End the child if nobody has asked for ``idle_seconds``, else look again when that may be so."""
        with self._lock:
            left = self._used + self._settings.idle_seconds - time.monotonic()
            if left > 0 and self._child is not None:
                self._wake_after(left)
            else:
                self._idle = None
                self._drop()

    # --- messages ----------------------------------------------------------------------------------------------

    def _send(self, child: children.Child, message: object, bound: float) -> None:
        """Write ``message``, of which the child must take some within ``bound`` seconds, and so on."""
        try:
            child.send(json.dumps(message).encode("ascii") + b"\n", bound)
        except TimeoutError:
            raise ModelError("chat.silent", bound=bound) from None
        except OSError:
            raise _ending(child) from None

    def _followed(
        self, child: children.Child, watch: Watch, bound: float, request: int = 0
    ) -> dict[str, Any] | LocalmedError:
        """The answer to ``request``, or the error that the child reports; its tokens are passed on as they come.

        Without ``request`` what the child says of itself once the model is there.
        """
        silent_since, cancelled = time.monotonic(), False
        while True:
            if not cancelled and watch.cancelled():
                if not request:
                    raise Cancelled("chat.cancelled_loading")
                cancelled = True
                self._send(child, ["cancel", request], bound)
            message = self._message(child)
            if message is None:
                if time.monotonic() - silent_since > bound:
                    raise ModelError("chat.silent" if request else "chat.slow", bound=bound)
                continue
            silent_since = time.monotonic()
            kind, *values = message
            if kind == "token" and not cancelled:
                watch.token(values[0])
            elif kind == "chosen":
                watch.progress(*values)
            elif kind == "error" or (kind == "done" and not cancelled):
                return cast(dict[str, Any] | LocalmedError, values[0])
            elif kind == "done":  # it had ended before the child read of it, and goes on
                return Cancelled("model.cancelled")

    def _message(self, child: children.Child) -> list[Any] | None:
        """The next message, None if there is none yet."""
        try:
            line = child.line(_LOOK)
        except BrokenPipeError:
            raise _ending(child) from None
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
            raise ModelError("chat.no_message") from None


_KNOWN: Mapping[str, tuple[type, ...]] = {
    "loading": (), "beat": (), "token": (str,), "chosen": (int, int), "done": (dict,), "error": (dict,)
}  # fmt: skip
_ENDINGS = {
    None: "chat.stopped",
    -signal.SIGKILL: "chat.killed",
    OUT_OF_MEMORY: "chat.out_of_memory",
    -signal.SIGILL: "chat.other_processor",
}


def _ending(child: children.Child) -> ModelError:
    """Why the child ended in the middle of a request."""
    code = child.code()
    return ModelError(_ENDINGS[code]) if code in _ENDINGS else ModelError("chat.crashed", how=children.outcome(code))
