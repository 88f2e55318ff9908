"""Ctrl-C that is swallowed on its way: noted here, and raised again at the next look (``hooks.check``).

Python raises it wherever the main thread happens to be. A library's own code, or a clean-up that fails in turn, can put
another exception in its place, and the command would go on to its end.

Where it was raised in a text that Python ran (``exec``, with which dataclasses are made), CPython 3.11 remembers that
and ends by the signal, whatever exit code the command gives, until it runs another text.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_noted = False  # no lock: a second Ctrl-C may come within the handler
_held = False


@contextmanager
def listening() -> Iterator[None]:
    """Note Ctrl-C within the block; it raises ``KeyboardInterrupt`` as before. For the main thread of a command.

    A command that was started to ignore it (in the background of a script) goes on ignoring it.
    """
    global _noted
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _noted = False
        exec("")  # noqa: S102 (see above)


@contextmanager
def held() -> Iterator[None]:
    """Keep Ctrl-C back until the end of the block, which lasts seconds at most.

    For what does not survive an exception in its middle: torch, interrupted while its C++ loads, aborts the process.
    """
    global _held
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C is raised in the main thread alone
        yield
        return
    _held = True
    try:
        yield
    finally:
        _held = False
    check()


def interrupt(_number: int, _frame: object) -> None:
    """The handler of a signal that ends a command as Ctrl-C does."""
    global _noted
    _noted = True
    if not _held:
        raise KeyboardInterrupt


def check() -> None:
    """Raise ``KeyboardInterrupt`` where one was noted and nobody is dealing with it; in the main thread alone."""
    if not _noted or threading.current_thread() is not threading.main_thread():
        return
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
        raise KeyboardInterrupt
