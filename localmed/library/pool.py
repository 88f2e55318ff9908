"""Open libraries that nobody uses at the moment, kept for the next question: opening one takes longer than asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

MOST_IDLE = 32  # as many as threads ask at once, for two groups of readers
Answering = tuple[int, frozenset[str], int]  # choice of models, which are stopped, when the generation was mended
Key = tuple[Answering, Path, frozenset[str]]  # with which generation, and the collections hidden
Opened = TypeVar("Opened")


class Pool(Generic[Opened]):
    """What is idle, by generation and hidden collections. Any thread may use it."""

    def __init__(self, close: Callable[[Opened], object]) -> None:
        """``close`` ends one."""
        self._close_one = close
        self._lock, self._closed = Lock(), False
        self._idle: list[tuple[Key, Opened]] = []

    def take(self, key: Key) -> Opened | None:
        """One of ``key``, if one is idle; those of another generation are closed."""
        with self._lock:
            stale = [entry for entry in self._idle if entry[0][:2] != key[:2]]
            self._idle = [entry for entry in self._idle if entry[0][:2] == key[:2]]
            place = next((place for place, entry in enumerate(self._idle) if entry[0] == key), None)
            taken = self._idle.pop(place)[1] if place is not None else None
        self._close(stale)
        return taken

    def give_back(self, key: Key, opened: Opened, keep: bool) -> None:
        """``opened`` is used no more; close it, or the one that was longest idle, where there are too many."""
        with self._lock:
            keep = keep and not self._closed  # what outlives the site, such as a page drawn ahead, ends by itself
            self._idle += [(key, opened)] if keep else []
            surplus, self._idle = self._idle[:-MOST_IDLE], self._idle[-MOST_IDLE:]
        self._close([*surplus, *([] if keep else [(key, opened)])])

    def close(self) -> None:
        """Close all that are idle, and what is given back from now on."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self._close(idle)

    def _close(self, idle: Iterable[tuple[Key, Opened]]) -> None:
        for _, opened in idle:
            self._close_one(opened)
