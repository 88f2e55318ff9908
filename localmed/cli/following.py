"""Long work as it is shown on a terminal: a bar for what is counted, the current step for a workflow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from localmed.cli.common import progress
from localmed.domain import Message, message
from localmed.hooks import SILENT, Hooks
from localmed.messages import render


@contextmanager
def work_shown(show: bool) -> Iterator[Hooks]:
    """Hooks for an import or a reindexing: a bar with the time left on standard error, silent unless on a terminal."""
    with progress(show) as (start, advance):
        done_before, total_before = 0.0, 0.0

        def update(done: float, total: float, name: str) -> None:
            nonlocal done_before, total_before
            if total != total_before:
                start(int(total))
            advance(done - done_before, name)
            done_before, total_before = done, total

        yield Hooks(progress=update)


@contextmanager
def steps_shown(language: str, as_json: bool) -> Iterator[Hooks]:
    """Hooks for a workflow: its current step on standard error, and how far it is.

    Silent unless on a terminal, and where JSON goes to another program.
    """
    if not sys.stderr.isatty() or (as_json and not sys.stdout.isatty()):
        yield SILENT
        return
    from rich.console import Console

    step: Message | None = None
    with Console(stderr=True).status("") as status:

        def started(begun: Message) -> None:
            nonlocal step
            step = begun
            status.update(render(begun, language))

        def update(done: float, total: float, _: str) -> None:
            if step and total > 1:
                at = message("workflow.progress", step=step, done=int(done), total=int(total))
                status.update(render(at, language))

        yield Hooks(started=started, progress=update)
