"""``localmed serve``, ``host`` and ``desktop``: processes that run until they are stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, open_session, print_json, settings_of
from localmed.cli.later import accounts, canary_gate, fit
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import say, text
from localmed.domain.errors import ModelError

if TYPE_CHECKING:
    from localmed.models.host.protocol import Status
    from localmed.site.session import Session

PORT = click.IntRange(1, 65535)


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen on; other than this machine: needs TLS.")  # fmt: skip
@click.option("--port", type=PORT, default=8765, show_default=True, help="TCP port.")
@click.option("--tls-cert", type=FILE, help="Certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key (PEM).")
@click.option("--plain", is_flag=True, help="Listen on the network without TLS; only behind a proxy with TLS.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of server processes.")
@click.pass_context
def serve(
    ctx: click.Context, host: str, port: int, tls_cert: Path | None, tls_key: Path | None, plain: bool, workers: int
) -> None:
    """Start the web server; it runs until Ctrl-C or SIGTERM.

    Models run in a process of their own (see localmed host). If settings, models or the version have changed since the
    canary questions passed, they are asked first: if new settings fail one, the old settings stay in use; if a new
    version fails one, exit code 7. The first start prints a one-time code for the administrator's account.
    """
    from localmed.site.site import Site
    from localmed.web import serving

    address = serving.Address(host, port, tls_cert, tls_key, plain).checked()
    settings = settings_of(ctx)
    code = accounts.first_code(settings.data)

    def ready() -> None:
        say("web.serve.ready", url=address.url)
        if code:
            say("web.serve.code", code=code)

    with open_session(ctx) as session:
        say("web.serve.loading", err=True)
        chosen = canary_gate.before_serving(session)
        if chosen is not session.settings:
            os.environ["LOCALMED_CONFIG"] = str(settings.data / canary_gate.PASSED)  # for all child processes
        with Site(chosen) as site, serving.model_host(site) as hosted:
            if not hosted:
                say("web.serve.no_host", err=True)
            serving.run(chosen, address, workers, ready)


@click.command("host")
@click.option("--status", is_flag=True, help="Show the models and work of the running host.")
@json_option
@in_session
def host_command(session: Session, status: bool, as_json: bool) -> None:
    """Keep the models of the data folder loaded for other commands. Runs until Ctrl-C or SIGTERM.

    Commands of the same account find it automatically. With --status, exit code 6 means that no host responds.
    """
    if not status:
        with _stop_signal() as stop:
            session.site.serve_models(stop, lambda ready, path: _ready(ready, path, as_json))
        return
    running = session.site.host_status()
    if as_json:
        print_json({"running": running is not None} | (asdict(running) if running else {}))
    elif running:
        _show(running)
    if running is None:
        raise ModelError("host.not_running", data=str(session.site.data))


@contextmanager
def _stop_signal() -> Iterator[int]:
    """A file descriptor that becomes readable on Ctrl-C or SIGTERM; a second signal ends the process.

    The interpreter writes to it when the signal arrives. A handler would run in the main thread, which is blocked
    reading the descriptor and is not woken if the system delivered the signal to another thread.
    """
    stop, writer = os.pipe()
    os.set_blocking(writer, False)

    def second_ends(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)

    other_writer = signal.set_wakeup_fd(writer)
    before = {number: signal.signal(number, second_ends) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(other_writer)
        os.close(stop)
        os.close(writer)


def _ready(status: Status, path: Path, as_json: bool) -> None:
    if as_json:
        return print_json({"ready": True, "socket": str(path)} | asdict(status))
    return say("host.ready", path=str(path), models=tuple(status.models.values()))


def _show(status: Status) -> None:
    up = timedelta(seconds=round(status.seconds))
    say("host.status", process=status.process, version=status.version, time=str(up), memory=fit.size(status.memory))
    for role, name in status.models.items():
        note = text("host.other_choice") if role in status.others else ""
        echo(f"  {role:10}  {name}  {note}".rstrip())
    say("host.waiting", connections=status.connections, waiting=_counts(status.waiting))
    say("host.answered", served=_counts(status.served), failed=_counts(status.failed))


def _counts(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{name} {count}" for name, count in sorted(counts.items()))


@click.command("desktop")
@click.option("--port", type=PORT, default=8765, show_default=True, help="TCP port of the server.")
@click.option("--browser", is_flag=True, help="Use the browser, even if a separate window is possible.")
@click.pass_context
def desktop_command(ctx: click.Context, port: int, browser: bool) -> None:
    """Open localmed in a window on this machine (without the extra "desktop": in the browser).

    Starts localmed serve if needed, and stops it with the window. One window for each data folder.
    """
    from localmed import desktop

    data = settings_of(ctx).data
    with desktop.single_window(data), desktop.server(data, port) as url:
        if desktop.has_window() and not browser:
            desktop.show(data, url)
            return
        say("desktop.browser" if desktop.browse(url) else "desktop.no_browser", url=url)
        threading.Event().wait()
