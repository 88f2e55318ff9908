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

from localmed.cli.common import json_option, opened, print_json
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
            found = session.site.host_status()
            if as_json:
                print_json({"running": found is not None} | (asdict(found) if found else {}))
            elif found:
                _show(found)
            if found is None:
                raise ModelError("host.not_running", data=str(session.site.data))
            return
        with _until_told() as stop:
            session.site.serve_models(stop, lambda ready, path: _ready(ready, path, as_json))


@contextmanager
def _until_told() -> Iterator[int]:
    """A file number that can be read once Ctrl-C or SIGTERM came; a second one ends the process as it always does."""
    told = os.eventfd(0)

    def tell(number: int, _frame: object) -> None:
        os.eventfd_write(told, 1)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told)


def _ready(status: Status, path: Path, as_json: bool) -> None:
    if as_json:
        return print_json({"ready": True, "socket": str(path)} | asdict(status))
    models = ", ".join(status.models.values())
    return click.echo(f"Ready at {path}: {models} (Ctrl-C ends it)")


def _show(status: Status) -> None:
    from localmed.operations.check import size

    up = timedelta(seconds=round(status.seconds))
    click.echo(f"Process {status.process}, version {status.version}, up {up}, {size(status.memory)} in memory")
    for role, name in status.models.items():
        note = "  (this command's settings choose another)" if role in status.others else ""
        click.echo(f"  {role:10}  {name}{note}")
    click.echo(f"Connections {status.connections}; waiting: {_counts(status.waiting)}")
    click.echo(f"Answered: {_counts(status.served)}; failed: {_counts(status.failed)}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
