"""The command's side of the model host: finds a running host and uses its models instead of loading its own.

``connect`` returns what the host serves; ``Remote`` is a model there, behind the port of its role, with bit-identical
results. Every wait is bounded: a host that shows no sign of life, or does not answer in time, is given up. Errors of
the host are raised again as they were.

Long lists are sent in pieces so that other requests run in between; an import's pieces are short and have low priority.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain import errors
from localmed.domain.errors import Cancelled, LocalmedError, ModelError, Unresponsive
from localmed.domain.ports import UNWATCHED, CountingChat, Embedder, Entailment, Reranker, Watch
from localmed.models.host.protocol import (
    FOLDER,
    MALFORMED,
    Broken,
    Call,
    Nearest,
    Status,
    Welcome,
    Wire,
    address,
    facts,
    methods,
    read,
    unexpected_answer,
)
from localmed.process import hooks

CONNECT = 1.0  # seconds to connect two processes of one machine
ASKED_AGAIN = 30.0  # seconds between attempts to reach a host that did not answer
LOOK = 0.05  # seconds between checks for cancellation
PIECE = 256  # texts of a request; a question has fewer as a rule, so that its vectors are from one batch
LOW_PIECE = 32  # texts of an import's request: half a second of two cores, the longest delay of a question
# By method, the parameter with one result an item; ``IN_PIECES`` are sent in several requests.
LISTS = {"encode": "texts", "encode_both": "texts", "judge": "pairs", "score": "passages", "choose": "branches",
         "count": "texts"}  # fmt: skip
IN_PIECES = ("encode", "encode_both", "judge")


@dataclass(frozen=True, slots=True)
class Hosted:
    """The models that a host serves to a command; None if the command loads its own or has none.

    ``others`` are roles for which the host owns another model than the command's settings choose.
    """

    encoder: Embedder | None = None
    reranker: Reranker | None = None
    entailment: Entailment | None = None
    chat: CountingChat | None = None
    nearest: Nearest | None = None
    fitted: Embedder | None = None
    others: tuple[str, ...] = ()
    client: Client | Missed | None = None

    @property
    def lost(self) -> bool:
        """Whether the host has ended or changed its models, or a host that did not answer (``Missed``) now does."""
        return self.client is not None and self.client.lost


NOTHING = Hosted()


def connect(data: Path, settings: HostSettings, choices: Mapping[str, str], user: str = "") -> Hosted:
    """What the host of the folder ``data`` serves of ``choices`` (``choice.choices``).

    ``NOTHING`` if none runs or none may be used. A host that does not answer in time or has another version serves
    nothing and is asked again later (``Missed``). The host shares its turns among the names ``user`` (default: this
    process).
    """
    client = Client(data / FOLDER, settings, user or str(os.getpid()))
    if not settings.use:
        return NOTHING
    try:
        welcome = client.greet()
    except LocalmedError:
        return Hosted(client=Missed(client)) if listens(data) else NOTHING
    others = tuple(sorted(role for role, chosen in choices.items() if welcome.choices.get(role) != chosen))
    try:
        models: Any = {
            role: Remote(client, role, properties) for role, properties in welcome.models.items() if role not in others
        }
        return Hosted(**models, others=others, client=client)
    except MALFORMED:
        raise unexpected_answer() from None


def status(data: Path, settings: HostSettings, choices_here: Mapping[str, str]) -> Status | None:
    """The status of the host of ``data``, None if none runs; raise ``ModelError`` if it does not answer properly.

    ``others`` are the roles for which a command wants other models.
    """
    if not listens(data):
        return None
    client = Client(data / FOLDER, settings, "status")
    client.greet()
    state: Status = client.ask("", "status", {}, Status, seconds=settings.silent_seconds)
    return replace(state, others=[role for role, chosen in choices_here.items() if state.choices.get(role) != chosen])


def listens(data: Path) -> bool:
    """Whether a host is listening, healthy or not; a killed host leaves a socket on which nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT)
        try:
            with address(data / FOLDER) as path:
                connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:  # it accepts no connections
            return True
    return True


def at_low_priority(encoder: Embedder) -> Embedder:
    """``encoder`` at low priority, if it is a host's."""
    return cast(Embedder, encoder.at_low_priority()) if isinstance(encoder, Remote) else encoder


class Remote:
    """A model at a host, with the methods and properties of its role's port."""

    def __init__(self, client: Client, role: str, properties: Mapping[str, Any], low: bool = False) -> None:
        self._client, self._role, self._properties, self._low = client, role, properties, low
        for name, kind in facts(role).items():
            setattr(self, name, read(properties[name], kind))

    def at_low_priority(self) -> Remote:
        """The same model at low priority."""
        return Remote(self._client, self._role, self._properties, low=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in methods(self._role):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *given: Any, **named: Any) -> Any:
        call = methods(self._role)[name]
        bound = call.signature.bind(self, *given, **named)
        bound.apply_defaults()
        arguments = {key: value for key, value in bound.arguments.items() if key in call.types}
        watch = arguments.pop("watch", UNWATCHED)
        seconds = 0 if self._role == "chat" else self._client.answer_seconds  # a chat model has its own bounds
        parameter = LISTS.get(name, "")

        def ask(part: dict[str, Any]) -> Any:
            return self._client.ask(self._role, name, arguments | part, call.result, watch, seconds, self._low)

        if not parameter:
            return ask({})
        items, results = arguments[parameter], []
        pieces = list(_split(items, (LOW_PIECE if self._low else PIECE) if name in IN_PIECES else len(items) + 1))
        for places in pieces:
            results.append(ask({parameter: [items[place] for place in places]}))
            if not _has_length(results[-1], len(places)):
                raise unexpected_answer()
        return results[0] if len(results) == 1 else _merge(results, np.argsort(np.concatenate(pieces)))


