"""A command's side of the model host: finds one that runs, and asks it.

``find`` says whether a host answers; ``Client.ask`` is one request and its answer. Waiting is bounded: a host that
gives no sign of life is given up, and so is an answer that does not come in time. Connections are kept for the next
request; one that the host has closed meanwhile (it was started again) is replaced without a word, since nothing was
asked of it yet. What the host reports comes back as the error that it was.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain.errors import Cancelled, LocalmedError, ModelError
from localmed.domain.ports import UNWATCHED, Watch
from localmed.models.host.protocol import FOLDER, VERSION, Broken, Frame, Wire, address, raise_error
from localmed.process import hooks

CONNECT = 1.0  # seconds for the kernel to connect two processes of one machine
PASSING = ("token", "progress", "beat")  # frames that come before the answer
LOOK = 0.05  # seconds between two looks at a cancellation


@dataclass(frozen=True, slots=True)
class Welcome:
    """Who a host is: what it owns by role (None: nothing), how that was chosen, and whether it has the indexes.

    ``fitted``: the built-in encoders it owns besides, by name.
    """

    models: Mapping[str, Any]
    choices: Mapping[str, str]
    searches: bool
    fitted: Mapping[str, Any]


def _watch() -> Watch:
    """How whoever this thread works for follows a request."""
    active = hooks.active()
    return UNWATCHED if active is hooks.SILENT else Watch(cancelled=active.cancel.cancelled)


def listens(data: Path) -> bool:
    """Whether there is a host for the data folder, well or not; one that was killed leaves a socket without one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT)
        try:
            with address(data / FOLDER) as path:
                connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:  # it takes no connections
            return True
    return True


def find(data: Path, settings: HostSettings, user: str) -> Client | None:
    """The host of the data folder ``data``, None if none runs, answers in time and is of this version.

    ``user`` takes turns with the others that this account's processes name.
    """
    client = Client(data / FOLDER, settings, user)
    try:
        client.greet()
    except LocalmedError:
        client.close()
        return None
    return client


class Client:
    """Asks one host. Several threads may, each over a connection of its own."""

    def __init__(self, folder: Path, settings: HostSettings, user: str) -> None:
        """Nothing is opened before ``greet`` or ``ask``."""
        self._folder, self._settings, self._user = folder, settings, user
        self._lock = threading.Lock()
        self._free: list[Wire] = []
        self._welcome: Welcome | None = None
        self.lost = False  # whether the host has ended, or came back with other models

    def greet(self) -> Welcome:
        """Who the host is; raise ``ModelError`` if none answers, or one of another version."""
        if self._welcome is None:
            self._give_back(self._dialled())
        assert self._welcome is not None
        return self._welcome

    def close(self) -> None:
        """Close the connections that are not in use; a later request opens others."""
        with self._lock:
            free, self._free = self._free, []
        for wire in free:
            wire.close()

    def ask(
        self, kind: str, values: Mapping[str, Any], watch: Watch = UNWATCHED, seconds: float = 0, blob: bytes = b""
    ) -> Frame:
        """The host's answer, within ``seconds`` (0: as long as it gives signs of life); raise as its model does."""
        watch = _watch() if watch is UNWATCHED else watch
        if watch.cancelled():
            raise Cancelled("model.cancelled")
        wire = self._sent(Frame(kind, values, blob))
        try:
            answer = self._followed(wire, watch, seconds)
        except Broken:
            wire.close()
            raise ModelError("host.ended") from None
        except BaseException:  # the answer that is still to come is nobody's
            wire.close()
            raise
        self._give_back(wire)
        if answer.kind == "error":
            raise_error(answer)
        return answer

    # --- connections ---------------------------------------------------------------------------------------------

    def _sent(self, request: Frame) -> Wire:
        """The connection over which ``request`` was sent: one that is free, else a new one."""
        while (wire := self._taken()) is not None:
            try:
                wire.send(request)
            except (Broken, LocalmedError) as error:
                wire.close()
                if isinstance(error, LocalmedError):
                    raise
                continue
            return wire
        wire = self._dialled()
        try:
            wire.send(request)
        except Broken:
            wire.close()
            raise ModelError("host.ended") from None
        except LocalmedError:
            wire.close()
            raise
        return wire

    def _taken(self) -> Wire | None:
        with self._lock:
            while self._free:
                wire = self._free.pop()
                with suppress(Broken):
                    if wire.receive(0) is None:  # nothing was said since, not even that it is closed
                        return wire
                wire.close()
        return None

    def _give_back(self, wire: Wire) -> None:
        with self._lock:
            self._free.append(wire)

    def _dialled(self) -> Wire:
        """A new connection to a host that has said who it is: the same as before, if there was one before."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wire = Wire(connection, self._settings.message_bytes, self._settings.message_seconds)
        try:
            connection.settimeout(self._settings.connect_seconds)
            with address(self._folder) as path:
                connection.connect(path)
            if wire.peer()[1] != os.getuid():
                raise ModelError("host.foreign")
            with suppress(Broken):  # a host that refuses has said why before it heard of us
                wire.send(Frame("hello", {"protocol": VERSION, "version": __version__, "user": self._user}))
            self._known(wire.receive(self._settings.connect_seconds))
        except (OSError, Broken):
            wire.close()
            self.lost = True
            raise ModelError("host.none_answers" if self._welcome is None else "host.has_ended") from None
        except BaseException:
            wire.close()
            raise
        self.lost = False
        return wire

    def _known(self, frame: Frame | None) -> None:
        """Take the host's first frame; raise ``ModelError`` unless it is a host that can be used."""
        if frame is None:
            raise ModelError("host.not_within", seconds=self._settings.connect_seconds)
        if frame.kind == "error":
            raise_error(frame)
        values = frame.values
        if frame.kind != "welcome" or (values.get("protocol"), values.get("version")) != (VERSION, __version__):
            raise ModelError("host.version")
        try:
            welcome = Welcome(
                dict(values["models"]), dict(values["choices"]), values["searches"] is True, dict(values["fitted"])
            )
        except (KeyError, TypeError, ValueError):
            raise ModelError("host.unnamed") from None
        if self._welcome is not None and self._welcome.choices != welcome.choices:
            self.lost = True
            raise ModelError("host.restarted")
        self._welcome = welcome

    # --- one request -----------------------------------------------------------------------------------------------

    def _followed(self, wire: Wire, watch: Watch, seconds: float) -> Frame:
        """The answer or error that ends a request, its tokens passed on as they come."""
        silent = self._settings.silent_seconds
        began = last_sign = time.monotonic()
        cancelled = False
        while True:
            if not cancelled and watch.cancelled():
                cancelled = True
                wire.send(Frame("cancel", {}))
            frame = wire.receive(LOOK if watch is not UNWATCHED else 1.0)
            now = time.monotonic()
            if seconds and now - began > seconds:
                raise ModelError("host.late", seconds=seconds)
            if frame is None and now - last_sign > silent:
                raise ModelError("host.silent", seconds=silent)
            if frame is None:
                continue
            last_sign = now
            if frame.kind == "token" and not cancelled:
                watch.token(str(frame.values.get("text", "")))
            elif frame.kind == "progress" and not cancelled:
                watch.progress(*(int(frame.values.get(name, 0)) for name in ("done", "total")))
            elif frame.kind not in PASSING:
                if cancelled and frame.kind != "error":
                    raise Cancelled("model.cancelled")
                return frame
