"""Being the model host of a data folder: one at a time, its socket, and its end.

::

    <data>/host/            for its owner only
        host.lock           held as long as the host lives, however it ends
        host.sock           there while it answers; what a killed host left is replaced by the next one

The socket appears when the encoder and the reranker are loaded: until then commands use their own.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from localmed.config import HostSettings, Settings
from localmed.domain.errors import Busy, UsageError
from localmed.models import choice
from localmed.models.choice import FITTED
from localmed.models.host.client import Client, listens
from localmed.models.host.protocol import FOLDER, SOCKET, address, unexpected
from localmed.models.host.server import Host, Status
from localmed.models.host.work import Nearest, Owned
from localmed.models.registry.registry import Registry
from localmed.process import files
from localmed.process.environment import few_arenas

LOCK = "host.lock"
OWNER_ONLY = 0o600
BACKLOG = 64  # connections that the kernel keeps until they are taken


def serve(data: Path, made: Callable[[], Host], ready: Callable[[Status, Path], None], stop: int) -> None:
    """Be the host until something can be read from the file number ``stop``; ``ready`` is told once it answers.

    ``made`` makes the host when no other one is there. Raise ``Busy`` if there is, ``ModelError`` if a model cannot be
    loaded.
    """
    few_arenas()
    with claimed(data) as folder, closing(made()) as host:
        host.warm()
        with _listening(folder) as listener:
            ready(host.status(), folder / SOCKET)
            host.serve(listener, stop)


def made(settings: Settings, chosen: Mapping[str, str], registry: Registry, nearest: Nearest) -> Host:
    """The host of the models that ``chosen`` (``config.chosen_models``) names; nothing is loaded yet."""
    encoder = choice.encoder(chosen, registry)
    owned = Owned(
        encoder,
        choice.reranker(chosen, registry, encoder),
        choice.entailment(chosen, registry),
        choice.chat(settings.chat, chosen, registry),
        nearest,
        {FITTED: encoder if chosen["encoder"] == FITTED else choice.encoder({"encoder": FITTED}, registry)},
    )
    selected = choice.choices(chosen, registry.registrations, settings.chat)
    return Host(owned, selected, settings.host, (settings.chat.waiting, settings.chat.waiting_each))


@contextmanager
def claimed(data: Path) -> Iterator[Path]:
    """The host's folder, claimed for this process; raise ``Busy`` if another one has it."""
    folder = data / FOLDER
    for path in (data, folder):  # the data folder may be made here: for its owner only
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        folder.chmod(0o700)
    except PermissionError:
        raise UsageError("host.folder", folder=str(folder)) from None
    with (folder / LOCK).open("a") as lock:
        if not files.lock(lock):
            raise Busy("host.running", data=str(data))
        yield folder


@contextmanager
def _listening(folder: Path) -> Iterator[socket.socket]:
    """The socket, readable and writable by its owner from the first moment; gone afterwards."""
    path = folder / SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        os.fchmod(listener.fileno(), OWNER_ONLY)  # Linux gives the file these rights when it is bound
        with address(folder) as name:
            listener.bind(name)
        listener.listen(BACKLOG)
        ours = path.stat().st_ino
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):  # of a data folder that was removed and made anew it is another host's
                if path.stat().st_ino == ours:
                    path.unlink()


def status(data: Path, settings: HostSettings, choices_here: Mapping[str, str]) -> Status | None:
    """How the host of ``data`` is, None if none runs; ``others`` are the roles where a command wants other models.

    Raise ``ModelError`` if one runs and does not answer as it should.
    """
    if not listens(data):
        return None
    with closing(Client(data / FOLDER, settings, "status")) as client:
        answer = client.ask("status", {}, seconds=settings.silent_seconds)
    try:
        state = Status(**answer.values)
    except TypeError:
        raise unexpected() from None
    return replace(state, others=[role for role, chosen in choices_here.items() if state.choices.get(role) != chosen])
