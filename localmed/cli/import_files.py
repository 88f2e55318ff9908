"""``localmed import PATH... --collection NAME``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from localmed.cli.common import json_option, opened, print_json, print_table, progress

SHOWN = 30  # lines of the report printed; --json has them all


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--collection", "-c", required=True, help="The collection to import into.")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Corpus manifest (TOML); kept for later imports.",
)
@click.option("--retry", is_flag=True, help="Read again what is in quarantine.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, paths: tuple[Path, ...], collection: str, manifest: Path | None, retry: bool, as_json: bool
) -> None:
    """Import files and folders into a collection.

    A folder is kept in step: changed files replace their passages, removed ones disappear. Files that cannot be read
    go to quarantine with the reason; the others are imported. Ctrl-C changes nothing, and the next run goes on.
    """
    with opened(ctx) as app:
        described = app.manifest(collection, manifest)
        with progress(not as_json) as (started, advance):
            report = app.import_paths(list(paths), described, manifest, retry, advance, started)
    if as_json:
        print_json({"collection": collection, "generation": report.generation, "counts": report.counts,
                    "files": [asdict(line) for line in report.lines]})  # fmt: skip
        return
    told = [line for line in report.lines if line.outcome != "unchanged"]
    told.sort(key=lambda line: (line.outcome == "read", line.outcome))
    rows = [(Path(line.path).name, line.outcome, line.passages or "", line.detail) for line in told[:SHOWN]]
    if rows:
        print_table(f"Import into {collection}", ("file", "outcome", "passages", "why"), rows)
    if len(told) > SHOWN:
        click.echo(f"... and {len(told) - SHOWN} more; --json lists all")
    counts = report.counts
    click.echo(
        f"{counts['documents']} documents ({counts['passages']} passages) read from {counts['read']} files, "
        f"{counts['unchanged']} unchanged, {counts['quarantined']} quarantined, {counts['skipped']} skipped, "
        f"{counts['removed']} removed"
    )
    click.echo(f"Generation {report.generation:04d} is served" if report.generation else "Nothing changed")
