"""``localmed documents``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli import speaking
from localmed.cli.common import echo, in_session, moment, plain, print_json, print_rows, print_table, width_of
from localmed.cli.later import changes, lookups
from localmed.cli.options import FILE, json_option, yes_option
from localmed.cli.speaking import columns, confirm, say, status_message, status_word, tell_generation, text, words
from localmed.domain import Document, Message, Status, message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.messages import ASIDE, CLAUSES
from localmed.process.files import csv_text
from localmed.text import language

if TYPE_CHECKING:
    from localmed.library.remarks import Remark
    from localmed.site.governing import Link
    from localmed.site.session import Session


FAULTS_SHOWN = 50  # rows of a sheet; a sheet of the wrong collection is wrong in every row
LABEL = 18  # columns of a field's name
NAMED = 10  # documents named before they are removed
SHOWN = 200  # rows of a list printed; --json has them all
of_collection = click.option("--collection", "-c", default="", metavar="NAME", help="Only this collection.")


@click.group("documents", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, update, remove, supersede or withdraw documents. The first characters of an id are enough."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@of_collection
@click.option("--status", type=click.Choice([status.value for status in Status]), help="Only documents of this status.")
@click.option("--title", default="", metavar="WORDS", help="Only documents with these words in title, file or tags.")
@json_option
@in_session
def listed(
    session: Session, collection: str = "", status: str | None = None, title: str = "", as_json: bool = False
) -> None:
    """List documents with their current status: all, or by collection, status or words."""
    stored = lookups.documents_overdue(session, collection)
    chosen = [row for row, _ in stored if (not status or row.status == status) and lookups.matches_words(row, title)]
    late = {row.id: overdue for row, overdue in stored}
    values = [{**plain(row), "overdue": late[row.id]} for row in chosen] if as_json else []
    rows = (
        (d.id[:12], d.title, d.collection, d.edition or "-", d.language, _status_line(d, late[d.id]), d.passages)
        for d in chosen[:SHOWN]
    )
    names = ("id", "title", "collection", "edition", "language", "status", "passages")
    print_rows(as_json, values, "web.library.documents", names, rows)
    if len(chosen) > SHOWN and not as_json:
        say("cli.more", count=len(chosen) - SHOWN)


def _status_line(document: Document, overdue: str) -> str:
    """The status, the date from which it is effective, and whether its review is overdue."""
    waiting = f" {document.governance.effective_from}" if document.status is Status.PENDING else ""
    standing = f"{status_word(document.status)}{waiting}"
    return text("documents.overdue", status=standing, date=overdue) if overdue else standing


@command.command("show")
@click.argument("document")
@json_option
@in_session
def show(session: Session, document: str, as_json: bool) -> None:
    """Show the details of DOCUMENT and its passages."""
    details = lookups.document_details(session, document)
    record, passages, links, late = details.document, details.passages, details.chain, details.overdue
    if as_json:
        print_json({**plain(record), "chain": links, "overdue": late, "passage_ids": [one.id for one in passages]})
        return
    values = {**asdict(record), "notes": [speaking.words(note) for note in record.notes]}
    values["status"] = status_word(record.status)
    for name, value in (values | values.pop("governance") | {"review_overdue": late and text("cli.yes")}).items():
        if value:
            _fact(text(f"column.{name}"), value)
    for name, linked in (("supersedes", links.older), ("superseded_by", links.newer)):
        for link in linked:
            _fact(text(f"column.{name}"), _link_line(link))
    rows = [(one.id[:12], one.page or "-", " > ".join(one.headings)[:60], len(one.text)) for one in passages]
    print_table(text("documents.passages"), columns("id", "page", "heading", "characters"), rows)


def _fact(label: str, value: object) -> None:
    if isinstance(value, tuple):
        value = speaking.joined((" ".join(item) if isinstance(item, tuple) else str(item) for item in value), CLAUSES)
    echo(f"{' ' * (LABEL - width_of(label))}{label}  {value}")


def _link_line(link: Link) -> str:
    status = f"{status_word(link.status)} {link.removed}".rstrip()
    parts = [words(_dated(link)), status] if link.title else [status]
    return f"{link.id[:12]}  {speaking.joined(parts, ASIDE)}"


@command.command("remove")
@click.argument("documents", nargs=-1)
@click.option("--collection", "-c", default="", metavar="NAME", help="With --all: the collection to empty.")
@click.option("--all", "everything", is_flag=True, help="Remove every document of the collection.")
@yes_option
@in_session
def remove(session: Session, documents: tuple[str, ...], collection: str, everything: bool, yes: bool) -> None:
    """Remove DOCUMENTS from every index. The original files stay where they are.

    Importing a file again brings its documents back. To keep one out, withdraw it.
    """
    if bool(documents) == everything or (everything and not collection):
        raise UsageError("documents.none_named")
    if everything:
        chosen = lookups.documents(session, collection)
    else:
        chosen = [lookups.document(session, document) for document in documents]
    if not chosen:
        raise UsageError("documents.none_in", collection=collection)
    for document in [] if yes else chosen[:NAMED]:
        echo(f"  {document.id[:12]}  {document.title}")
    if len(chosen) > NAMED and not yes:
        echo("  ...")
    confirm("documents.remove", yes, count=len(chosen))
    number = changes.remove(session, chosen)
    say("documents.removed", count=len(chosen))
    say("generation.served", number=number)
    if any(Path(document.source).exists() for document in chosen):
        say("documents.files_stay")


@command.command("supersede")
@click.argument("document")
@click.option("--by", default="", metavar="DOCUMENT", help="The document that replaces it.")
@click.option("--undo", is_flag=True, help="Make it current again.")
@click.option("--yes", is_flag=True, help="Do not ask when the titles have no word in common.")
@in_session
def supersede(session: Session, document: str, by: str, undo: bool, yes: bool) -> None:
    """Mark DOCUMENT as superseded: it is found only with --status superseded.

    Without --by, the earlier successor is kept.
    """
    old = lookups.document(session, document)
    successor = lookups.document(session, by) if by else None
    status = Status.CURRENT if undo else Status.SUPERSEDED
    if successor and successor.id != old.id:
        alike = set(language.content_words(old.title)) & set(language.content_words(successor.title))
        confirm("documents.supersede_unlike", yes or bool(alike), old=_dated(old), new=_dated(successor))
    changes.mark(session, old, status, successor.id if successor else "")
    holds = lookups.document(session, old.id).status
    if successor and not undo:
        say("documents.supersede", old=_dated(old), new=_dated(successor))
    if holds is status:
        say("documents.marked", title=old.title, status=status_message(status))
    else:
        say(f"documents.marked_{holds.value}", title=old.title, status=status_message(status))


def _dated(document: Document | Link) -> Message:
    return message("documents.dated", title=document.title, edition=document.edition or message("answer.no_date"))


@command.command("withdraw")
@click.argument("document")
@click.option("--reason", required=True, help="Reason (kept with the withdrawal).")
@in_session
def withdraw(session: Session, document: str, reason: str) -> None:
    """Withdraw DOCUMENT: from the next question on it is never used, not even after a rollback."""
    chosen = lookups.document(session, document)
    changes.withdraw(session, chosen, True, reason)
    say("documents.withdrawn", title=chosen.title)
    for near in lookups.near_copies(session, chosen):
        say("documents.near_copy", title=near.title, document=near.id[:12], collection=near.collection)


@command.command("reinstate")
@click.argument("document")
@click.option("--reason", required=True, help="Reason (kept with the withdrawal).")
@in_session
def reinstate(session: Session, document: str, reason: str) -> None:
    """Undo the withdrawal of DOCUMENT."""
    chosen = lookups.document(session, document)
    changes.withdraw(session, chosen, False, reason)
    say("documents.reinstated", title=chosen.title)


@command.command("remark")
@click.argument("passage")
@click.option("--off/--on", "off", default=None, help="Questions no longer find it, or find it again.")
@click.option("--note", metavar="TEXT", help='Note shown with it; language models no longer read it. "": no note.')
@click.option("--clear/--suspect", "cleared", default=None, help="It is not, or is, addressed to a language model.")
@in_session
def remark(session: Session, passage: str, off: bool | None, note: str | None, cleared: bool | None) -> None:
    """Switch PASSAGE off, add a note, or mark whether it is addressed to a language model.

    `localmed documents show` prints passage ids; the first characters are enough. Takes effect with the next question,
    and stays in force after rollbacks and imports of the same text.
    """
    if off is None and note is None and cleared is None:
        raise UsageError("documents.no_remark")
    chosen = lookups.passage(session, passage)
    made = changes.remark(session, chosen, off=off, note=note, cleared=cleared)
    say(
        "documents.remarked", passage=chosen.id[:12], said=_remark_messages(made) or (message("documents.remark_none"),)
    )


@command.command("remarks")
@click.argument("document", default="")
@json_option
@in_session
def listed_remarks(session: Session, document: str, as_json: bool) -> None:
    """List passages that are addressed to a language model, switched off or have a note: of DOCUMENT or all."""
    chosen = lookups.document(session, document).id if document else ""
    rows = lookups.remarked(session, chosen)
    cells = [
        (
            it.passage.id[:12],
            it.title,
            it.passage.page or "-",
            speaking.joined(map(words, _remark_messages(it.remark)), CLAUSES),
        )
        for it in rows
    ]
    values = [row.remark for row in rows]
    print_rows(as_json, values, "documents.remarks", ("id", "title", "page", "why"), cells)


def _remark_messages(remark: Remark) -> tuple[Message, ...]:
    found = [message(f"documents.planted_{remark.planted.value}")] if remark.planted else []
    found += [message("documents.remark_off")] if remark.off else []
    return (*found, *([message("answer.remark", note=remark.note)] if remark.note else ()))


@command.command("quarantine")
@of_collection
@json_option
@in_session
def quarantine(session: Session, collection: str, as_json: bool) -> None:
    """List refused files and parts of files with the reason. To read them again: localmed import ... --retry."""
    refusals = lookups.quarantine(session, collection)
    rows = [
        (Path(one.path).name, words(one.reason), words(one.place or message("documents.whole_file")), one.collection,
         moment(one.time))
        for one in refusals
    ]  # fmt: skip
    names = ("file", "why", "part", "collection", "since")
    print_rows(as_json, refusals, "web.library.quarantine", names, rows)


# --- details and governance -------------------------------------------------------------------------------------------


@command.command("set")
@click.argument("documents", nargs=-1, required=True)
@click.option("--title", metavar="TITLE", help="Title shown to readers; for one document only.")
@click.option("--tags", metavar="TAGS", help="Words to find it in the list, separated by commas.")
@click.option("--edition", metavar="DATE", help="Date of the edition: 2024, 2024-05 or 2024-05-31.")
@click.option("--owner", metavar="NAME", help="Person who keeps it up to date.")
@click.option("--approver", metavar="NAME", help="Person who approved it.")
@click.option("--effective-from", metavar="DATE", help="It is used from this day on, not before.")
@click.option("--review-by", metavar="DATE", help="After this day it is shown as overdue for review.")
@click.option("--heading", "called", nargs=2, multiple=True, metavar="READ NEW", help="Correct a heading read wrongly.")
@click.option("--no-heading", multiple=True, metavar="READ", help="What was read as a heading is text.")
@in_session
def set_fields(
    session: Session, /, documents: tuple[str, ...], called: tuple[tuple[str, str], ...], no_heading: tuple[str, ...],
    **options: str | None,
) -> None:  # fmt: skip
    """Set details of DOCUMENTS, for all of them or none; an empty value ("") clears a field.

    Later imports of the file keep these values. Values in the collection's manifest can only be changed there.
    """
    from localmed.site.governing import Change

    values = {name: value.strip() for name, value in options.items() if value is not None}
    headings = bool(called or no_heading)
    if not values and not headings:
        raise UsageError("documents.nothing_to_set")
    before = tuple({it.id: it for it in (lookups.document(session, name) for name in documents)}.values())
    planned = [
        Change((it,), lookups.headings_named(session, it, dict(called), no_heading)) for it in before if headings
    ]
    changes.govern(session, [*([Change(before, values)] if values else ()), *planned])
    after = [lookups.document(session, it.id) for it in before]
    fields = tuple(message(f"column.{name}") for name in (*values, *(["heading"] if headings else ())))
    for it in after:
        say("documents.fields_set", title=it.title, fields=fields, status=status_message(it.status))


@command.command("govern")
@click.argument("sheet", type=FILE)
@click.option("--collection", "-c", required=True, metavar="NAME", help="Collection of the sheet.")
@json_option
@in_session
def govern(session: Session, sheet: Path, collection: str, as_json: bool) -> None:
    """Set title, edition, tags, owner, approver and dates from SHEET (CSV or XLSX), one row a file.

    The first row names the columns, in English or Chinese: file, title, edition, owner, approver, effective from,
    review by, tags.
    An empty cell changes nothing, "-" clears a field. If a row is wrong, nothing is changed and the row is listed. To
    start with a filled-in sheet: localmed documents sheet FILE -c NAME
    """
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


@command.command("sheet")
@click.argument("sheet", type=FILE)
@click.option("--collection", "-c", required=True, metavar="NAME", help="Collection of the sheet.")
@in_session
def write_sheet(session: Session, sheet: Path, collection: str) -> None:
    """Write the files of a collection and their details to the new CSV file SHEET, to fill in for `govern`."""
    rows = lookups.sheet_rows(session, collection)
    try:
        with sheet.open("x", encoding="utf-8-sig", newline="") as file:  # the mark tells Excel that it is UTF-8
            file.write(csv_text(rows, "\r\n"))
    except FileExistsError:
        raise UsageError("file.exists", file=str(sheet)) from None
    except OSError as error:
        raise UsageError("file.unwritable", reason=reason(error), file=str(sheet)) from None
    say("documents.sheet", count=len(rows) - 1, sheet=str(sheet))


@command.command("due")
@click.option("--within", type=click.IntRange(0, 36_500), default=0, metavar="DAYS", show_default=True,
              help="Also documents due within this many days.")  # fmt: skip
@of_collection
@json_option
@in_session
def due(session: Session, within: int, collection: str, as_json: bool) -> None:
    """List documents overdue for review, longest first; then those whose current text is not approved."""
    due_documents, lapsed = lookups.to_review(session, collection, within)
    values = [{**asdict(row), "approval_lapsed": row.id in lapsed} for row in due_documents]
    rows = [
        (d.id[:12], d.collection, d.title, d.governance.owner or "-", d.governance.review_by or "-",
         text("documents.lapsed", status=status_message(d.status)) if d.id in lapsed else status_word(d.status))
        for d in due_documents
    ]  # fmt: skip
    names = ("id", "collection", "title", "owner", "review_by", "status")
    print_rows(as_json, values, "documents.to_review", names, rows)
