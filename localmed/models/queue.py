"""The queue in front of a model: bounded, fair between users, one request at a time.

``Turns`` is the order alone, without threads or clocks. Each user has a line, and the lines are served round-robin, so
that a hundred requests of one user delay the others by one request each round. Low-priority requests (the nightly
refresh) are served when nobody else waits. Beyond either bound a request is refused with ``Busy`` at once.

``Worker`` is the thread that serves the turns. ``owned`` shares a model of this process between threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import RLock
from typing import Any, Generic, TypeVar, cast

from localmed.domain.errors import Busy
from localmed.domain.ports import Embedder, Entailment, Reranker
from localmed.process import hooks

Item = TypeVar("Item")
Result = TypeVar("Result")


class Turns(Generic[Item]):
    """The order of waiting requests: at most ``waiting`` in total and ``per_user`` of one user."""

    def __init__(self, waiting: int, per_user: int) -> None:
        self._most, self._each = waiting, per_user
        self._lines: tuple[OrderedDict[str, deque[Item]], ...] = (OrderedDict(), OrderedDict())  # normal, low priority

    def __len__(self) -> int:
        return sum(len(line) for lines in self._lines for line in lines.values())

    def put(self, user: str, item: Item, low: bool = False) -> None:
        """Queue ``item`` for ``user``; raise ``Busy`` if a bound is reached."""
        line = self._lines[low].get(user, deque())
        if len(line) >= self._each:
            raise Busy("model.waiting_user", waiting=self._each)
        if len(self) >= self._most:
            raise Busy("model.waiting", waiting=self._most)
        line.append(item)
        self._lines[low].setdefault(user, line)

    def drop(self, user: str, left: Callable[[Item], bool], low: bool = False) -> None:
        """Remove the items of ``user`` that have ``left``; the others keep their turn."""
        lines = self._lines[low]
        if kept := [item for item in lines.get(user, ()) if not left(item)]:
            lines[user] = deque(kept)
        else:
            lines.pop(user, None)

    def next(self) -> Item:
        """Remove and return the next item; raise ``IndexError`` if none waits."""
        for lines in self._lines:
            if lines:
                user, line = lines.popitem(last=False)
                item = line.popleft()
                if line:
                    lines[user] = line  # at the back
                return item
        raise IndexError


Job = tuple["Future[object]", Callable[[], object]]


class Worker:
    """A thread that runs submitted calls in turns."""

    def __init__(self, waiting: int, per_user: int) -> None:
        self._turns: Turns[Job] = Turns(waiting, per_user)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="model-queue", daemon=True)
        self._thread.start()

    def submit(self, user: str, call: Callable[[], Result], low: bool = False) -> Future[Result]:
        """Queue ``call`` for ``user``; cancelling the future leaves the queue."""
        future: Future[Result] = Future()
        with self._changed:
            if self._closed:
                raise Busy("model.closing")
            self._turns.put(user, (future, call), low)  # type: ignore[arg-type]
            self._changed.notify()
        future.add_done_callback(lambda ended: self._left(user, ended, low))  # must not refer to ``call``: a cycle
        return future

    def _left(self, user: str, ended: Future[Result], low: bool) -> None:
        if ended.cancelled():
            with self._changed:
                self._turns.drop(user, lambda job: job[0] is ended, low)

    def waiting(self) -> int:
        """The number of waiting requests, without the running one."""
        with self._changed:
            return len(self._turns)

    def close(self) -> None:
        """Finish the running call and cancel the waiting ones."""
        with self._changed:
            self._closed = True
            while len(self._turns):
                self._turns.next()[0].cancel()
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (job := self._next_job()) is not None:
            future, call = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # raised again in the caller
                future.set_exception(error)
            del future, call, job  # keeps nothing of a request until the next one

    def _next_job(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._turns))
            return self._turns.next() if len(self._turns) else None


# --- models of this process -------------------------------------------------------------------------------------------

# All share one lock: a single call uses all cores already, tokenizers and their thread pools are not thread-safe, and
# some models share weights (a reranker with its encoder). A waiting caller may cancel.

Port = TypeVar("Port", Embedder, Reranker, Entailment)
LOOK = 0.05  # seconds between checks for cancellation


class _Owned:
    """A model whose calls wait for a lock; raises ``Cancelled`` if the caller gives up meanwhile."""

    def __init__(self, model: object, owner: RLock) -> None:
        self._model, self._owner = model, owner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return partial(self._call, value) if callable(value) else value

    def _call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        while not self._owner.acquire(timeout=LOOK):
            hooks.check()
        try:
            hooks.check()
            return method(*arguments, **named)
        finally:
            self._owner.release()


def owned(model: Port, owner: RLock) -> Port:
    """``model`` for use by several threads."""
    return cast("Port", _Owned(model, owner))
