"""``localmed doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo, echo_wrapped, open_session, plain, print_json, progress, show_progress, width_of
from localmed.cli.later import check, doctor, egress
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import as_json, columns, language, say, text, words
from localmed.domain.errors import BadSettings, LibraryError, ModelError
from localmed.process import files

if TYPE_CHECKING:
    from localmed.upkeep.doctor import Check
    from localmed.upkeep.egress import Proof

# --- doctor --egress FILE: the proof that nothing leaves the machine --------------------------------------------------


def prove(file: Path, as_json: bool) -> None:
    """Run the proof; write the page to ``file`` and JSON beside it; exit with 5 unless the proof holds."""
    values_file = file.with_suffix(".json")
    for path in (file, values_file):
        files.new_name(path)
    with show_progress(not as_json) as hooks:
        proof = egress.prove(hooks)
    values = plain(proof) | {"holds": proof.holds, "beyond": proof.beyond}
    files.write_new(file, page(proof).encode(), 0o644)
    files.write_new(values_file, json.dumps(values, ensure_ascii=False, indent=1).encode(), 0o644)
    if as_json:
        print_json(values)
    else:
        for step in proof.steps:
            name, calls = text(f"egress.name_{step.name}"), sum(count for _, count in step.calls)
            say("egress.step", step=name, calls=calls, beyond=step.beyond, code=step.exit_code)
        echo(_outcome(proof), bold=True)
        say("egress.written", file=str(file))
    if not proof.holds:
        sys.exit(LibraryError.exit_code)


def _outcome(proof: Proof) -> str:
    if proof.holds:
        return text("egress.holds")
    return text("egress.broken", count=proof.beyond) if proof.beyond else text("egress.not_run")


def page(proof: Proof) -> str:
    """The report for the security office."""
    from localmed.presentation.report import Table, report

    names = columns("step", "exit", "seconds", "processes", "calls", "beyond")
    steps = [
        (text(f"egress.name_{step.name}"), step.exit_code, step.seconds, step.processes,
         sum(count for _, count in step.calls), step.beyond)
        for step in proof.steps
    ]  # fmt: skip
    headings = columns("call", "family", "address", "port", "times", "beyond")
    tables = [Table(text("egress.steps"), names, steps)]
    for step in proof.steps:
        rows = [
            (call.name, call.family or "-", call.address or "-", call.port or "-", count,
             text("egress.yes") if call.beyond else text("cli.no"))
            for call, count in step.calls
        ]  # fmt: skip
        tables.append(Table(text("egress.calls_of", step=text(f"egress.name_{step.name}")), headings, rows))
    paragraphs = [
        *(text("egress.how"), text("egress.limits")),
        text("egress.made", created=proof.created, version=proof.version, kernel=proof.kernel, strace=proof.strace),
    ]
    return report(language(), text("egress.title"), _outcome(proof), paragraphs, tables)


# --- doctor -----------------------------------------------------------------------------------------------------------

LEVEL = 8  # columns
COLOURS = {"ok": "green", "notice": "cyan", "warning": "yellow", "problem": "red"}


@click.command("doctor")
@click.option("--full", is_flag=True, help="Read every byte of the models and generations (takes minutes).")
@click.option("--egress", "egress_page", type=FILE, metavar="FILE",
              help="Prove that nothing leaves this machine; write the report to FILE (HTML).")  # fmt: skip
@json_option
@click.pass_context
def command(ctx: click.Context, full: bool, egress_page: Path | None, as_json: bool) -> None:
    """Check machine, software, models and library: ok, notice, warning or problem, with what to do.

    Exit code 0 without problems (warnings are allowed), 5 with one. Nothing is changed; --full records the date of the
    full check. --egress only proves that nothing leaves: an import, a question and the pages run under strace in an
    empty network, with a library of their own (takes minutes).
    """
    if egress_page:
        prove(egress_page, as_json)
        return
    with progress(full and not as_json) as (started, advance):
        checks = list(_checks(ctx, full, started, advance))
    worst = doctor.worst(checks)
    if as_json:
        print_json({"worst": worst, "checks": list(map(_json, checks))})
    for one in [] if as_json else checks:
        _show(one)
    if worst == "problem":
        sys.exit(doctor.PROBLEMS_EXIT_CODE)


def _checks(
    ctx: click.Context, full: bool, started: Callable[[int], None], advance: Callable[[float, str], None]
) -> Iterator[Check]:
    """The checks; settings or libraries that cannot be loaded are reported as problems."""
    try:
        with open_session(ctx) as session:
            registry, settings = session.site.registry, session.settings
            with suppress(ModelError):  # a check reports an unreadable record
                started(sum(model.bytes for model in registry.registrations.models.values()))
            checks = list(doctor.examine(doctor.Site.of(session.site, full, advance), doctor.checks_for(settings)))
            if full and session.caller.groups is None:
                check.note_whole_check(settings.data, doctor.faults_stored(checks))
            yield from checks
    except BadSettings as error:
        yield doctor.failed_check("settings", error)
    except ImportError as error:
        yield doctor.problem("libraries", "doctor.library_unimportable", name=error.name or type(error).__name__)


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
