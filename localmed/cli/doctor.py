"""``localmed doctor``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo, echo_wrapped, json_option, opened, print_json, progress, width_of
from localmed.cli.speaking import as_json, text, words
from localmed.errors import BadSettings, ModelError

if TYPE_CHECKING:
    from localmed.operations.check import Check

LEVEL = 8  # columns
COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--full", is_flag=True, help="Read every byte of the models and generations (takes minutes).")
@click.option(
    "--egress",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Prove by system calls that nothing leaves this machine; write the report to FILE (HTML).",
)
@json_option
@click.pass_context
def command(ctx: click.Context, full: bool, egress: Path | None, as_json: bool) -> None:
    """Check the machine, the software, the models and the library; each line ok, warning or problem with what to do.

    Exit code 0 if there is no problem (warnings may be), 5 if there is one. Nothing is changed, but --full notes that
    everything was read. With --egress nothing is checked but that: an import, a question and the pages run under strace
    in an empty network, with a library of their own; it takes minutes.
    """
    if egress:
        from localmed.cli import proving

        proving.run(egress, as_json)
        return
    from localmed.operations import doctor

    with progress(full and not as_json) as (started, advance):
        checks = list(_checks(ctx, full, started, advance))
    for check in [] if as_json else checks:
        _show(check)
    worst = doctor.worst(checks)
    if as_json:
        print_json({"worst": worst, "checks": list(map(_json, checks))})
    if worst == "problem":
        sys.exit(doctor.PROBLEMS_EXIT_CODE)


def _checks(
    ctx: click.Context, full: bool, started: Callable[[int], None], advance: Callable[[float, str], None]
) -> Iterator[Check]:
    """The checks as they are made; settings or libraries that cannot be loaded are a problem themselves."""
    from localmed.operations import doctor, stored
    from localmed.operations.check import failed, problem

    try:
        with opened(ctx) as session:
            registry, settings = session.site.registry, session.settings
            with suppress(ModelError):  # a record that cannot be read is told by a check
                started(sum(model.bytes for model in registry.registrations.models.values()))
            site = doctor.site_of(settings, registry, full, advance, session.site.host_status)
            checks = list(doctor.examine(site, doctor.checks_for(settings)))
            if full and session.caller.groups is None:
                stored.note_whole_check(settings.data, doctor.faults_stored(checks))
            yield from checks
    except BadSettings as error:
        yield failed("settings", error)
    except ImportError as error:
        yield problem("libraries", "doctor.library_unimportable", name=error.name or type(error).__name__)


def _show(check: Check) -> None:
    level = text(f"doctor.level_{check.level}")
    says, *remedy = map(words, check.messages)
    echo(level + " " * (LEVEL + 1 - width_of(level)), colour=COLOURS[check.level], nl=False)
    echo(text("doctor.line", name=check.title, says=says))
    for part in remedy:
        echo_wrapped(part, " " * (LEVEL + 1) + "-> ", " " * (LEVEL + 4))


def _json(check: Check) -> dict[str, Any]:
    says, *remedy = check.messages
    return {"name": check.name, "level": check.level, **as_json(says), "remedy": "".join(map(words, remedy))}
