"""``localmed import PATH... --collection NAME``, and its ``--dry-run``: printed, as JSON or as a report page."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import __version__
from localmed.cli.common import Decorated, echo, json_option, opened, print_json, settings_of, tell_file, work_shown
from localmed.cli.speaking import joined, say, tell_generation, text, words
from localmed.domain import Message, message
from localmed.domain.errors import InputError, UnknownName, UsageError, reason
from localmed.messages import ASIDE, CLAUSES
from localmed.process import files, interrupts

if TYPE_CHECKING:
    from localmed.domain.previews import FilePreview
    from localmed.ingest.report import Report
    from localmed.presentation.preview import PreviewPage
    from localmed.site.session import Session


ROWS_SHOWN = 60  # lines printed; --json and the report have more
FAULTS_SHOWN = 3  # of a file, in the table


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run, its report page if there is to be one, and that page's language."""

    report: Path | None
    language: str


def dry_run_options(command: Decorated) -> Decorated:
    """The options of a dry run; read by ``dry_run_of``."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and say what would be done."),
        click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
                     help="Of a dry run: write a page to read or print, with what was read beside each page."),
        click.option("--language", type=click.Choice(["en", "zh"]), default="en", help="Of the report (default: en)."),
    ):  # fmt: skip
        command = option(command)
    return command


def dry_run_of(dry_run: bool, report: Path | None, language: str) -> DryRun | None:
    """The options as a value, None where nothing is to be previewed."""
    if report and not dry_run:
        raise click.BadParameter(text("cli.report_needs_dry_run"))
    return DryRun(report, language) if dry_run else None


def tell_dry_run(
    session: Session, paths: list[Path], collection: str, manifest: Path | None, dry_run: DryRun, as_json: bool
) -> None:
    """Read ``paths`` and tell; exit with 3 where every file would be refused."""
    from localmed.site import importing

    if dry_run.report and (dry_run.report.is_dir() or not dry_run.report.absolute().parent.is_dir()):
        raise UsageError("cli.report_place", file=str(dry_run.report))
    exists = True
    try:
        importing.manifest_of(session, collection, manifest)
    except UnknownName:  # a look at the files does no harm, but the import itself would be refused
        exists = False
    with work_shown(not as_json) as hooks, ExitStack() as stack:
        page = stack.enter_context(_page(session, collection, manifest, dry_run)) if dry_run.report else None
        rows = []
        for file in importing.preview(session, paths, collection, manifest, hooks):
            if page:
                page.add(file)
            rows.append(_plain(file))
        if page and dry_run.report:
            _write(dry_run.report, page)
    if as_json:
        print_json({"collection": collection, "exists": exists, "files": rows})
    else:
        _tell(collection, rows, dry_run.report)
        if not exists:
            say("preview.unknown", name=collection, err=True)
    read = [row for row in rows if row["outcome"] not in ("skipped", "removed")]
    if read and all(row["outcome"] == "refused" for row in read):
        sys.exit(InputError.exit_code)


def _page(session: Session, collection: str, manifest: Path | None, dry_run: DryRun) -> PreviewPage:
    from localmed.presentation.preview import PreviewPage
    from localmed.site import importing

    title, day = importing.previewed_title(session, collection, manifest), date.today().isoformat()
    return PreviewPage(title, dry_run.language, importing.thumbnails, day, __version__)


def _write(report: Path, page: PreviewPage) -> None:
    try:
        files.replace(report, "".join(page.chunks()).encode(errors="replace"), mode=0o666)  # less the umask
    except OSError as error:
        raise UsageError("file.unwritable", file=str(report), reason=reason(error)) from None


def _plain(file: FilePreview) -> dict[str, Any]:
    """A file as JSON has it: no text, but what each document would be and why anything is left out."""
    documents = [
        {"id": document.id, "title": document.title, "outcome": outcome, "pages": document.pages,
         "passages": len(passages), "ocr": sum(passage.ocr is not None for passage in passages)}
        for (document, passages), outcome in file.documents
    ]  # fmt: skip
    faults = [{"where": fault.where, "reason": fault.reason} for fault in file.faults]
    return {"path": file.path, "outcome": file.outcome, "reason": file.reason, "documents": documents,
            "faults": faults, "notes": list(file.notes), "going": file.going}  # fmt: skip


def _tell(collection: str, rows: list[dict[str, Any]], report: Path | None) -> None:
    """Print what would become of every file, refusals first, and the sums."""
    ordered = sorted(rows, key=lambda row: (row["outcome"] == "same", row["outcome"] != "refused"))
    echo(text("preview.title", name=collection), bold=True)
    for row in ordered[:ROWS_SHOWN]:
        passages = sum(document["passages"] for document in row["documents"])
        tell_file(f"file.outcome_{row['outcome']}", row["path"], passages, _why(row))
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


def _why(row: dict[str, Any]) -> str:
    """Why a file is refused, what of it is left out, and what of it needs or had OCR."""
    faults = [text("cli.place", place=fault["where"], reason=fault["reason"]) for fault in row["faults"]]
    more = [text("preview.more_parts", count=len(faults) - FAULTS_SHOWN)] if len(faults) > FAULTS_SHOWN else []
    ocr = sum(document["ocr"] for document in row["documents"])
    read = [text("preview.ocr", count=ocr)] if ocr else []
    going = [text("preview.going", count=row["going"])] if row["going"] else []
    reason = [words(row["reason"])] if row["reason"] else []
    return joined([*reason, *faults[:FAULTS_SHOWN], *more, *read, *going], CLAUSES)


SHOWN = 30  # lines of the report printed; --json has them all


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--collection", "-c", required=True, metavar="NAME", help="Collection to import into.")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Description of the collection (TOML; see corpora/starter-guidelines.toml). Kept for later imports.",
)
@click.option("--retry", is_flag=True, help="Also read quarantined files again.")
@click.option(
    "--near-copies",
    is_flag=True,
    help="Import near-copies of withdrawn documents (somebody has compared them).",
)
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True,
              help="Where to parse and encode: this process, or Ray workers (extra \"ray\").")  # fmt: skip
@click.option("--ray-address", default="", metavar="HOST:PORT",
              help="With --engine ray: a running cluster that is listed in ingest.clusters.")  # fmt: skip
@click.option("--ray-workers", type=click.IntRange(1, 1024), metavar="N",
              help="With --engine ray on this machine: number of workers (default: one a core).")  # fmt: skip
@dry_run_options
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

    Later imports of a folder follow it: changed files replace their passages, removed files disappear. Unreadable files
    go to quarantine with the reason, as do near-copies of withdrawn documents until somebody has compared them
    (--near-copies). The other files are imported. Ctrl-C changes nothing, and the next run continues.

    With --dry-run files are read but not stored, and the action for each file is printed. --report writes a page that
    shows the text read next to the printed pages.

    With --engine ray several processes or machines parse and encode; the resulting library is the same. If a worker is
    lost, another one repeats its work.

    The first import into a collection needs --manifest, or: localmed collections create NAME.
    """
    from localmed.site import importing

    dry_run = dry_run_of(**preview)
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
            tell_dry_run(session, list(paths), collection, manifest, dry_run, as_json)
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
        tell_file(f"file.outcome_{line.outcome}", line.path, line.passages, line.detail or "")
    if len(lines) > SHOWN:
        say("cli.more", count=len(lines) - SHOWN)
    counts = report.counts
    say("import.read", documents=counts["documents"], passages=counts["passages"], files=counts["read"])
    others = {name: counts[name] for name in ("unchanged", "quarantined", "skipped", "removed")}
    echo(words(Message("import.others", tuple(others.items()))))
    tell_generation(report.generation)
