"""Replicas: servers with the same chat model, of which any may answer a request.

The least busy takes it, at most ``AT_ONCE`` at a time each; who comes then waits for a place. One that fails is left
out for ``REST_SECONDS``, then asked how it is (``/health``, which vLLM and llama-server have; where there is none, any
answer will do) before it gets a request again. If all are left out, the one that was first is tried: it may be back.

Pure of requests: the adapter makes them, and tells what came of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from localmed.errors import Cancelled, ModelError
from localmed.ports import Watch

AT_ONCE = 8  # requests of one replica: what the slots of a llama-server or a batch of vLLM read side by side
REST_SECONDS = 10.0  # that a replica is left out after it failed: as long as a server takes to be restarted, about
LOOK = 0.05  # seconds between two looks at a cancellation

Address = tuple[str, str, int]  # scheme, host, port
Probe = Callable[[Address], bool]  # whether the server there is well, asked within seconds


@dataclass(slots=True)
class Replica:
    """A server; guarded by the lock of ``Replicas``. ``out_until`` is of the monotonic clock, 0.0 while it is well."""

    address: Address
    running: int = 0
    out_until: float = 0.0


class Replicas:
    """The servers of one model, for any number of threads."""

    def __init__(self, addresses: Sequence[Address], probe: Probe, at_once: int = AT_ONCE) -> None:
        self._replicas = [Replica(address) for address in addresses]
        self._probe, self._at_once = probe, at_once
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._replicas)

    @contextmanager
    def taken(self, seconds: float, watch: Watch, but: Replica | None = None) -> Iterator[Replica]:
        """A replica with a place for a request, not ``but`` if there is another; the place is given back at the end.

        Raise ``ModelError`` where none has a place within ``seconds``, ``Cancelled`` if the caller gives up meanwhile.
        """
        replica = self._place(time.monotonic() + seconds, watch, but)
        try:
            yield replica
        finally:
            with self._changed:
                replica.running -= 1
                self._changed.notify_all()

    def failed(self, replica: Replica) -> None:
        """Leave ``replica`` out for a while."""
        with self._changed:
            replica.out_until = time.monotonic() + REST_SECONDS

    def answered(self, replica: Replica) -> None:
        """``replica`` is well."""
        with self._changed:
            replica.out_until = 0.0

    def _place(self, deadline: float, watch: Watch, but: Replica | None) -> Replica:
        while True:
            with self._changed:
                replica = self._best(but)
                while replica is None:
                    if watch.cancelled():
                        raise Cancelled("model.cancelled")
                    if time.monotonic() > deadline:
                        raise ModelError("chat.server_full", count=len(self) * self._at_once)
                    self._changed.wait(LOOK)
                    replica = self._best(but)
                replica.running += 1
                resting = replica.out_until
            if not resting or len(self) == 1 or self._probe(replica.address) or self._all_out():
                return replica
            with self._changed:
                replica.running -= 1
                replica.out_until = time.monotonic() + REST_SECONDS

    def _best(self, but: Replica | None) -> Replica | None:
        """The least busy of those that are well or may be again, else of those left out; None if there is no place."""
        others = [replica for replica in self._replicas if replica is not but] or self._replicas
        now = time.monotonic()
        free = [replica for replica in others if replica.running < self._at_once]
        up = [replica for replica in free if replica.out_until <= now]
        if up:
            return min(up, key=lambda replica: (replica.running, replica.out_until > 0))
        well = any(replica.out_until <= now for replica in others)  # one that is well will have a place
        return None if well or not free else min(free, key=lambda replica: replica.out_until)

    def _all_out(self) -> bool:
        with self._changed:
            return all(replica.out_until for replica in self._replicas)
