"""``localmed documents set, govern, sheet, due``: owner, approver, effective-from and review-by of documents."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from localmed.cli.common import json_option, opened, print_json, print_table
from localmed.cli.speaking import columns, say, status_message, status_word, tell_generation, text
from localmed.domain import message
from localmed.errors import InputError, UsageError, reason
from localmed.files import csv_text

FAULTS_SHOWN = 50  # rows of a sheet; a sheet of the wrong collection is wrong in every row


@click.command("set")
@click.argument("document")
@click.option("--edition", metavar="DATE", help="The date of the edition: 2024, 2024-05 or 2024-05-31.")
@click.option("--owner", metavar="NAME", help="Who keeps it up to date.")
@click.option("--approver", metavar="NAME", help="Who approved it.")
@click.option("--effective-from", metavar="DATE", help="It answers from this day on, and not before.")
@click.option("--review-by", metavar="DATE", help="After this day it answers with a note that its review is overdue.")
@click.pass_context
def set_fields(ctx: click.Context, /, document: str, **options: str | None) -> None:
    """Set what is known of DOCUMENT; an empty value ("") takes back what was set.

    It outlives later imports of the file. What the collection's manifest states can only be changed there.
    """
    from localmed.operations import changes, lookups
    from localmed.operations.governing import Change

    values = {name: value.strip() for name, value in options.items() if value is not None}
    if not values:
        raise UsageError("documents.nothing_to_set")
    with opened(ctx) as session:
        before = lookups.document(session, document)
        changes.govern(session, [Change((before,), values)])
        after = lookups.document(session, before.id)
    fields = tuple(message(f"documents.field_{name}") for name in values)
    say("documents.fields_set", title=after.title, fields=fields, status=status_message(after.status))


@click.command("govern")
@click.argument("sheet", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--collection", "-c", required=True, metavar="NAME", help="The collection that the sheet is about.")
@json_option
@click.pass_context
def govern(ctx: click.Context, sheet: Path, collection: str, as_json: bool) -> None:
    """Set edition, owner, approver, effective-from and review-by from SHEET (CSV or XLSX), one row a file.

    The first row names the columns, in English or Chinese: file, edition, owner, approver, effective from, review by.
    An empty cell changes nothing, "-" takes back what was set. If a row is wrong, nothing is changed and the row is
    named. To begin with a filled-in sheet: localmed documents sheet FILE -c NAME
    """
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        planned = lookups.planned_sheet(session, sheet, collection)
        if planned.faults:
            for fault in planned.faults[:FAULTS_SHOWN]:
                say("documents.row", row=fault.row, fault=fault.reason, err=True)
            raise InputError("documents.sheet_faults", count=len(planned.faults), file=sheet.name)
        number = changes.govern(session, planned.changes) if planned.changes else 0
    if planned.unused:
        say("documents.columns_unused", columns=tuple(planned.unused), err=True)
    if as_json:
        print_json({"rows": planned.rows, "changed": len(planned.changes), "generation": number})
        return
    say("documents.rows_changed", count=planned.rows, changed=len(planned.changes))
    tell_generation(number)


@click.command("sheet")
@click.argument("sheet", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--collection", "-c", required=True, metavar="NAME", help="The collection that the sheet is about.")
@click.pass_context
def write_sheet(ctx: click.Context, sheet: Path, collection: str) -> None:
    """Write what is known of the files of a collection to the new CSV file SHEET, to be filled in for `govern`."""
    from localmed.operations import lookups

    with opened(ctx) as session:
        rows = lookups.sheet_rows(session, collection)
    try:
        with sheet.open("x", encoding="utf-8-sig", newline="") as file:  # the mark tells Excel that it is UTF-8
            file.write(csv_text(rows, "\r\n"))
    except FileExistsError:
        raise UsageError("file.exists", file=str(sheet)) from None
    except OSError as error:
        raise UsageError("file.unwritable", reason=reason(error), file=str(sheet)) from None
    say("documents.sheet", count=len(rows) - 1, sheet=str(sheet))


@click.command("due")
@click.option("--within", type=click.IntRange(0, 36_500), default=0, metavar="DAYS", show_default=True,
              help="Also those to be reviewed within so many days.")  # fmt: skip
@click.option("--collection", "-c", default="", metavar="NAME", help="Only this collection.")
@json_option
@click.pass_context
def due(ctx: click.Context, within: int, collection: str, as_json: bool) -> None:
    """Documents whose review is overdue, the longest first; then those whose text is not the one that was approved."""
    from localmed.operations import lookups

    with opened(ctx) as session:
        due_documents, lapsed = lookups.to_review(session, collection, within)
    if as_json:
        print_json([{**asdict(row), "approval_lapsed": row.id in lapsed} for row in due_documents])
        return
    rows = [
        (d.id[:12], d.collection, d.title, d.governance.owner or "-", d.governance.review_by or "-",
         text("documents.lapsed", status=status_message(d.status)) if d.id in lapsed else status_word(d.status))
        for d in due_documents
    ]  # fmt: skip
    names = columns("id", "collection", "title", "owner", "review_by", "status")
    print_table(text("documents.to_review"), names, rows)


COMMANDS = (set_fields, govern, write_sheet, due)
