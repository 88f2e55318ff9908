"""The model host: one thread accepts connections, one thread serves each, and each model has one owner thread.

::

    <data>/host/            for its owner only
        host.lock           locked while the host lives
        host.sock           present while it answers; the next host replaces what a killed one left

Processes of other users are not answered. A connection that sends nothing useful in time, exceeds a bound or stops
reading is closed. A client that disconnects leaves the queue, or its request is cancelled. ``close`` cancels the
running requests and tells everybody who waits. The socket appears once encoder and reranker are loaded; until then
commands use their own.

Nothing of a request is kept, printed or counted except its method.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, get_args

from localmed import __version__
from localmed.config import HostSettings, Settings
from localmed.domain.errors import Busy, Cancelled, LocalmedError, ModelError, UsageError
from localmed.domain.ports import UNWATCHED, Watch
from localmed.models import choice
from localmed.models.host.protocol import (
    FOLDER,
    MALFORMED,
    MOST_ITEMS,
    PORTS,
    SOCKET,
    Broken,
    Call,
    Owner,
    Status,
    Welcome,
    Wire,
    address,
    facts,
    failure,
    methods,
    read,
)
from localmed.models.queue import Worker
from localmed.models.registry.registry import Registry
from localmed.process import confined, files, hooks
from localmed.process.environment import few_arenas

LOCK = "host.lock"
OWNER_ONLY = 0o600
BACKLOG = 64  # connections that the kernel queues
BEAT = 1.0  # seconds between two signs of life while a client waits
LOOK = 0.05  # seconds between checks whether the client has gone
LINGER = 2.0  # seconds for waiting clients to receive the error when the host ends
LONGEST_NAME = 100  # characters of a user name
REFUSAL = 0.1  # seconds to send a refusal to a surplus connection: it fits into the socket's buffer


class _Gone(hooks.Cancel):
    """Cancels work in a model when the client has cancelled."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def cancelled(self) -> bool:
        return self._watch.cancelled()

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled("model.cancelled")


