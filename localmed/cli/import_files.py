"""``localmed import PATH... --collection NAME``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli import previewing
from localmed.cli.common import echo, json_option, opened, print_json, tell_file, work_shown
from localmed.cli.speaking import say, tell_generation, text, words
from localmed.domain import Message
from localmed.errors import InputError

if TYPE_CHECKING:
    from localmed.ingest.report import Report

SHOWN = 30  # lines of the report printed; --json has them all


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--collection", "-c", required=True, metavar="NAME", help="The collection to import into.")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="What the collection is (TOML; see corpora/starter-guidelines.toml). Kept, so later imports need not give it.",
)
@click.option("--retry", is_flag=True, help="Read again what is in quarantine.")
@click.option(
    "--near-copies",
    is_flag=True,
    help="Take what is nearly the text of a withdrawn document too: it was compared and may answer.",
)
@previewing.options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    collection: str,
    manifest: Path | None,
    retry: bool,
    near_copies: bool,
    as_json: bool,
    **preview: Any,
) -> None:
    """Import files and folders into a collection.

    A folder is kept in step: changed files replace their passages, removed ones disappear. Files that cannot be read
    go to quarantine with the reason, and so does what is nearly the text of a withdrawn document, until somebody has
    compared the two (--near-copies); the others are imported. Ctrl-C changes nothing, and the next run goes on.

    With --dry-run everything is read and nothing stored: what would become of each file is printed, and --report
    writes it as a page with what was read beside the pages as they are printed.

    The first import into a collection needs --manifest, or: localmed collections create NAME.
    """
    from localmed.operations import importing

    dry_run = previewing.dry_run_of(**preview)
    with ended_as_by_ctrl_c(), opened(ctx) as session:
        if dry_run:
            previewing.run(session, list(paths), collection, manifest, dry_run, as_json)
            return
        described = importing.manifest_of(session, collection, manifest)
        with work_shown(not as_json) as hooks:
            report = importing.import_paths(
                session, paths, described, manifest, retry, near_copies=near_copies, hooks=hooks
            )
    if as_json:
        print_json(plain(report))
    else:
        tell(report)
    if all_refused(report):
        sys.exit(InputError.exit_code)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM, which a service or a shutdown sends, interrupts as well: copies of documents are not left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def plain(report: Report) -> dict[str, Any]:
    """The report as JSON has it."""
    return {"collection": report.collection, "generation": report.generation, "counts": report.counts,
            "files": report.lines}  # fmt: skip


def all_refused(report: Report) -> bool:
    """Whether files were refused and none was taken."""
    return bool(report.counts["quarantined"]) and not report.counts["read"] + report.counts["unchanged"]


def tell(report: Report) -> None:
    """Print what became of every file, refusals first, and the sums."""
    lines = [line for line in report.lines if line.outcome != "unchanged"]
    lines.sort(key=lambda line: (line.outcome == "read", line.outcome))
    echo(text("import.title", name=report.collection), bold=True)
    for line in lines[:SHOWN]:
        tell_file(f"import.outcome_{line.outcome}", line.path, line.passages, line.detail or "")
    if len(lines) > SHOWN:
        say("cli.more", count=len(lines) - SHOWN)
    counts = report.counts
    say("import.read", documents=counts["documents"], passages=counts["passages"], files=counts["read"])
    others = {name: counts[name] for name in ("unchanged", "quarantined", "skipped", "removed")}
    echo(words(Message("import.others", tuple(others.items()))))
    tell_generation(report.generation)
