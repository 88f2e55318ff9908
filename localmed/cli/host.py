"""``localmed host``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, json_option, opened, print_json
from localmed.cli.speaking import say, text
from localmed.errors import ModelError

if TYPE_CHECKING:
    from localmed.models.host.server import Status


@click.command("host")
@click.option("--status", is_flag=True, help="Say what the running host owns and does, and end.")
@json_option
@click.pass_context
def command(ctx: click.Context, status: bool, as_json: bool) -> None:
    """Own the models of the data folder, so that other commands need not load them. Runs until Ctrl-C or SIGTERM.

    Commands of the same account find it by themselves. With --status the exit code is 6 if no host answers.
    """
    with opened(ctx) as session:
        if status:
            running = session.site.host_status()
            if as_json:
                print_json({"running": running is not None} | (asdict(running) if running else {}))
            elif running:
                _show(running)
            if running is None:
                raise ModelError("host.not_running", data=str(session.site.data))
            return
        with _until_told() as stop:
            session.site.serve_models(stop, lambda ready, path: _ready(ready, path, as_json))


@contextmanager
def _until_told() -> Iterator[int]:
    """A file number that can be read once Ctrl-C or SIGTERM came; a second one ends the process as it always does.

    The interpreter writes to it as the signal comes. A handler would wait for the main thread, which waits for the file
    and is not woken where the system gave the signal to another thread.
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
    from localmed.operations.check import size

    up = timedelta(seconds=round(status.seconds))
    say("host.status", process=status.process, version=status.version, time=str(up), memory=size(status.memory))
    for role, name in status.models.items():
        note = text("host.other_choice") if role in status.others else ""
        echo(f"  {role:10}  {name}  {note}".rstrip())
    say("host.waiting", connections=status.connections, waiting=_counts(status.waiting))
    say("host.answered", served=_counts(status.served), failed=_counts(status.failed))


def _counts(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{name} {count}" for name, count in sorted(counts.items()))
