"""``localmed desktop``: the pages in a native window, else in the system's browser; starts a server if needed.

The window (pywebview, an extra) opens the loopback address without an interface between page and Python, so that the
pages' policy holds as in a browser. There is one window for each data folder; a second call reports it and ends. Size
and position are stored in ``<data>/desktop.json``.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from localmed.domain.errors import Busy, ModelError
from localmed.library import layout
from localmed.process import children, files

LOCK, STATE = layout.WINDOW_LOCK, layout.WINDOW
START_SECONDS = 300.0  # for the server to answer: it loads the models first, perhaps on a machine that is busy
GRACE_SECONDS = 10.0
SMALLEST, LARGEST = 400, 10_000  # pixels of a side


@dataclass(frozen=True, slots=True)
class Frame:
    """Size and place of the window, in pixels."""

    width: int = 1280
    height: int = 860
    x: int | None = None
    y: int | None = None


def last_frame(data: Path) -> Frame:
    """The frame of the last window; the default where none is stored or it is invalid."""
    with suppress(OSError, ValueError, TypeError):
        frame = Frame(**json.loads(files.first_bytes(data / STATE, 10_000)))
        sides_fit = all(SMALLEST <= side <= LARGEST for side in (frame.width, frame.height))
        if sides_fit and all(place is None or abs(place) <= LARGEST for place in (frame.x, frame.y)):
            return frame
    return Frame()


def remember(data: Path, frame: Frame) -> None:
    """Store ``frame`` for the next window; does nothing where the folder is read-only."""
    with suppress(OSError):
        files.replace(data / STATE, json.dumps(asdict(frame)).encode())


@contextmanager
def single_window(data: Path) -> Iterator[None]:
    """Lock the data folder for one window; raise ``Busy`` if one is open."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data / LOCK).open("a") as lock:
        if not files.lock(lock):
            raise Busy("desktop.open")
        yield


def is_running(url: str) -> bool:
    """Whether localmed responds at ``url``, an address of this machine."""
    try:
        with urllib.request.urlopen(f"{url}login", timeout=2) as reply:  # noqa: S310  (a loopback address of ours)
            return b"localmed" in reply.read(100_000)
    except (urllib.error.URLError, OSError, ValueError):
        return False


@contextmanager
def server(data: Path, port: int) -> Iterator[str]:
    """The address of a server of ``data``: a running one, else a new one that ends with the block."""
    url = f"http://127.0.0.1:{port}/"
    if is_running(url):
        yield url
        return
    command = (*children.command("localmed"), "--data", str(data), "serve", "--port", str(port))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_running(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ModelError("desktop.no_server", port=port)
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)


def has_window() -> bool:
    """Whether the extra ``desktop`` is installed."""
    return find_spec("webview") is not None


def show(data: Path, url: str) -> None:
    """Show ``url`` in a window until it is closed.

    ``text_select``: without it pywebview adds a style to each page, which the pages' Trusted Types refuse.
    """
    import webview

    frame = last_frame(data)
    window: Any = webview.create_window("localmed", url, text_select=True, zoomable=True, **asdict(frame))
    window.events.closing += lambda: remember(data, Frame(window.width, window.height, window.x, window.y))
    webview.start(private_mode=True)  # no cookie and no cache stays behind


def browse(url: str) -> bool:
    """Show ``url`` in the system's browser; False where there is none."""
    return webbrowser.open(url)
