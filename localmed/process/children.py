"""The parent's side of a child process that answers line by line: start it, write to it, read from it, end it.

For every child that reads files, draws pages or runs models (``confined`` is the child's side). Nothing here waits
longer than the given time. The parent's process number is the last word of the child's command line. Output other than
the protocol is discarded.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import IO, cast

from localmed.domain import Message, message
from localmed.process import confined
from localmed.process.environment import scrubbed

GRACE = 5.0  # seconds for a child that closed its pipe to end
PIECE = 2**20  # bytes taken from the pipe at a time


@cache
def isolation() -> confined.Isolation:
    """How the kernel isolates a child of this process from the network and from files, as such a child reports."""
    done = subprocess.run(
        command("localmed.process.confined"), env=scrubbed(), capture_output=True, text=True, timeout=60, check=False
    )
    network, _, files = done.stdout.strip().partition(" ")
    return confined.Isolation(network == "kernel", files == "kernel")


def command(module: str) -> tuple[str, ...]:
    """The command that starts a child; -P keeps a json.py in the working folder off the import path."""
    return (sys.executable, "-P", "-m", module)


class TooLong(Exception):
    """A line has more bytes than allowed."""


class Failed(Exception):
    """A child ended without an answer; ``how`` it ended."""

    def __init__(self, how: Message) -> None:
        super().__init__(how.code)
        self.how = how


class Child:
    """One child process, its pipes, and its lines."""

    def __init__(self, command: Sequence[str], most: int, more: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start ``command`` with ``more`` environment variables; a line may have ``most`` bytes."""
        self._process = subprocess.Popen(
            [*command, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=scrubbed(**more),
        )
        self._input, self._output = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        self._sent, self._taking = select.poll(), select.poll()
        self._sent.register(self._output, select.POLLIN)
        self._taking.register(self._input, select.POLLOUT)
        os.set_blocking(self._input.fileno(), False)  # a child that hangs must not hang its parent
        self._lines, self._waiting = Lines(most), cast(deque[bytes], deque())
        self.pid = self._process.pid

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def send(self, data: bytes, seconds: float) -> None:
        """Write ``data``; raise ``TimeoutError`` if none of it is taken for ``seconds``, another ``OSError`` if the
        child ended.
        """
        left = memoryview(data)
        while left:
            if not self._taking.poll(seconds * 1000):
                raise TimeoutError
            left = left[os.write(self._input.fileno(), left) :]

    def line(self, seconds: float) -> bytes | None:
        """The next line without its end, or None after ``seconds``.

        Raise ``BrokenPipeError`` if the child closed its end, ``TooLong`` if the line exceeds the bound.
        """
        deadline = time.monotonic() + seconds
        while not self._waiting:
            if not self._sent.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return None
            piece = os.read(self._output.fileno(), PIECE)
            if not piece:
                raise BrokenPipeError
            self._waiting.extend(self._lines.take(piece))
        return self._waiting.popleft()

    def forget(self) -> None:
        """Discard lines that have arrived and were not read."""
        self._waiting.clear()

    def code(self) -> int | None:
        """The exit code of a child that has closed its end, a signal as a negative number, None if it still runs."""
        try:
            return self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End it now; a thread reading from it finds its pipe closed."""
        self._process.kill()

    def kill(self) -> None:
        """End it now and close the pipes."""
        self._process.kill()
        self._process.wait()
        self._output.close()
        self._input.close()


def answer(command: Sequence[str], request: bytes, seconds: float, most: int) -> bytes:
    """The one line, of at most ``most`` bytes, that a child answers to ``request``, which may be empty.

    Raise ``TimeoutError`` if it takes longer than ``seconds``, ``Failed`` if the child ended without it.
    """
    child = Child(command, most)
    try:
        if request:
            child.send(request, seconds)
        line = child.line(seconds)
    except TooLong:
        raise Failed(message("process.too_long")) from None
    except BrokenPipeError:
        raise Failed(outcome(child.code())) from None
    finally:
        child.kill()
    if line is None:
        raise TimeoutError
    return line


class Lines:
    """Assembles whole lines from pieces; an incomplete one may have ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._parts: list[bytes] = []

    def take(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without their ends; raise ``TooLong`` if the rest is too long."""
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._most:
            raise TooLong
        return lines


def outcome(code: int | None) -> Message:
    """How a failed child ended, from its ``Child.code``."""
    if code is None:
        return message("process.not_ended")
    if code >= 0:
        return message("process.exit", code=code)
    known = {signal_.value: signal_.name for signal_ in signal.Signals}
    return message("process.signal", name=known.get(-code, str(-code)))
