"""An import that is killed at its N-th change of the file system. Run as a process of its own; see ``test_crash.py``.

It reads one JSON request a line (``data``, ``paths``, ``kill``) and imports in a fork, which an audit hook kills with
SIGKILL just before the N-th step (``kill`` 0: never); it writes the number of steps or -9 as a line. With ``after`` the
fork is killed that many seconds after it began to build.

A step is one kind of change in one folder of the data, or in one part of a generation: how many files Lance and Tantivy
have there, and what they call them, differs from run to run, and the steps must not. What the engines themselves do is
Rust, which no audit hook sees.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import lancedb  # noqa: F401  - two seconds, paid once
import tantivy  # noqa: F401

from localmed.config import LibrarySettings, Settings
from tests.fakes import HashedWords, import_into

EVENTS = ("os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "open", "fcntl.flock")
DEPTH = 3  # of a path in a generation: generations/building/lexical


class Killer:
    """Counts events that change something under ``data`` and kills the process before number ``kill``."""

    def __init__(self, data: str, kill: int) -> None:
        self._data, self._kill = data, kill
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not _changes(event, arguments):
            return
        step = self._step(event, str(arguments[0]))
        if not step or (self.seen and self.seen[-1] == step):
            return  # linking forty files is one step
        self.seen.append(step)
        if len(self.seen) == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def _step(self, event: str, path: str) -> str:
        """What ``event`` does, and where; "" outside the data folder."""
        if event == "fcntl.flock":
            return event
        if event in ("os.remove", "os.rmdir"):  # removing a tree names its entries alone
            return "remove"
        within = path.removeprefix(self._data)
        if within == path and not path.startswith("generations/"):  # the link ``current`` is relative
            return ""
        parts = Path(within.strip("/")).parts
        return f"{event} {'/'.join(parts[: DEPTH if parts[:1] == ('generations',) else 1])}"


def _changes(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether something will be another afterwards: not by reading, or by making a folder that there is.

    ``os.open``, which has no mode, counts: with it files and folders are synced.
    """
    if event == "os.mkdir":
        return not Path(arguments[0]).exists()
    return event != "open" or arguments[1] is None or bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))


def _kill_later(child: int, begun: Path, seconds: float) -> None:
    deadline = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)


def main() -> None:
    """Serve requests."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            killer = Killer(request["data"], request["kill"])
            sys.addaudithook(killer)
            settings = Settings(Path(request["data"]), library=LibrarySettings(batch=2, writer_memory_bytes=15_000_000))
            import_into(settings, *map(Path, request["paths"]), encoder=HashedWords())
            os.write(writing, str(len(killer.seen)).encode())
            os._exit(0)
        os.close(writing)
        if "after" in request:
            _kill_later(child, Path(request["data"]) / "generations" / "building" / "library.sqlite", request["after"])
        _, status = os.waitpid(child, 0)
        count = os.read(reading, 20).decode()
        os.close(reading)
        print(-9 if os.WIFSIGNALED(status) else count or "failed", flush=True)


if __name__ == "__main__":
    main()
