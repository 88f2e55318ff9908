"""Notes each Ctrl-C and raises it again at the next check (``hooks.check``) if library code has swallowed it.

Python raises it wherever the main thread is; a library, or a clean-up that fails in turn, can replace it with another
exception, and the command would run on to its end. If it is raised in code that ``exec`` runs (as dataclasses do),
CPython 3.11 remembers that and ends by the signal, whatever the exit code, until it runs ``exec`` again.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_noted = False  # no lock: a second Ctrl-C may come within the handler
_delayed = False


@contextmanager
def note_interrupts() -> Iterator[None]:
    """Note Ctrl-C within the block, in the main thread of a command, unless the command was started to ignore it."""
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
def delayed() -> Iterator[None]:
    """Delay Ctrl-C for a block of seconds: torch, interrupted while its C++ loads, aborts the process."""
    global _delayed
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C is raised in the main thread alone
        yield
        return
    _delayed = True
    try:
        yield
    finally:
        _delayed = False
    check()


def interrupt(_number: int, _frame: object) -> None:
    """Handle a signal that ends a command as Ctrl-C does."""
    global _noted
    _noted = True
    if not _delayed:
        raise KeyboardInterrupt


def check() -> None:
    """Raise ``KeyboardInterrupt``, in the main thread alone, if one was noted and is not being handled."""
    if not _noted or threading.current_thread() is not threading.main_thread():
        return
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
        raise KeyboardInterrupt
