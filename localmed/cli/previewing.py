"""``localmed import --dry-run``: what an import would do, printed, as JSON or as a report page."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import __version__, files
from localmed.cli.common import Decorated, echo, print_json, tell_file, work_shown
from localmed.cli.speaking import joined, say, text, words
from localmed.domain import message
from localmed.errors import InputError, UnknownName, UsageError, reason
from localmed.messages import ASIDE, CLAUSES

if TYPE_CHECKING:
    from localmed.domain.previews import FilePreview
    from localmed.presentation.preview import PreviewPage
    from localmed.session import Session

SHOWN = 60  # lines printed; --json and the report have more
FAULTS_SHOWN = 3  # of a file, in the table


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run, its report page if there is to be one, and that page's language."""

    report: Path | None
    language: str


def options(command: Decorated) -> Decorated:
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


def run(
    session: Session, paths: list[Path], collection: str, manifest: Path | None, dry_run: DryRun, as_json: bool
) -> None:
    """Read ``paths`` and tell; exit with 3 where every file would be refused."""
    from localmed.operations import importing

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
    from localmed.operations import importing
    from localmed.presentation.preview import PreviewPage

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
    for row in ordered[:SHOWN]:
        passages = sum(document["passages"] for document in row["documents"])
        tell_file(f"preview.outcome_{row['outcome']}", row["path"], passages, _why(row))
    if len(rows) > SHOWN:
        say("cli.more", count=len(rows) - SHOWN)
    counts = Counter(row["outcome"] for row in rows)
    sums = tuple(
        message("preview.count", outcome=message(f"preview.outcome_{outcome}"), count=counts[outcome])
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
