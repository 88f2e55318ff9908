"""What is read again and again within one answer, read once and forgotten with it.

No text of a patient outlives its question in a process that answers for weeks, and its memory does not grow. An answer
is made by one thread, which has what it read for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

Told = ParamSpec("Told")
Read = TypeVar("Read")
MOST = 20_000  # results of one function, where a command reads many texts and no answer ends


class _Kept(threading.local):
    """The results of one thread, by function."""

    def __init__(self) -> None:
        self.by_function: dict[object, Callable[..., Any]] = {}


_KEPT = _Kept()


def once(read: Callable[Told, Read]) -> Callable[Told, Read]:
    """``read``, whose results are kept for this thread until it calls ``forget``; for a function of texts alone."""

    @wraps(read)
    def kept(*args: Told.args, **kwargs: Told.kwargs) -> Read:
        if read not in _KEPT.by_function:
            _KEPT.by_function[read] = lru_cache(MOST)(read)
        cached = _KEPT.by_function[read]
        return cast(Read, cached(*args, **kwargs))

    return kept


def forget() -> None:
    """Drop everything that this thread kept."""
    _KEPT.by_function.clear()