def _split(items: Sequence[Any], most: int) -> Iterator[list[int]]:
    """The indexes of ``items`` in pieces; several pieces of texts are sorted longest first, as models batch."""
    places = list(range(len(items)))
    if len(places) > most and isinstance(items[0], str):
        places.sort(key=lambda place: -len(items[place]))
    for start in range(0, max(1, len(places)), most):
        yield places[start : start + most]


def _has_length(result: Any, count: int) -> bool:
    """Whether ``result``, or each part of a tuple, has ``count`` items."""
    return all(_has_length(part, count) for part in result) if isinstance(result, tuple) else len(result) == count


def _merge(results: Sequence[Any], order: Any) -> Any:
    """The results of several pieces as one, in ``order``."""
    if isinstance(results[0], tuple):
        return tuple(_merge(parts, order) for parts in zip(*results, strict=True))
    if isinstance(results[0], np.ndarray):
        return np.concatenate(results)[order]
    together = [item for result in results for item in result]
    return [together[place] for place in order]


class Client:
    """Sends requests to one host, each over its own connection; thread-safe."""

    def __init__(self, folder: Path, settings: HostSettings, user: str) -> None:
        self._folder, self._settings, self._user = folder, settings, user
        self._choices: Mapping[str, str] = {}
        self.answer_seconds = settings.answer_seconds
        self.lost = False  # the host has ended, or came back with other models

    def greet(self) -> Welcome:
        """Ask the host who it is; raise ``ModelError`` if none answers or its version differs."""
        seconds = self._settings.connect_seconds
        request = Call(__version__, self._user, "", "welcome", {}, self._choices)
        welcome: Welcome = self._exchange(request, Welcome, UNWATCHED, seconds, "host.not_within")
        if welcome.version != __version__:
            raise ModelError("host.version")
        self._choices = welcome.choices
        return welcome

    def ask(
        self,
        role: str,
        method: str,
        arguments: Mapping[str, Any],
        kind: Any,
        watch: Watch = UNWATCHED,
        seconds: float = 0,
        low: bool = False,
    ) -> Any:
        """The host's answer as ``kind`` within ``seconds`` (0: while it shows signs of life); raises like the model."""
        active = hooks.active()
        if watch is UNWATCHED and active is not hooks.SILENT:
            watch = Watch(cancelled=active.cancel.cancelled)
        heard = watch.token is not UNWATCHED.token
        request = Call(__version__, self._user, role, method, arguments, self._choices, low, heard)
        return self._exchange(request, kind, watch, seconds, "host.late")

    def _exchange(self, request: Call, kind: Any, watch: Watch, seconds: float, late: str) -> Any:
        with closing(self._dial()) as wire:
            try:
                with suppress(Broken):  # a host that refuses answers before it has read the request
                    wire.send(request)
                answer = self._await_answer(wire, watch, seconds, late)
            except Broken:
                raise ModelError("host.ended") from None
        try:
            return read(answer, kind)
        except MALFORMED:
            raise unexpected_answer() from None

    def _dial(self) -> Wire:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wire = Wire(connection, self._settings.message_bytes, self._settings.message_seconds)
        try:
            with address(self._folder) as path:
                _connect(connection, path, self._settings.connect_seconds)
        except OSError:
            wire.close()
            self.lost = True
            raise ModelError("host.ended" if self._choices else "host.none_answers") from None
        if wire.peer()[1] != os.getuid():
            wire.close()
            raise ModelError("host.foreign")
        return wire

    def _await_answer(self, wire: Wire, watch: Watch, seconds: float, late: str) -> Any:
        silent = self._settings.silent_seconds
        began = last_sign = time.monotonic()
        while True:
            if watch.cancelled():  # closing the connection tells the host
                raise Cancelled("model.cancelled")
            message = wire.receive(LOOK)
            now = time.monotonic()
            if seconds and now - began > seconds:
                raise Unresponsive(late, seconds=seconds)
            if message is None and now - last_sign > silent:
                raise Unresponsive("host.silent", seconds=silent)
            if message is None:
                continue
            last_sign = now
            try:
                kind, *values = message
                value = _KNOWN[kind](*values)
            except MALFORMED:
                raise unexpected_answer() from None
            if kind == "token":
                watch.token(value)
            elif kind == "progress":
                watch.progress(*value)
            elif kind == "done":
                return value
            elif kind == "error":
                raise value
            elif kind == "other":
                self.lost = True
                raise ModelError("host.restarted")


class Missed:
    """A host that did not answer, for example because it is busy: asked again at intervals, in a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._client, self._last_asked, self._answers = client, time.monotonic(), False

    @property
    def lost(self) -> bool:
        """Whether it answers now, so that models loaded in its place can be released."""
        if not self._answers and time.monotonic() - self._last_asked > ASKED_AGAIN:
            self._last_asked = time.monotonic()
            threading.Thread(target=self._greet, name="model host", daemon=True).start()
        return self._answers

    def _greet(self) -> None:
        with suppress(LocalmedError, OSError):  # errors of this thread concern nobody
            self._client.greet()
            self._answers = True


def _connect(connection: socket.socket, path: str, seconds: float) -> None:
    """Connect within ``seconds``; a full backlog is refused at once, so try again."""
    deadline = time.monotonic() + seconds
    connection.settimeout(seconds)
    while True:
        try:
            return connection.connect(path)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK)


_KNOWN: Mapping[str, Callable[..., Any]] = {
    "token": str,
    "progress": lambda done, total: (int(done), int(total)),
    "beat": lambda: None,
    "done": lambda value: value,
    "error": lambda error: errors.from_json(error, ModelError, LocalmedError),
    "other": lambda: None,
}
