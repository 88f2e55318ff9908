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
from localmed.cli.common import Decorated, echo, print_json, tell_file
from localmed.cli.following import work_shown
from localmed.cli.speaking import say, text, words
from localmed.domain import message
from localmed.errors import InputError, UnknownName, UsageError, reason

if TYPE_CHECKING:
    from localmed.ingest.preview import Looked
    from localmed.presentation.preview import PreviewPage
    from localmed.session import Session

SHOWN = 60  # lines printed; --json and the report have more
FAULTS_SHOWN = 3  # of a file, in the table


@dataclass(frozen=True, slots=True)
class Wanted:
    """A dry run, its report page if there is to be one, and that page's language."""

    report: Path | None
    language: str


def options(command: Decorated) -> Decorated:
    """The options of a dry run; read by ``wanted``."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Read everything, store nothing, and say what would be done."),
        click.option("--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
                     help="Of a dry run: write a page to read or print, with what was read beside each page."),
        click.option("--language", type=click.Choice(["en", "zh"]), default="en", help="Of the report (default: en)."),
    ):  # fmt: skip
        command = option(command)
    return command


def wanted(dry_run: bool, report: Path | None, language: str) -> Wanted | None:
    """The options as a value, None where nothing is to be previewed."""
    if report and not dry_run:
        raise click.BadParameter(text("cli.report_needs_dry_run"))
    return Wanted(report, language) if dry_run else None


def run(
    session: Session, paths: list[Path], collection: str, manifest: Path | None, chosen: Wanted, as_json: bool
) -> None:
    """Read ``paths`` and tell; exit with 3 where every file would be refused."""
    from localmed.operations import importing

    if chosen.report and (chosen.report.is_dir() or not chosen.report.absolute().parent.is_dir()):
        raise UsageError("cli.report_place", file=str(chosen.report))
    exists = True
    try:
        importing.manifest_of(session, collection, manifest)
    except UnknownName:  # a look at the files does no harm, but the import itself would be refused
        exists = False
    with work_shown(not as_json) as hooks, ExitStack() as stack:
        page = stack.enter_context(_page(session, collection, manifest, chosen)) if chosen.report else None
        told = []
        for looked in importing.preview(session, paths, collection, manifest, hooks):
            if page:
                page.add(looked)
            told.append(_plain(looked))
        if page and chosen.report:
            _write(chosen.report, page)
    if as_json:
        print_json({"collection": collection, "exists": exists, "files": told})
    else:
        _tell(collection, told, chosen.report)
        if not exists:
            say("preview.unknown", name=collection, err=True)
    read = [each for each in told if each["outcome"] not in ("skipped", "removed")]
    if read and all(each["outcome"] == "refused" for each in read):
        sys.exit(InputError.exit_code)


def _page(session: Session, collection: str, manifest: Path | None, chosen: Wanted) -> PreviewPage:
    from localmed.operations import importing
    from localmed.presentation.preview import PreviewPage

    title, day = importing.previewed_title(session, collection, manifest), date.today().isoformat()
    return PreviewPage(title, chosen.language, importing.thumbnails, day, __version__)


def _write(report: Path, page: PreviewPage) -> None:
    try:
        files.replace(report, "".join(page.chunks()).encode(errors="replace"), mode=0o666)  # less the umask
    except OSError as error:
        raise UsageError("file.unwritable", file=str(report), reason=reason(error)) from None


def _plain(looked: Looked) -> dict[str, Any]:
    """A file as JSON has it: no text, but what each document would be and why anything is left out."""
    documents = [
        {"id": document.id, "title": document.title, "outcome": outcome, "pages": document.pages,
         "passages": len(passages), "ocr": sum(passage.ocr is not None for passage in passages)}
        for (document, passages), outcome in looked.documents
    ]  # fmt: skip
    faults = [{"where": fault.where, "reason": fault.reason} for fault in looked.faults]
    return {"path": looked.path, "outcome": looked.outcome, "reason": looked.reason, "documents": documents,
            "faults": faults, "notes": list(looked.notes), "going": looked.going}  # fmt: skip


def _tell(collection: str, told: list[dict[str, Any]], report: Path | None) -> None:
    """Print what would become of every file, refusals first, and the sums."""
    ordered = sorted(told, key=lambda each: (each["outcome"] == "same", each["outcome"] != "refused"))
    echo(text("preview.title", name=collection), bold=True)
    for each in ordered[:SHOWN]:
        passages = sum(one["passages"] for one in each["documents"])
        tell_file(f"preview.outcome_{each['outcome']}", each["path"], passages, _why(each))
    if len(told) > SHOWN:
        say("cli.more", count=len(told) - SHOWN)
    counts = Counter(each["outcome"] for each in told)
    sums = tuple(
        message("preview.count", outcome=message(f"preview.outcome_{outcome}"), count=counts[outcome])
        for outcome in sorted(counts)
    )
    echo(", ".join(map(words, sums)) or text("preview.no_files"))
    if report:
        say("cli.written", file=str(report))


def _why(told: dict[str, Any]) -> str:
    """Why a file is refused, what of it is left out, and what of it needs or had OCR."""
    faults = [text("cli.place", place=each["where"], reason=each["reason"]) for each in told["faults"]]
    more = [text("preview.more_parts", count=len(faults) - FAULTS_SHOWN)] if len(faults) > FAULTS_SHOWN else []
    ocr = sum(each["ocr"] for each in told["documents"])
    read = [text("preview.ocr", count=ocr)] if ocr else []
    going = [text("preview.going", count=told["going"])] if told["going"] else []
    reason = [words(told["reason"])] if told["reason"] else []
    return "; ".join([*reason, *faults[:FAULTS_SHOWN], *more, *read, *going])
