"""A model of this process, as its port, working for one thread at a time.

Models of one process share one lock: a single call is divided among all cores already, tokenizers and the thread pools
below them are not safe to share, and some models are parts of others (a reranker by an encoder's own weights).
Who waits for its turn may give up meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any, TypeVar, cast

from localmed.domain.ports import Embedder, Entailment, Reranker
from localmed.process import hooks

Owner = RLock
Port = TypeVar("Port", Embedder, Reranker, Entailment)
LOOK = 0.05  # seconds between two looks at a cancellation


@contextmanager
def turn(owner: Owner) -> Iterator[None]:
    """Hold ``owner`` within the block; raise ``Cancelled`` if the caller gives up while it waits."""
    while not owner.acquire(timeout=LOOK):
        hooks.check()
    try:
        hooks.check()
        yield
    finally:
        owner.release()


class _Owned:
    """A model of which each call waits for its turn."""

    def __init__(self, model: object, owner: Owner) -> None:
        self._model, self._owner = model, owner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return partial(self._call, value) if callable(value) else value

    def _call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with turn(self._owner):
            return method(*arguments, **named)


def owned(model: Port, owner: Owner) -> Port:
    """``model``, whichever port it is, for several threads."""
    return cast("Port", _Owned(model, owner))
