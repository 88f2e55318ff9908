"""Workers by Ray: started on this machine for one import, or those of a cluster that runs already.

Rules: Ray's processes listen for each other, and whoever reaches them can run code. So those started here live in a
network that holds nothing but its loopback (``confined.own_loopback``), else none are started; a cluster is dialled
only if the settings list it (``ingest.clusters``), and admits by its token (``RAY_AUTH_TOKEN``). No usage statistics,
no dashboard, no log of a worker on the terminal. What Ray writes (sockets, logs, what does not fit its memory) lies in
a temporary folder for this user only, which is removed at the end, after a killed import by the next one.

A lost worker's step is done again ``RETRIES`` times; only this process writes, so nothing is there twice. After that,
or where the cluster is gone, ``LibraryError``: nothing has changed, and the next run finds the vectors made so far.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

from localmed import __version__
from localmed.config import IngestSettings
from localmed.domain.errors import BadSettings, LibraryError, LocalmedError, UsageError
from localmed.ingest.engine import Argument, Result, enveloped, opened
from localmed.ingest.preview import temporary_folder
from localmed.process import confined, hooks
from localmed.process.environment import OFFLINE

PREFIX = "localmed-ray-"
RETRIES = 3  # of a step whose worker was lost
STORE_BYTES = 256 * 2**20  # of Ray's shared memory; more is put into its temporary folder
ANSWER_SECONDS = 10.0  # for a cluster to accept a connection; Ray itself asks for minutes
LOOK = 0.5  # seconds between two looks whether the import was cancelled
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning that an error would be made of
    "RAY_BACKEND_LOG_LEVEL": "error",
}


class RayWorkers:
    """``Workers`` whose steps are Ray's tasks, one a processor."""

    def __init__(self, ray: Any) -> None:
        """``ray`` is the library, connected."""
        self._ray = ray
        self._run = ray.remote(max_retries=RETRIES, num_cpus=1)(enveloped)
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def start(self, step: Callable[[Argument], Result], argument: Argument) -> Callable[[], Result]:
        """See ``Workers``."""
        task = self._run.options(name=step.__name__).remote(__version__, step, argument)
        return lambda: self._result(task)

    def _result(self, task: Any) -> Any:
        with _lost():
            while not self._ray.wait([task], timeout=LOOK)[0]:
                hooks.check()
            envelope = self._ray.get(task)
        return opened(envelope)


@contextmanager
def workers(settings: IngestSettings, address: str = "", count: int = 0) -> Iterator[RayWorkers]:
    """Ray's workers: ``count`` (0: one a core) started here, or those of the cluster at ``address`` ("host:port").

    Raise ``UsageError`` where Ray is not installed or may not be started here, ``BadSettings`` for a cluster that is
    not listed, ``LibraryError`` where it does not answer. Call it before the process starts a thread.
    """
    if address and address not in settings.clusters:
        raise BadSettings("settings.cluster_unlisted", address=address)
    if not _installed():
        raise UsageError("import.ray_missing")
    os.environ.update(QUIET)
    if address:
        _answers(address)
    else:
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})  # should the kernel fail
        if not confined.own_loopback():
            raise UsageError("import.ray_network")
    import ray  # it reads the environment and starts threads

    with temporary_folder(PREFIX) as folder:
        here: dict[str, Any] = {"num_cpus": count or len(os.sched_getaffinity(0)), "include_dashboard": False}
        here |= {"object_store_memory": STORE_BYTES, "_temp_dir": str(folder / "ray")}
        with _connected(ray, {"address": address} if address else {"address": "local", **here}, folder):
            yield RayWorkers(ray)


def _answers(address: str) -> None:
    """Raise ``LibraryError`` where nothing listens at ``address``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise LibraryError("import.ray_silent", address=address, kind=type(error).__name__) from None


def _installed() -> bool:
    try:
        return importlib.util.find_spec("ray") is not None
    except ValueError:  # it was tried, and is none
        return False


@contextmanager
def _connected(ray: Any, how: dict[str, Any], folder: Path) -> Iterator[None]:
    """``ray``, connected from the empty ``folder``: workers take modules from where that is done."""
    ending = signal.getsignal(signal.SIGTERM)
    try:
        with _lost(), _silenced(), chdir(folder):
            ray.init(
                **how,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.CRITICAL,
                runtime_env={"env_vars": OFFLINE} if how["address"] != "local" else None,
            )
        signal.signal(signal.SIGTERM, ending)  # Ray takes it for itself
        # Ray 2.60 tells of lost workers on standard output whatever ``log_to_driver`` says; no setting is there
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        yield
    finally:
        interrupting = signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # the import is over: it would be called interrupted
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with suppress(Exception), _silenced():
            ray.shutdown()
        signal.signal(signal.SIGTERM, ending)
        signal.signal(signal.SIGINT, interrupting)


@contextmanager
def _lost() -> Iterator[None]:
    """Raise ``LibraryError`` in place of what Ray raises: of its messages nothing is shown."""
    try:
        yield
    except LocalmedError:
        raise
    except Exception as error:
        raise LibraryError("import.ray_lost", kind=type(error).__name__) from None


@contextmanager
def _silenced() -> Iterator[None]:
    """Nothing that Ray's libraries print reaches the terminal: they print beside Python's streams."""
    nothing, kept = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nothing)
        os.close(kept)
