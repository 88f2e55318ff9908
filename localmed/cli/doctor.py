"""``localmed doctor``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo_wrapped, json_option, opened, print_json
from localmed.errors import BadSettings

if TYPE_CHECKING:
    from localmed.operations.check import Check

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--full", is_flag=True, help="Read every byte of the models and generations (takes minutes).")
@json_option
@click.pass_context
def command(ctx: click.Context, full: bool, as_json: bool) -> None:
    """Check the machine, the software, the models and the library; each line ok, warning or problem with what to do.

    Exit code 0 if there is no problem (warnings may be), 5 if there is one. Nothing is changed.
    """
    from localmed.operations import doctor

    found = []
    for check in _checks(ctx, full):
        found.append(check)
        if not as_json:
            _show(check)
    worst = doctor.worst(found)
    if as_json:
        print_json({"worst": worst, "checks": [asdict(each) for each in found]})
    if worst == "problem":
        sys.exit(doctor.PROBLEMS_EXIT_CODE)


def _checks(ctx: click.Context, full: bool) -> Iterator[Check]:
    """The checks as they are made; settings or libraries that cannot be loaded are a problem themselves."""
    from localmed.operations import doctor
    from localmed.operations.check import problem

    try:
        with opened(ctx) as app:
            yield from doctor.examine(doctor.site_of(app.settings, app.registry, full))
    except BadSettings as error:
        yield problem("settings", error.what, error.remedy)
    except ImportError as error:
        yield problem("libraries", f"{error.name} cannot be imported", "Install again from the same bundle")


def _show(check: Check) -> None:
    click.echo(f"{click.style(f'{check.level:8}', fg=COLOURS[check.level])} {check.name}: {check.says}")
    if check.remedy:
        echo_wrapped(check.remedy, " " * 9 + "-> ", " " * 12)
