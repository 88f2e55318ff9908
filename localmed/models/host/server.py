"""The model host's side: a thread takes connections, one thread serves each, and each model has one owner.

Rules: a process of another user is not answered; a connection that says nothing of use in time, breaks a bound or stops
reading is closed, and costs the others nothing. Whoever goes away while waiting leaves the queue, or has the model told
to stop. ``close`` ends what runs at its next look at a cancellation and tells everybody who waits.

Nothing of a request is kept, printed or counted but its kind.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import CancelledError, Future
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from localmed import __version__
from localmed.config import HostSettings
from localmed.domain.errors import Busy, Cancelled, LocalmedError
from localmed.domain.ports import Watch
from localmed.models.choice import Closing
from localmed.models.host.protocol import VERSION, Broken, Frame, Wire, error_frame
from localmed.models.host.work import JOBS, OWNERS, Job, Owned, Owner, job_of
from localmed.models.queue import Worker
from localmed.process import confined

BEAT = 1.0  # seconds between two signs of life while a client waits
LINGER = 2.0  # seconds that those who wait are given to hear that the host ends
LONGEST_NAME = 100  # characters of a user's name
REFUSAL = 0.1  # seconds for a connection too many to take its refusal: it fits into the socket's own memory


@dataclass(frozen=True, slots=True)
class Status:
    """A host at work: ``waiting`` counts requests by owner, ``served`` and ``failed`` those that ended, by kind.

    ``memory`` is in bytes, the chat model's process included; ``models`` and ``choices`` are by role.
    """

    process: int
    version: str
    seconds: float
    models: dict[str, str]
    choices: dict[str, str]
    connections: int
    waiting: dict[str, int]
    served: dict[str, int]
    failed: dict[str, int]
    memory: int
    others: list[str] = field(default_factory=list)  # roles where a command's settings choose another model


class _Counts:
    """What was done, by kind; shared by all connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def note(self, kind: str, failed: bool) -> None:
        with self._lock:
            (self._failed if failed else self._served)[kind] += 1

    def now(self) -> tuple[dict[str, int], dict[str, int]]:
        with self._lock:
            return dict(self._served), dict(self._failed)


