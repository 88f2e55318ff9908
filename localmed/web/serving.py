"""Serves the application: the address and its safeguards, the model host beside it, worker processes.

An address off the loopback without TLS is refused: passwords and questions would cross a cable in the clear. Requests
are not logged, except for the faults that ``protection`` logs; uvicorn's access log would record addresses.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import select
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from localmed.config import Settings, load
from localmed.domain.errors import InputError, LocalmedError, Unresponsive, UsageError, reason
from localmed.process import children
from localmed.process.environment import few_arenas
from localmed.process.files import contents
from localmed.site.site import Site
from localmed.upkeep import fit
from localmed.web import application

if TYPE_CHECKING:
    from fastapi import FastAPI

LOG = logging.getLogger("localmed.web")
DATA, NAMES = "LOCALMED_DATA", "LOCALMED_SERVED_AS"  # the environment of worker processes
HOST_SECONDS = 60.0  # for the model host to load what it serves
LOOK, MOST_PAUSE = 2.0, 60.0  # seconds between two looks whether a model host runs; the longest for one that fails
SILENT = 2  # times `host.silent_seconds`: then a host of ours that says nothing is replaced
GPU_LOOK = 300.0  # seconds between two looks whether every GPU is there: nvidia-smi takes up to two of them
SWITCH_SECONDS = 0.0005  # that a thread computes before another may: a page waits for answers at each of its steps
GRACE_SECONDS = 5  # for requests that run when the server ends


@dataclass(frozen=True, slots=True)
class Address:
    """The address and the TLS files of the server."""

    host: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None
    plain: bool = False  # on the hospital's network without TLS: behind a proxy of its own

    @property
    def url(self) -> str:
        """The address for a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}/"

    def checked(self) -> Address:
        """The address itself.

        Raise ``UsageError`` if it would send passwords in the clear, ``InputError`` for unusable TLS files.
        """
        if not self.certificate and not self.plain and not loopback(self.host):
            raise UsageError("web.serve.plain", host=self.host)
        for file in filter(None, (self.certificate, self.key)):
            contents(file)  # OpenSSL would wait for a pipe and read a device without an end
        if self.certificate:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as error:
                raise InputError("web.serve.tls", file=str(self.certificate), reason=reason(error)) from None
        return self


def loopback(host: str) -> bool:
    """Whether ``host`` is this machine alone."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


@contextmanager
def model_host(site: Site) -> Iterator[bool]:
    """Run the models in a process beside this one for the length of the block; False if none could be started.

    A running host is used and left alone. A host that ends is replaced, and so is one of ours that hangs.
    """
    if not site.settings.host.use:
        yield False
        return
    over, keeper = threading.Event(), _Keeper(site)
    ready = site.host_status() is not None or keeper.start()
    thread = threading.Thread(target=keeper.keep, args=(over,), name="model host", daemon=True)
    thread.start()
    try:
        yield ready
    finally:
        over.set()
        thread.join()
        keeper.end()


@dataclass
class _Keeper:
    """Keeps a model host running."""

    site: Site
    process: subprocess.Popen[bytes] | None = None

    def keep(self, over: threading.Event) -> None:
        """Check until ``over``; a host that keeps ending is restarted at growing intervals."""
        pause, looked, heard = LOOK, -GPU_LOOK, time.monotonic()
        while not over.wait(pause):
            if time.monotonic() - looked >= GPU_LOOK:
                looked = time.monotonic()
                fit.watch(self.site.settings, fit.inspect_machine())
            ours = self.process is not None and self.process.poll() is None
            try:
                answers = self.site.host_status() is not None
            except Unresponsive:
                if not ours or time.monotonic() - heard < SILENT * self.site.settings.host.silent_seconds:
                    continue
                answers = ours = False
            except LocalmedError:  # of another version, which is not ours to end; or too many ask it
                answers = True
            if answers:
                pause = LOOK
            elif not ours:  # else it loads its models yet
                LOG.warning("host.ended")
                pause = min(2 * pause, MOST_PAUSE)
                self.start()
            heard = time.monotonic()

    def start(self) -> bool:
        """Start a host and wait for its models; return whether it loaded them."""
        self.end()
        command = (*children.command("localmed"), "--data", str(self.site.data), "host", "--json")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        output = cast(IO[bytes], self.process.stdout)
        ready, _, _ = select.select([output], [], [], HOST_SECONDS)
        return bool(ready and output.readline())

    def end(self) -> None:
        """End the host that was started here."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        cast(IO[bytes], self.process.stdout).close()
        self.process = None


def run(settings: Settings, address: Address, workers: int, ready: Callable[[], None]) -> None:
    """Serve browsers until Ctrl-C or SIGTERM; call ``ready`` just before the first request."""
    import uvicorn

    _prepare()
    os.environ.setdefault("OTEL_SDK_DISABLED", "true")  # FastAPI brings OpenTelemetry's interface: nothing is measured
    options: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "ssl_certfile": address.certificate,
        "ssl_keyfile": address.key,
        "access_log": False,
        "log_level": "warning",
        "server_header": False,
        "date_header": True,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "h11_max_incomplete_event_size": 64 * 2**10,  # of a request's headers
    }
    with _ended_by_signals():
        if workers > 1:
            os.environ |= {DATA: str(settings.data), NAMES: address.host}
            ready()
            uvicorn.run("localmed.web.serving:of_worker", factory=True, workers=workers, **options)
        else:
            with Site(settings) as site:
                ready()
                uvicorn.run(application.create(site, (_name(address.host),)), **options)


def of_worker() -> FastAPI:
    """The application in a worker process; its site comes from the environment that ``run`` set."""
    _prepare()
    return application.create(Site(load(os.environ[DATA])), (_name(os.environ[NAMES]),))


def _prepare() -> None:
    """Prepare a serving process before it has threads."""
    few_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block; uvicorn finishes its requests first and passes them on."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
