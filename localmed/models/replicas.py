"""Replicas: servers with the same chat model, of which any may answer a request.

The least busy takes it, at most ``AT_ONCE`` at a time each; who comes then waits for a place. One that falters is left
out for ``REST_SECONDS``, then asked how it is (``/health``, which vLLM and llama-server have; where there is none, any
answer will do) before it gets a request again. If all are left out, the one that was first is tried: it may be back.

Pure of requests: the adapter makes them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from localmed.domain.errors import Cancelled, Faltered, ModelError
from localmed.domain.ports import Watch

AT_ONCE = 8  # requests of one replica: what the slots of a llama-server or a batch of vLLM read side by side
REST_SECONDS = 10.0  # that a replica is left out after it failed: as long as a server takes to be restarted, about
LOOK = 0.05  # seconds between two looks at a cancellation

Address = tuple[str, str, int]  # scheme, host, port
Probe = Callable[[Address], bool]  # whether the server there is well, asked within seconds


@dataclass(slots=True, eq=False)
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
            replica.out_until = 0.0
        except Faltered:
            replica.out_until = time.monotonic() + REST_SECONDS
            raise
        finally:
            with self._changed:
                replica.running -= 1
                self._changed.notify_all()

    def _place(self, deadline: float, watch: Watch, but: Replica | None) -> Replica:
        left_out = [but] if but else []
        while True:
            replica = self._waited_for(deadline, watch, left_out)
            if not replica.out_until or self._all_out() or self._probe(replica.address):
                return replica
            left_out.append(replica)
            with self._changed:
                replica.running -= 1
                replica.out_until = time.monotonic() + REST_SECONDS

    def _waited_for(self, deadline: float, watch: Watch, left_out: Sequence[Replica]) -> Replica:
        with self._changed:
            while (replica := self._best(left_out)) is None:
                if watch.cancelled():
                    raise Cancelled("model.cancelled")
                if time.monotonic() > deadline:
                    raise ModelError("chat.server_full", count=len(self) * self._at_once)
                self._changed.wait(LOOK)
            replica.running += 1
            return replica

    def _best(self, left_out: Sequence[Replica]) -> Replica | None:
        """The least busy of those that are well or may be again, else of those that rest; None if none has a place."""
        others = [replica for replica in self._replicas if replica not in left_out] or self._replicas
        now = time.monotonic()
        up = [replica for replica in others if replica.out_until <= now]
        free = [replica for replica in up or others if replica.running < self._at_once]
        if up:
            return min(free, key=lambda replica: (replica.running, replica.out_until > 0), default=None)
        return min(free, key=lambda replica: replica.out_until, default=None)

    def _all_out(self) -> bool:
        with self._changed:
            return all(replica.out_until for replica in self._replicas)