class Host:
    """Serves ``models`` by role (``PORTS``); commands compare ``choices`` with theirs (``choice.choices``).

    One thread owns encoder, reranker and entailment, which may share weights.
    """

    def __init__(
        self, models: Mapping[str, Any], choices: dict[str, str], settings: HostSettings, queue: tuple[int, int]
    ) -> None:
        """``queue`` limits the requests waiting for each owner: in total, and of one user."""
        self._models = {role: model for role, model in models.items() if model is not None}
        self._choices, self._settings = choices, settings
        self._owners: dict[Owner, Worker] = {name: Worker(*queue) for name in get_args(Owner)}
        self._counting = threading.Lock()
        self._served, self._failed = Counter[str](), Counter[str]()
        self._began = time.monotonic()
        self._ending = threading.Event()
        self._connections: set[Wire] = set()

    def warm(self) -> None:
        """Load encoder and reranker and open the index, each in its owner thread; raise ``ModelError`` if one fails."""
        models, small = self._models, self._owners["small"]
        small.submit("host", lambda: models["encoder"].encode(["ready"], "query")).result()
        if "reranker" in models:
            small.submit("host", lambda: models["reranker"].score("ready", ["ready"])).result()
        if "nearest" in models:
            self._owners["index"].submit("host", models["nearest"].warm).result()

    def serve(self, listener: socket.socket, stop: int) -> None:
        """Answer connections until the file descriptor ``stop`` becomes readable."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(stop, select.POLLIN)
        while stop not in {number for number, _ in poll.poll()}:
            try:
                connection, _ = listener.accept()
            except OSError:  # too many open files
                time.sleep(BEAT)
                continue
            if len(self._connections) < self._settings.connections:
                wire = Wire(connection, self._settings.message_bytes, self._settings.message_seconds)
                self._connections.add(wire)
                threading.Thread(
                    target=self._serve_connection, args=(wire,), name="host-connection", daemon=True
                ).start()
                continue
            with suppress(Broken), closing(Wire(connection, self._settings.message_bytes, REFUSAL)) as wire:
                wire.send(failure(Busy("host.connections", count=self._settings.connections)))

    def close(self) -> None:
        """Cancel running requests, tell waiting clients, and end the owner threads and the chat process."""
        self._ending.set()
        for worker in self._owners.values():
            worker.close()
        deadline = time.monotonic() + LINGER
        while self._connections and time.monotonic() < deadline:
            time.sleep(0.01)
        if isinstance(chat := self._models.get("chat"), choice.Closing):
            chat.close()

    def status(self) -> Status:
        """The current status."""
        with self._counting:
            served, failed = dict(self._served), dict(self._failed)
        return Status(
            process=os.getpid(),
            version=__version__,
            seconds=time.monotonic() - self._began,
            models={role: _name_of(model) for role, model in self._models.items() if role in choice.HOSTED},
            choices=self._choices,
            connections=len(self._connections),
            waiting={name: worker.waiting() for name, worker in self._owners.items()},
            served=served,
            failed=failed,
            memory=_memory(),
        )

    # --- one connection ------------------------------------------------------------------------------------------

    def _serve_connection(self, wire: Wire) -> None:
        try:
            process, user = wire.peer()
            message = wire.receive(self._settings.message_seconds) if user == os.getuid() else None
            with suppress(*MALFORMED):  # not a request
                message = message and read(message, Call)
            if isinstance(message, Call):
                self._answer(wire, str(process), message)
        except (Broken, LocalmedError):  # the client has gone or accepts no error
            return
        except BaseException as error:
            _log_failure(error)
        finally:
            self._connections.discard(wire)
            wire.close()

    def _answer(self, wire: Wire, process: str, request: Call) -> None:
        if not request.role and request.method == "welcome":
            models = {
                role: {name: getattr(model, name) for name in facts(role)} for role, model in self._models.items()
            }
            return wire.send(["done", Welcome(__version__, models, self._choices)])
        if request.version != __version__ or request.choices != self._choices:
            return wire.send(["other"])
        if not request.role and request.method == "status":
            return wire.send(["done", self.status()])
        known = request.role in PORTS and request.method in methods(request.role)
        user = request.user[:LONGEST_NAME] or process
        try:
            answer = self._run(wire, user, request) if known else failure(ModelError("host.not_its_work"))
        except LocalmedError as error:
            answer = failure(error)
        with self._counting:
            (self._failed if answer[0] == "error" else self._served)[request.method if known else "unknown"] += 1
        try:
            wire.send(answer)
        except LocalmedError as error:  # the answer is too large
            wire.send(failure(error))
        return None

    def _run(self, wire: Wire, user: str, request: Call) -> list[Any]:
        """The answer to ``request``, errors included; raise ``Busy`` if too many wait, ``Broken`` if the client has
        gone.

        This thread, not the owner, writes to the client, so that a client that does not read blocks nobody else.
        """
        messages, gone = SimpleQueue[Any](), threading.Event()
        watch = Watch(
            (lambda text: messages.put(["token", text])) if request.heard else UNWATCHED.token,
            lambda: gone.is_set() or self._ending.is_set(),
            lambda done, total: messages.put(["progress", done, total]),
        )
        work, worker = self._prepare(request, watch), self._owners[PORTS[request.role][0]]
        future = worker.submit(user, work, request.low)
        future.add_done_callback(lambda _: messages.put(None))
        last_sign = time.monotonic()
        try:
            while True:
                try:
                    message = messages.get(timeout=LOOK)
                except Empty:
                    if wire.receive(0) is not None:  # raises Broken if it is closed
                        raise Broken from None
                    if time.monotonic() - last_sign < BEAT:
                        continue
                    message = ["beat"]
                if message is None:
                    return _result(future)
                wire.send(message)
                last_sign = time.monotonic()
        finally:
            gone.set()
            future.cancel()  # a running one is cancelled by its model through ``watch``

    def _prepare(self, request: Call, watch: Watch) -> Callable[[], Any]:
        """Validate ``request`` and return the call for the owner thread; raise ``ModelError`` if it is invalid."""
        call = methods(request.role)[request.method]
        try:
            method = getattr(self._models[request.role], request.method)
            given = {name: read(value, call.types[name], MOST_ITEMS) for name, value in request.arguments.items()}
            if "watch" in call.types:
                given["watch"] = watch
            if given.keys() != call.types.keys():
                raise ValueError
        except MALFORMED:
            raise ModelError("host.not_its_work") from None
        watched = hooks.Hooks(cancel=_Gone(watch))

        def call_model() -> Any:
            with hooks.following(watched):  # encoder, reranker and judge check the hooks
                return method(**given)

        return call_model


def _result(future: Future[Any]) -> list[Any]:
    try:
        return ["done", future.result()]
    except CancelledError:
        return failure(Cancelled("model.cancelled"))
    except LocalmedError as error:
        return failure(error)
    except BaseException as error:  # including a library's panic, whose message may quote a text
        _log_failure(error)
        return failure(error)


def _log_failure(error: BaseException) -> None:
    """Print where a request failed and the kind of error, never its text, which may quote a question."""
    print(f"localmed host: a request failed ({confined.place(error)})", file=sys.stderr, flush=True)


def _name_of(model: Any) -> str:
    identity = getattr(model, "identity", None)
    if identity is None:
        return str(model.name)
    return " ".join(str(getattr(identity, key)) for key in ("name", "version") if hasattr(identity, key))


def _memory() -> int:
    """Resident memory of this process and its children, in bytes."""
    import psutil

    total, this = 0, psutil.Process()
    for process in (this, *this.children()):
        try:
            total += process.memory_info().rss
        except psutil.Error:  # it has ended
            continue
    return total


# --- being the host of a data folder ------------------------------------------------------------------------------


def serve(data: Path, made: Callable[[], Host], ready: Callable[[Status, Path], None], stop: int) -> None:
    """Run the host until ``stop`` becomes readable; call ``ready`` once it answers.

    ``made`` creates the host if none is running. Raise ``Busy`` if one is, ``ModelError`` if a model cannot be loaded.
    """
    few_arenas()
    with claim(data) as folder, closing(made()) as host:
        host.warm()
        with _listen(folder) as listener:
            ready(host.status(), folder / SOCKET)
            host.serve(listener, stop)


def make_host(settings: Settings, chosen: Mapping[str, str], registry: Registry, nearest: Any) -> Host:
    """The host for the models in ``chosen`` (``config.chosen_models``); loads nothing yet."""
    encoder = choice.encoder(chosen, registry)
    fitted = choice.FITTED
    models = {
        "encoder": encoder,
        "reranker": choice.reranker(chosen, registry, encoder),
        "entailment": choice.entailment(chosen, registry),
        "chat": choice.chat(settings.chat, chosen, registry),
        "nearest": nearest,
        "fitted": encoder if chosen["encoder"] == fitted else choice.encoder({"encoder": fitted}, registry),
    }
    selected = choice.choices(chosen, registry.registrations, settings.chat)
    return Host(models, selected, settings.host, (settings.chat.waiting, settings.chat.waiting_each))


@contextmanager
def claim(data: Path) -> Iterator[Path]:
    """Lock and return the host's folder; raise ``Busy`` if another host has it."""
    folder = data / FOLDER
    for path in (data, folder):  # the data folder may be created here, for its owner only
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
def _listen(folder: Path) -> Iterator[socket.socket]:
    """A listening socket that only its owner may use, removed at the end."""
    path = folder / SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        os.fchmod(listener.fileno(), OWNER_ONLY)  # Linux gives the file these rights at ``bind``
        with address(folder) as name:
            listener.bind(name)
        listener.listen(BACKLOG)
        ours = path.stat().st_ino
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):  # of a recreated data folder it is another host's
                if path.stat().st_ino == ours:
                    path.unlink()
