"""``localmed import PATH... --collection NAME``, and its ``--dry-run``: printed, as JSON or as a report page."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import __version__
from localmed.cli.common import echo, open_session, print_json, settings_of, show_progress, tell_file
from localmed.cli.later import importing
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import joined, say, tell_generation, text, words
from localmed.domain import Message, message
from localmed.domain.errors import InputError, UnknownName, UsageError, reason
from localmed.messages import ASIDE, CLAUSES
from localmed.process import files, interrupts

if TYPE_CHECKING:
    from localmed.domain.previews import FilePreview
    from localmed.ingest.sources import Report
    from localmed.site.session import Session

ROWS_SHOWN = 60  # lines of a dry run printed; --json and the report have more
FAULTS_SHOWN = 3  # of a file, in the table
SHOWN = 30  # lines of the report of an import printed; --json has them all


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--collection", "-c", required=True, metavar="NAME", help="Collection to import into.")
@click.option("--manifest", type=FILE, metavar="FILE",
              help="Description of the collection (TOML; see corpora/starter-guidelines.toml). Kept for later imports.",
              )  # fmt: skip
@click.option("--retry", is_flag=True, help="Also read quarantined files again.")
@click.option("--near-copies", is_flag=True,
              help="Import near-copies of withdrawn documents (somebody has compared them).")  # fmt: skip
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True,
              help="Where to parse and encode: this process, or Ray workers (extra \"ray\").")  # fmt: skip
@click.option("--ray-address", default="", metavar="HOST:PORT",
              help="With --engine ray: a running cluster that is listed in ingest.clusters.")  # fmt: skip
@click.option("--ray-workers", type=click.IntRange(1, 1024), metavar="N",
              help="With --engine ray on this machine: number of workers (default: one a core).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and say what would be done.")
@click.option("--report", type=FILE, metavar="FILE.html",
              help="Of a dry run: write a page to read or print, with what was read beside each page.")  # fmt: skip
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", help="Of the report (default: en).")
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, paths: tuple[Path, ...], collection: str, manifest: Path | None, retry: bool,
    near_copies: bool, engine: str, ray_address: str, ray_workers: int | None, dry_run: bool, report: Path | None,
    language: str, as_json: bool,
) -> None:  # fmt: skip
    """Import files and folders into a collection.

    Later imports of a folder follow it: changed files replace their passages, removed files disappear. Unreadable files
    go to quarantine with the reason, as do near-copies of withdrawn documents until somebody has compared them
    (--near-copies). The other files are imported. Ctrl-C changes nothing, and the next run continues.

    With --dry-run files are read but not stored, and the action for each file is printed. --report writes a page that
    shows the text read next to the printed pages.

    With --engine ray several processes or machines parse and encode; the resulting library is the same. If a worker is
    lost, another one repeats its work.

    The first import into a collection needs --manifest, or: localmed collections create NAME.
    """
    by_ray = engine == "ray"
    if report and not dry_run:
        raise UsageError("cli.report_needs_dry_run")
    if (ray_address or ray_workers) and not by_ray:
        raise UsageError("import.ray_only")
    if ray_address and ray_workers:
        raise UsageError("import.ray_count")
    if by_ray and dry_run:
        raise UsageError("import.ray_dry_run")
    started = importing.workers(settings_of(ctx), ray_address, ray_workers or 0) if by_ray else nullcontext()
    with sigterm_as_interrupt(), started as workers, open_session(ctx) as session:
        if dry_run:
            code = _dry_run(session, list(paths), collection, manifest, report, language, as_json)
        else:
            described = importing.manifest_of(session, collection, manifest)
            with show_progress(not as_json) as hooks:
                done = importing.import_paths(
                    session, paths, described, manifest, retry, near_copies=near_copies, hooks=hooks, engine=workers
                )
            code = print_report(done, as_json)
    ctx.exit(code)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM, sent by a service or a shutdown, as Ctrl-C: copies of documents are removed."""
    before = signal.signal(signal.SIGTERM, interrupts.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON data."""
    return {"collection": report.collection, "generation": report.generation, "counts": report.counts,
            "files": report.lines}  # fmt: skip


def all_refused(report: Report) -> int:
    """The exit code: 3 if files were refused and none was read or unchanged, else 0."""
    taken = report.counts["read"] + report.counts["unchanged"]
    return InputError.exit_code if report.counts["quarantined"] and not taken else 0


def print_report(report: Report, as_json: bool) -> int:
    """Print the report as text or JSON; return the exit code."""
    print_json(report_json(report)) if as_json else print_report_text(report)
    return all_refused(report)


def print_report_text(report: Report) -> None:
    """Print the outcome of every file, refusals first, and the totals."""
    lines = [line for line in report.lines if line.outcome != "unchanged"]
    lines.sort(key=lambda line: (line.outcome == "read", line.outcome))
    echo(text("import.title", name=report.collection), bold=True)
    for line in lines[:SHOWN]:
        tell_file(f"file.outcome_{line.outcome}", line.path, line.passages, line.detail or "")
    if len(lines) > SHOWN:
        say("cli.more", count=len(lines) - SHOWN)
    counts = report.counts
    say("import.read", documents=counts["documents"], passages=counts["passages"], files=counts["read"])
    others = {name: counts[name] for name in ("unchanged", "quarantined", "skipped", "removed")}
    echo(words(Message("import.others", tuple(others.items()))))
    tell_generation(report.generation)


# --- the dry run ------------------------------------------------------------------------------------------------------


def _dry_run(
    session: Session, paths: list[Path], collection: str, manifest: Path | None, report: Path | None, language: str,
    as_json: bool,
) -> int:  # fmt: skip
    """Preview ``paths``; return 3 where every file would be refused."""
    from localmed.presentation.preview import PreviewPage

    if report and (report.is_dir() or not report.absolute().parent.is_dir()):
        raise UsageError("cli.report_place", file=str(report))
    exists = True
    try:
        importing.manifest_of(session, collection, manifest)
    except UnknownName:  # a look at the files does no harm, but the import itself would be refused
        exists = False
    title, day = importing.previewed_title(session, collection, manifest), date.today().isoformat()
    rows = []
    with (
        show_progress(not as_json) as hooks,
        PreviewPage(title, language, importing.thumbnails, day, __version__) as page,
    ):
        for file in importing.preview(session, paths, collection, manifest, hooks):
            if report:
                page.add(file)
            rows.append(_preview_json(file))
        if report:
            try:
                files.replace(report, "".join(page.chunks()).encode(errors="replace"), mode=0o666)  # less the umask
            except OSError as error:
                raise UsageError("file.unwritable", file=str(report), reason=reason(error)) from None
    if as_json:
        print_json({"collection": collection, "exists": exists, "files": rows})
    else:
        _print_preview(collection, rows, report)
        if not exists:
            say("preview.unknown", name=collection, err=True)
    read = [row["outcome"] for row in rows if row["outcome"] not in ("skipped", "removed")]
    return InputError.exit_code if read and set(read) == {"refused"} else 0


def _preview_json(file: FilePreview) -> dict[str, Any]:
    """A file as JSON data: each document's outcome and the reasons for omissions, without text."""
    documents = [
        {"id": document.id, "title": document.title, "outcome": outcome, "pages": document.pages,
         "passages": len(passages), "ocr": sum(passage.ocr is not None for passage in passages)}
        for (document, passages), outcome in file.documents
    ]  # fmt: skip
    faults = [{"where": fault.where, "reason": fault.reason} for fault in file.faults]
    return {"path": file.path, "outcome": file.outcome, "reason": file.reason, "documents": documents,
            "faults": faults, "notes": list(file.notes), "going": file.going}  # fmt: skip


def _print_preview(collection: str, rows: list[dict[str, Any]], report: Path | None) -> None:
    ordered = sorted(rows, key=lambda row: (row["outcome"] == "same", row["outcome"] != "refused"))
    echo(text("preview.title", name=collection), bold=True)
    for row in ordered[:ROWS_SHOWN]:
        passages = sum(document["passages"] for document in row["documents"])
        tell_file(f"file.outcome_{row['outcome']}", row["path"], passages, _reasons(row))
    if len(rows) > ROWS_SHOWN:
        say("cli.more", count=len(rows) - ROWS_SHOWN)
    counts = Counter(row["outcome"] for row in rows)
    sums = tuple(
        message("preview.count", outcome=message(f"file.outcome_{outcome}"), count=counts[outcome])
        for outcome in sorted(counts)
    )
    echo(joined(map(words, sums), ASIDE) or text("preview.no_files"))
    if report:
        say("cli.written", file=str(report))


def _reasons(row: dict[str, Any]) -> str:
    """Why a file is refused, what is left out, and what needs or had OCR."""
    faults = [text("cli.place", place=fault["where"], reason=fault["reason"]) for fault in row["faults"]]
    more = [text("preview.more_parts", count=len(faults) - FAULTS_SHOWN)] if len(faults) > FAULTS_SHOWN else []
    ocr = sum(document["ocr"] for document in row["documents"])
    read = [text("preview.ocr", count=ocr)] if ocr else []
    going = [text("preview.going", count=row["going"])] if row["going"] else []
    reason = [words(row["reason"])] if row["reason"] else []
    return joined([*reason, *faults[:FAULTS_SHOWN], *more, *read, *going], CLAUSES)
