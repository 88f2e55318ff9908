"""How the commands of the workflows run one: in which profile, the steps shown, a recording kept, text or JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import files
from localmed.cli.common import echo, json_option, opened, print_json, steps_shown
from localmed.cli.showing import show
from localmed.domain import Answer
from localmed.domain.codec import answer_json
from localmed.hooks import Hooks
from localmed.messages import joined

if TYPE_CHECKING:
    from localmed.session import Session


@dataclass(frozen=True, slots=True)
class Options:
    """What ``workflow_options`` were given."""

    trace: bool = False
    record: Path | None = None
    profile: str | None = None
    as_json: bool = False


def workflow_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every workflow, which the command gets as one: ``options``."""

    @wraps(command)
    def gathered(
        *positional: Any, trace: bool, record: Path | None, profile: str | None, as_json: bool, **own: Any
    ) -> None:
        command(*positional, options=Options(trace, record, profile, as_json), **own)

    decorated: Callable[..., None] = gathered
    for option in (
        json_option,
        click.option("--trace", is_flag=True, help="Show the steps and how long each took (on standard error)."),
        click.option("--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                     help="Write a recording for `localmed replay`: it holds all that was asked and found."),
        click.option("--profile", type=click.Choice(["starter", "workstation"]), help="In place of the settings'."),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated


def run(ctx: click.Context, workflow: Callable[[Session, Hooks], Answer], options: Options) -> Answer:
    """The answer of ``workflow``; its recording is written before anything is shown."""
    from localmed.workflows.recording import Recording

    record = options.record
    if record:
        files.new_name(record)
    recording = Recording() if record else None
    with opened(ctx, options.profile) as session, steps_shown(session.caller.language, options.as_json) as hooks:
        answer = workflow(session, replace(hooks, recorder=recording))
    if record and recording:
        files.write_new(record, recording.finish(answer).encode())
    if options.trace:
        show_trace(answer)
    return answer


def give(answer: Answer, options: Options) -> None:
    """Print ``answer``, for people or for scripts."""
    if options.as_json:
        print_json(answer_json(answer, answer.language))
    else:
        show(answer)


def show_trace(answer: Answer) -> None:
    """The steps on standard error: names, counts and ids."""
    for step in answer.trace:
        detail = joined((f"{name} {value}" for name, value in step.detail), answer.language)
        echo(f"  {step.seconds * 1000:7.1f} ms  {step.name}: {detail}", err=True)
