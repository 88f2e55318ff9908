"""``localmed import PATH... --collection NAME``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import interrupts
from localmed.cli import previewing
from localmed.cli.common import echo, json_option, opened, print_json, settings_of, tell_file, work_shown
from localmed.cli.speaking import say, tell_generation, text, words
from localmed.domain import Message
from localmed.errors import InputError, UsageError

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
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True,
              help="What parses and encodes: this process, or workers by Ray (extra \"ray\").")  # fmt: skip
@click.option("--ray-address", default="", metavar="HOST:PORT",
              help="With --engine ray: a cluster that runs already and is listed in ingest.clusters.")  # fmt: skip
@click.option("--ray-workers", type=click.IntRange(1, 1024), metavar="N",
              help="With --engine ray on this machine: so many workers (default: one a core).")  # fmt: skip
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
    engine: str,
    ray_address: str,
    ray_workers: int | None,
    as_json: bool,
    **preview: Any,
) -> None:
    """Import files and folders into a collection.

    A folder is kept in step: changed files replace their passages, removed ones disappear. Files that cannot be read
    go to quarantine with the reason, and so does what is nearly the text of a withdrawn document, until somebody has
    compared the two (--near-copies); the others are imported. Ctrl-C changes nothing, and the next run goes on.

    With --dry-run everything is read and nothing stored: what would become of each file is printed, and --report
    writes it as a page with what was read beside the pages as they are printed.

    With --engine ray files are parsed and passages encoded by several processes, or machines; the library that comes
    of it is the same. A worker that is lost has its work done again by another one.

    The first import into a collection needs --manifest, or: localmed collections create NAME.
    """
    from localmed.operations import importing

    dry_run = previewing.dry_run_of(**preview)
    by_ray = engine == "ray"
    if (ray_address or ray_workers) and not by_ray:
        raise UsageError("import.ray_only")
    if ray_address and ray_workers:
        raise UsageError("import.ray_count")
    if by_ray and dry_run:
        raise UsageError("import.ray_dry_run")
    started = importing.workers(settings_of(ctx), ray_address, ray_workers or 0) if by_ray else nullcontext()
    with ended_as_by_ctrl_c(), started as workers, opened(ctx) as session:
        if dry_run:
            previewing.run(session, list(paths), collection, manifest, dry_run, as_json)
            return
        described = importing.manifest_of(session, collection, manifest)
        with work_shown(not as_json) as hooks:
            report = importing.import_paths(
                session, paths, described, manifest, retry, near_copies=near_copies, hooks=hooks, engine=workers
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
    before = signal.signal(signal.SIGTERM, interrupts.interrupt)
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