class Host:
    """Serves ``owned``, whose models were chosen as ``choices`` say (``choice.choices``), which a command compares."""

    def __init__(self, owned: Owned, choices: dict[str, str], settings: HostSettings, queue: tuple[int, int]) -> None:
        """``queue`` bounds the requests that wait for each owner: of everybody, and of one user."""
        self._owned, self._choices, self._settings = owned, choices, settings
        self._owners: dict[Owner, Worker] = {name: Worker(*queue) for name in OWNERS}
        self._counts, self._began = _Counts(), time.monotonic()
        self._ending = threading.Event()
        self._connections: set[Wire] = set()
        self._idle: set[Wire] = set()  # those of them that are asked nothing

    def warm(self) -> None:
        """Load the encoder and the reranker and open the index, each in the thread that owns it.

        Raise ``ModelError`` if a model cannot be loaded.
        """
        owned = self._owned
        self._owners["small"].submit("host", lambda: owned.encoder.encode(["ready"], "query")).result()
        if owned.reranker is not None:
            reranker = owned.reranker
            self._owners["small"].submit("host", lambda: reranker.score("ready", ["ready"])).result()
        if owned.nearest is not None:
            self._owners["index"].submit("host", owned.nearest.warm).result()

    def serve(self, listener: socket.socket, stop: int) -> None:
        """Answer connections to ``listener``, which listens, until something can be read from the number ``stop``."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(stop, select.POLLIN)
        while stop not in {number for number, _ in poll.poll()}:
            try:
                connection, _ = listener.accept()
            except OSError:  # too many files are open
                time.sleep(BEAT)
                continue
            if len(self._connections) < self._settings.connections:
                wire = Wire(connection, self._settings.message_bytes, self._settings.message_seconds)
                self._connections.add(wire)
                threading.Thread(target=self._visited, args=(wire,), name="host-connection", daemon=True).start()
            else:
                self._refuse(Wire(connection, self._settings.message_bytes, REFUSAL))

    def _refuse(self, wire: Wire) -> None:
        with suppress(Broken), closing(wire):
            wire.send(error_frame(Busy("host.connections", count=self._settings.connections)))

    def close(self) -> None:
        """End what runs, tell who waits, and end the owners' threads and the chat model's process."""
        self._ending.set()
        for worker in self._owners.values():
            worker.close()
        deadline = time.monotonic() + LINGER
        while self._connections and time.monotonic() < deadline:
            for wire in list(self._idle):
                wire.end()
            time.sleep(0.01)
        if isinstance(self._owned.chat, Closing):
            self._owned.chat.close()

    def status(self) -> Status:
        """How it is now."""
        described, (served, failed) = self._owned.described(), self._counts.now()
        return Status(
            process=os.getpid(),
            version=__version__,
            seconds=time.monotonic() - self._began,
            models={role: _name(description) for role, description in described.items() if description},
            choices=self._choices,
            connections=len(self._connections),
            waiting={name: worker.waiting() for name, worker in self._owners.items()},
            served=served,
            failed=failed,
            memory=_memory(),
        )

    # --- one connection ------------------------------------------------------------------------------------------

    def _visited(self, wire: Wire) -> None:
        try:
            if (name := self._greeted(wire)) is not None:
                self._followed(wire, name)
        except (Broken, LocalmedError):  # it has gone, or does not even take an error
            return
        except Exception as error:
            _note(error)
        finally:
            self._connections.discard(wire)
            wire.close()

    def _greeted(self, wire: Wire) -> str | None:
        """The name under which the client takes its turns, None if it is not one of ours."""
        process, user = wire.peer()
        if user != os.getuid():
            return None
        hello = wire.receive(self._settings.message_seconds)
        if hello is None or hello.kind != "hello":
            return None
        owned = self._owned
        fitted = {name: asdict(encoder.identity) for name, encoder in owned.fitted.items()}
        facts = {"protocol": VERSION, "version": __version__, "searches": owned.nearest is not None, "fitted": fitted}
        wire.send(Frame("welcome", {**facts, "models": owned.described(), "choices": self._choices}))
        if hello.values.get("protocol") != VERSION or hello.values.get("version") != __version__:
            return None  # it was told which they are, and uses its own models
        return f"{user}:{str(hello.values.get('user', process))[:LONGEST_NAME]}"

    def _followed(self, wire: Wire, name: str) -> None:
        """Answer one after another what a client asks."""
        while not self._ending.is_set():
            self._idle.add(wire)
            request = wire.receive(None)
            self._idle.discard(wire)
            if request is not None:
                self._answer(wire, name, request)

    def _answer(self, wire: Wire, user: str, request: Frame) -> None:
        if request.kind == "status":
            return wire.send(Frame("status", asdict(self.status())))
        if request.kind == "cancel":  # it crossed the answer
            return None
        try:
            owner, job = job_of(self._owned, request)
            answer = _Turn(wire, self._ending).taken(self._owners[owner], user, job, request.values.get("low") is True)
        except LocalmedError as error:
            answer = error_frame(error)
        self._counts.note(request.kind if request.kind in JOBS else "unknown", answer.kind == "error")
        try:
            wire.send(answer)
        except LocalmedError as error:  # too large
            wire.send(error_frame(error))
        return None


class _Turn:
    """One request while it waits and runs: what the owner's thread says is passed on by the connection's thread."""

    def __init__(self, wire: Wire, ending: threading.Event) -> None:
        self._wire, self._ending = wire, ending
        self._passing: deque[Frame] = deque()  # bounded by the length of a reply
        self._gone, self._over = threading.Event(), threading.Event()

    def taken(self, worker: Worker, user: str, job: Job, low: bool) -> Frame:
        """The answer to ``job``, an ``error`` too; raise ``Busy`` where too many wait, ``Broken`` if nobody listens."""
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            future = worker.submit(user, lambda: self._done(job, wake), low)
            try:
                self._followed(future, wake)
            finally:
                self._gone.set()
                future.cancel()
                answer = _outcome(future)  # before the number of ``wake`` is anybody else's
        finally:
            os.close(wake)
        self._pass_on()
        return answer

    def _done(self, job: Job, wake: int) -> Frame:
        def token(text: str) -> None:
            self._passing.append(Frame("token", {"text": text}))
            os.eventfd_write(wake, 1)

        def progress(done: int, total: int) -> None:
            self._passing.append(Frame("progress", {"done": done, "total": total}))
            os.eventfd_write(wake, 1)

        try:
            return job(Watch(token, lambda: self._gone.is_set() or self._ending.is_set(), progress))
        finally:
            self._over.set()
            os.eventfd_write(wake, 1)

    def _followed(self, future: Future[Frame], wake: int) -> None:
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        poll.register(self._wire, select.POLLIN)
        while not self._over.is_set() and not future.done():
            ready = {number for number, _ in poll.poll(BEAT * 1000)}
            if wake in ready:
                os.eventfd_read(wake)
            self._pass_on()
            if self._wire.fileno() in ready:
                frame = self._wire.receive(0)
                if frame is not None and frame.kind != "cancel":
                    raise Broken
                self._gone.set()
                future.cancel()  # one that runs is cancelled by its model, which watches
            elif not ready:
                self._wire.send(Frame("beat", {}))

    def _pass_on(self) -> None:
        while self._passing:
            self._wire.send(self._passing.popleft())


def _outcome(future: Future[Frame]) -> Frame:
    try:
        return future.result()
    except CancelledError:
        return error_frame(Cancelled("model.cancelled_waiting"))
    except LocalmedError as error:
        return error_frame(error)
    except Exception as error:
        _note(error)
        return error_frame(error)


def _note(error: Exception) -> None:
    """Say that something failed and where: the kind of error, never its words, which may quote a text."""
    print(f"localmed host: a request failed ({confined.place(error)})", file=sys.stderr, flush=True)


def _name(described: Any) -> str:
    if isinstance(described, str):
        return described
    return " ".join(str(described[key]) for key in ("name", "version") if key in described)


def _memory() -> int:
    """What this process and its children have in memory, in bytes."""
    import psutil

    total, this = 0, psutil.Process()
    for process in (this, *this.children()):
        try:
            total += process.memory_info().rss
        except psutil.Error:  # it has ended meanwhile
            continue
    return total
