"""``localmed doctor``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo_wrapped, json_option, opened, print_json, progress
from localmed.errors import BadSettings, ModelError

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

    with progress(full and not as_json) as (started, advance):
        found = list(_checks(ctx, full, started, advance))
    for check in [] if as_json else found:
        _show(check)
    worst = doctor.worst(found)
    if as_json:
        print_json({"worst": worst, "checks": [asdict(each) for each in found]})
    if worst == "problem":
        sys.exit(doctor.PROBLEMS_EXIT_CODE)


def _checks(
    ctx: click.Context, full: bool, started: Callable[[int], None], advance: Callable[[float, str], None]
) -> Iterator[Check]:
    """The checks as they are made; settings or libraries that cannot be loaded are a problem themselves."""
    from localmed.operations import doctor
    from localmed.operations.check import problem

    try:
        with opened(ctx) as session:
            registry, settings = session.site.registry, session.settings
            with suppress(ModelError):  # a record that cannot be read is told by a check
                started(sum(each.bytes for each in registry.registrations.models.values()))
            site = doctor.site_of(settings, registry, full, advance, session.site.host_status)
            yield from doctor.examine(site, doctor.checks_for(settings))
    except BadSettings as error:
        yield problem("settings", error.what, error.remedy)
    except ImportError as error:
        yield problem("libraries", f"{error.name} cannot be imported", "Install again from the same bundle")


def _show(check: Check) -> None:
    click.echo(f"{click.style(f'{check.level:8}', fg=COLOURS[check.level])} {check.name}: {check.says}")
    if check.remedy:
        echo_wrapped(check.remedy, " " * 9 + "-> ", " " * 12)
