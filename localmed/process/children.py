"""The parent's side of a child process that answers line by line: start it, write to it, read from it, end it.

For every child that reads files, draws pages or runs models (``confined`` is what such a child does to itself). Each
client has a protocol and errors of its own; here are the process, its two pipes and the lines.

Rules: nothing here waits longer than it is told to, whatever the child does; the child's number of its parent is the
last word of its command line; what the child prints elsewhere is thrown away.
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
    """How a child of this process is kept from the network and from files, asked of one that does nothing else."""
    done = subprocess.run(
        command("localmed.process.confined"), env=scrubbed(), capture_output=True, text=True, timeout=60, check=False
    )
    network, _, files = done.stdout.strip().partition(" ")
    return confined.Isolation(network == "kernel", files == "kernel")


class TooLong(Exception):
    """A line has more bytes than allowed."""


def command(module: str) -> tuple[str, ...]:
    """How a child that runs ``module`` is started.

    -P keeps the working folder off the import path: a file called json.py beside the documents must not be run.
    """
    return (sys.executable, "-P", "-m", module)


class Failed(Exception):
    """A child gave no answer; ``how`` it ended."""

    def __init__(self, how: Message) -> None:
        super().__init__(how.code)
        self.how = how


class Child:
    """One child process, its pipes, and the lines that it sends."""

    def __init__(self, command: Sequence[str], most: int, more: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start ``command`` with ``more`` than every child has in its environment; a line may have ``most`` bytes."""
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
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, data: bytes, seconds: float) -> None:
        """Write ``data``, of which the child must take some within ``seconds``, and so on, else ``TimeoutError``.

        Raises another ``OSError`` where the child has ended.
        """
        left = memoryview(data)
        while left:
            if not self._taking.poll(seconds * 1000):
                raise TimeoutError
            left = left[os.write(self._input.fileno(), left) :]

    def line(self, seconds: float) -> bytes | None:
        """The next line without its end; None if it is not whole within ``seconds``.

        Raise ``BrokenPipeError`` if the child closed its end before, ``TooLong`` if the line exceeds the bound.
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
        """Drop the lines that have arrived and nobody has taken."""
        self._waiting.clear()

    def code(self) -> int | None:
        """How the child, which has closed its end, ended: its exit code, a signal as a negative number, None if not."""
        try:
            return self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End it now; another thread that reads from it finds its pipe closed at the other end."""
        self._process.kill()

    def kill(self) -> None:
        """End it now and close the pipes."""
        self._process.kill()
        self._process.wait()
        self._output.close()
        self._input.close()


def answer(command: Sequence[str], request: bytes, seconds: float, most: int) -> bytes:
    """The one line, of ``most`` bytes at most, that a child answers to ``request``, which may be empty.

    Raise ``TimeoutError`` if it is not there within ``seconds``, ``Failed`` if the child ended without it.
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
    """Whole lines out of what comes in pieces; one that is not whole may have ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._parts: list[bytes] = []

    def take(self, chunk: bytes) -> list[bytes]:
        """The lines that ``chunk`` completes, without their ends; raise ``TooLong`` where the rest is too long."""
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
    """How a child that failed has ended, by what ``Child.code`` says."""
    if code is None:
        return message("process.not_ended")
    if code >= 0:
        return message("process.exit", code=code)
    known = {signal_.value: signal_.name for signal_ in signal.Signals}
    return message("process.signal", name=known.get(-code, str(-code)))
