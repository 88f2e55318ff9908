"""Workers by Ray: started on this machine for one import, or those of a running cluster.

Whoever reaches Ray's processes can run code. Workers started here therefore live in a network with only its loopback
(``confined.own_loopback``), or do not start; a cluster must be listed (``ingest.clusters``) and admits by its token
(``RAY_AUTH_TOKEN``). There are no usage statistics, dashboard or worker logs. Ray's files lie in a temporary folder for
this user only, removed at the end or, after a kill, by the next import.

A lost worker's step is repeated up to ``RETRIES`` times. Only this process writes; if that fails, ``LibraryError`` is
raised, nothing has changed, and the next run reuses the vectors made so far.
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
from localmed.ingest.ahead import LOOK
from localmed.ingest.engine import Result, open_envelope, run_enveloped
from localmed.ingest.preview import temporary_folder
from localmed.process import confined, hooks
from localmed.process.environment import OFFLINE

PREFIX = "localmed-ray-"
RETRIES = 3  # of a step after its worker was lost
STORE_BYTES = 256 * 2**20  # of Ray's shared memory; the rest goes to its temporary folder
ANSWER_SECONDS = 10.0  # for a cluster to accept a connection; Ray itself asks for minutes
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning, which would become an error
    "RAY_BACKEND_LOG_LEVEL": "error",
}


class RayWorkers:
    """``Workers`` whose steps are Ray tasks, one a processor."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._run = ray.remote(max_retries=RETRIES, num_cpus=1)(run_enveloped)
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def start(self, step: Callable[..., Result], *arguments: Any) -> Callable[[], Result]:
        """See ``Workers``."""
        task = self._run.options(name=step.__name__).remote(__version__, step, *arguments)
        return lambda: self._result(task)

    def _result(self, task: Any) -> Any:
        with _translate_errors():
            while not self._ray.wait([task], timeout=LOOK)[0]:
                hooks.check()
            envelope = self._ray.get(task)
        return open_envelope(envelope)


@contextmanager
def workers(settings: IngestSettings, address: str = "", count: int = 0) -> Iterator[RayWorkers]:
    """Ray's workers: ``count`` (0: one a core) started here, or those of the cluster at ``address`` ("host:port").

    Raise ``UsageError`` if Ray is not installed or may not start here, ``BadSettings`` for a cluster that is not
    listed, ``LibraryError`` if it does not answer. Call it before the process starts a thread.
    """
    if address and address not in settings.clusters:
        raise BadSettings("settings.cluster_unlisted", address=address)
    if importlib.util.find_spec("ray") is None:
        raise UsageError("import.ray_missing")
    os.environ.update(QUIET)
    if address:
        _check_reachable(address)
    else:
        # In case the kernel's isolation fails
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
        if not confined.own_loopback():
            raise UsageError("import.ray_network")
    import ray  # it reads the environment and starts threads

    with temporary_folder(PREFIX) as folder:
        here: dict[str, Any] = {"num_cpus": count or len(os.sched_getaffinity(0)), "include_dashboard": False}
        here |= {"object_store_memory": STORE_BYTES, "_temp_dir": str(folder / "ray")}
        with _connection(ray, {"address": address} if address else {"address": "local", **here}, folder):
            yield RayWorkers(ray)


def _check_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise LibraryError("import.ray_silent", address=address, kind=type(error).__name__) from None


@contextmanager
def _connection(ray: Any, how: dict[str, Any], folder: Path) -> Iterator[None]:
    """Connect ``ray`` from the empty ``folder``: workers import modules from the connecting process's folder."""
    ending = signal.getsignal(signal.SIGTERM)
    try:
        with _translate_errors(), _silence_stderr(), chdir(folder):
            ray.init(
                **how,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.CRITICAL,
                runtime_env={"env_vars": OFFLINE} if how["address"] != "local" else None,
            )
        signal.signal(signal.SIGTERM, ending)  # Ray replaces the handler
        # Ray 2.60 reports lost workers on standard output whatever ``log_to_driver`` says
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        yield
    finally:
        # The import is complete: Ctrl-C now must not report it as interrupted
        interrupting = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with suppress(Exception), _silence_stderr():
            ray.shutdown()
        signal.signal(signal.SIGTERM, ending)
        signal.signal(signal.SIGINT, interrupting)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Replace Ray's exceptions with ``LibraryError``; their messages are never shown."""
    try:
        yield
    except LocalmedError:
        raise
    except Exception as error:
        raise LibraryError("import.ray_lost", kind=type(error).__name__) from None


@contextmanager
def _silence_stderr() -> Iterator[None]:
    nothing, kept = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nothing)
        os.close(kept)
