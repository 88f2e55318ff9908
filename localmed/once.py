"""What is read again and again within one answer, read once and forgotten with it.

No text of a patient outlives its question in a process that answers for weeks, and its memory does not grow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

Told = ParamSpec("Told")
Read = TypeVar("Read")
MOST = 20_000  # results of one function, where a command reads many texts and no answer ends
_FORGET: list[Callable[[], None]] = []


def once(read: Callable[Told, Read]) -> Callable[Told, Read]:
    """``read``, whose results are kept until ``forget``; for a module's function of texts alone."""
    kept = lru_cache(MOST)(read)
    _FORGET.append(kept.cache_clear)
    return cast("Callable[Told, Read]", kept)


def forget() -> None:
    """Drop everything that was kept; an answer that another thread makes just then reads its texts again."""
    for clear in _FORGET:
        clear()
