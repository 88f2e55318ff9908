"""``localmed documents``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed import language
from localmed.cli import documents_governance, speaking
from localmed.cli.common import echo, json_option, moment, opened, plain, print_json, print_table, width_of
from localmed.cli.speaking import columns, confirm, say, status_message, status_word, text, words
from localmed.domain import Document, Message, Passage, Status, message
from localmed.errors import UsageError
from localmed.messages import ASIDE, CLAUSES

if TYPE_CHECKING:
    from localmed.library.summaries import Summary
    from localmed.operations.governing import Link

LABEL = 18  # columns of a field's name
NAMED = 10  # documents named before they are removed
SHOWN = 200  # rows of a list printed; --json has them all


@click.group("documents", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, govern, remove, supersede, withdraw documents, by the id that the list shows (its start will do)."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@click.option("--collection", "-c", default="", metavar="NAME", help="Only this collection.")
@click.option("--status", type=click.Choice([status.value for status in Status]), help="Only documents of this status.")
@click.option("--title", default="", metavar="WORDS", help="Only documents with these words in the title.")
@json_option
@click.pass_context
def listed(
    ctx: click.Context, collection: str = "", status: str | None = None, title: str = "", as_json: bool = False
) -> None:
    """All documents, or those of a collection, a status or with words in the title, with the status in force now."""
    from localmed.operations import lookups

    with opened(ctx) as session:
        stored = lookups.documents_overdue(session, collection)
    words_of_title = title.casefold().split()
    chosen = [row for row, _ in stored if (not status or row.status == status) and _titled(row, words_of_title)]
    late = {row.id: overdue for row, overdue in stored}
    if as_json:
        print_json([{**plain(row), "overdue": late[row.id]} for row in chosen])
        return
    rows = [
        (d.id[:12], d.title, d.collection, d.edition or "-", d.language, _standing(d, late[d.id]), d.passages)
        for d in chosen
    ]
    names = columns("id", "title", "collection", "edition", "language", "status", "passages")
    print_table(text("documents.list"), names, rows[:SHOWN])
    if len(rows) > SHOWN:
        say("cli.more", count=len(rows) - SHOWN)


def _titled(document: Document, words_of_title: Sequence[str]) -> bool:
    return all(word in document.title.casefold() for word in words_of_title)


def _standing(document: Document, overdue: str) -> str:
    """The status, the day that it waits for, and whether its review is late."""
    waiting = f" {document.governance.effective_from}" if document.status is Status.PENDING else ""
    standing = f"{status_word(document.status)}{waiting}"
    return text("documents.overdue", status=standing, date=overdue) if overdue else standing


@command.command("show")
@click.argument("document")
@json_option
@click.pass_context
def show(ctx: click.Context, document: str, as_json: bool) -> None:
    """What is known of DOCUMENT, its passages and, of a guideline, its summary with where each sentence stands."""
    from localmed.operations import lookups

    with opened(ctx) as session:
        details = lookups.document_details(session, document)
    record, passages, summary = details.document, details.passages, details.summary
    links, late = details.chain, details.overdue
    if as_json:
        described = {"summary": _described(summary, passages)} if summary else {}
        more = {"chain": asdict(links), "overdue": late, "passage_ids": [passage.id for passage in passages]}
        print_json({**plain(record), **more, **described})
        return
    values = {**asdict(record), "notes": [speaking.words(note) for note in record.notes]}
    values["status"] = status_word(record.status)
    for name, value in (values | values.pop("governance") | {"review_overdue": late and text("cli.yes")}).items():
        if value:
            _fact(text(f"documents.field_{name}"), value)
    for name, linked in (("supersedes", links.older), ("superseded_by", links.newer)):
        for link in linked:
            _fact(text(f"documents.field_{name}"), _link_line(link))
    rows = [
        (passage.id[:12], passage.page or "-", " > ".join(passage.headings)[:60], len(passage.text))
        for passage in passages
    ]
    print_table(text("documents.passages"), columns("id", "page", "heading", "characters"), rows)
    if summary:
        places = _described(summary, passages)["places"]
        print_table(
            text("documents.summary"),
            columns("passage", "page", "sentence"),
            [(place["passage"][:12], place["page"] or "-", place["text"]) for place in places],
        )


def _fact(label: str, value: object) -> None:
    if isinstance(value, tuple):
        value = speaking.joined((" ".join(item) if isinstance(item, tuple) else str(item) for item in value), CLAUSES)
    echo(f"{' ' * (LABEL - width_of(label))}{label}  {value}")


def _link_line(link: Link) -> str:
    status = f"{status_word(link.status)} {link.removed}".rstrip()
    parts = [words(_dated(link)), status] if link.title else [status]
    return f"{link.id[:12]}  {speaking.joined(parts, ASIDE)}"


def _described(summary: Summary, passages: Sequence[Passage]) -> dict[str, Any]:
    """The summary, how it was made, and each of its sentences with its passage and page."""
    by_id = {passage.id: passage for passage in passages}
    places = [
        {
            **asdict(place),
            "page": next((box.page for box in by_id[place.passage].boxes(place.start, place.end)), 0),
            "text": by_id[place.passage].text[place.start : place.end],
        }
        for place in summary.places
        if place.passage in by_id
    ]
    return {"made": "by extraction", "text": summary.text, "places": places}


@command.command("remove")
@click.argument("documents", nargs=-1)
@click.option("--collection", "-c", default="", metavar="NAME", help="With --all: the collection to empty.")
@click.option("--all", "everything", is_flag=True, help="Remove every document of the collection.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def remove(ctx: click.Context, documents: tuple[str, ...], collection: str, everything: bool, yes: bool) -> None:
    """Remove DOCUMENTS from every index. The files they came from stay where they are.

    Documents and records whose file is imported again come back; to keep one out for good, withdraw it.
    """
    if bool(documents) == everything or (everything and not collection):
        raise UsageError("documents.none_named")
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        if everything:
            chosen = lookups.documents(session, collection)
        else:
            chosen = [lookups.document(session, document) for document in documents]
        if not chosen:
            raise UsageError("documents.none_in", collection=collection)
        if not yes:
            for document in chosen[:NAMED]:
                echo(f"  {document.id[:12]}  {document.title}")
            if len(chosen) > NAMED:
                echo("  ...")
            confirm("documents.remove", count=len(chosen))
        number = changes.remove(session, chosen)
    say("documents.removed", count=len(chosen))
    say("generation.served", number=number)
    if any(Path(document.source).exists() for document in chosen):
        say("documents.files_stay", count=len(chosen))


@command.command("supersede")
@click.argument("document")
@click.option("--by", default="", metavar="DOCUMENT", help="The document that replaces it.")
@click.option("--undo", is_flag=True, help="Make it current again.")
@click.option("--yes", is_flag=True, help="Do not ask where the titles have no word in common.")
@click.pass_context
def supersede(ctx: click.Context, document: str, by: str, undo: bool, yes: bool) -> None:
    """Mark DOCUMENT superseded: it no longer answers unless asked for with --status superseded.

    Without --by, what superseded it before stays its successor.
    """
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        old = lookups.document(session, document)
        successor = lookups.document(session, by) if by else None
        status = Status.CURRENT if undo else Status.SUPERSEDED
        if successor and successor.id != old.id:
            alike = set(language.content_words(old.title)) & set(language.content_words(successor.title))
            if not yes and not alike:
                confirm("documents.supersede_unlike", old=_dated(old), new=_dated(successor))
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
@click.option("--reason", required=True, help="Why (kept in the ledger).")
@click.pass_context
def withdraw(ctx: click.Context, document: str, reason: str) -> None:
    """Withdraw DOCUMENT: from the next query on it never answers, not even after a rollback."""
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        chosen = lookups.document(session, document)
        changes.withdraw(session, chosen, True, reason)
        say("documents.withdrawn", title=chosen.title)
        for near in lookups.near_copies(session, chosen):
            say("documents.near_copy", title=near.title, document=near.id[:12], collection=near.collection)


@command.command("reinstate")
@click.argument("document")
@click.option("--reason", required=True, help="Why (kept in the ledger).")
@click.pass_context
def reinstate(ctx: click.Context, document: str, reason: str) -> None:
    """Take back the withdrawal of DOCUMENT."""
    from localmed.operations import changes, lookups

    with opened(ctx) as session:
        chosen = lookups.document(session, document)
        changes.withdraw(session, chosen, False, reason)
    say("documents.reinstated", title=chosen.title)


@command.command("quarantine")
@click.option("--collection", "-c", default="", metavar="NAME", help="Only this collection.")
@json_option
@click.pass_context
def quarantine(ctx: click.Context, collection: str, as_json: bool) -> None:
    """Files and parts of files that were refused, and why. To read them again: localmed import ... --retry."""
    from localmed.operations import lookups

    with opened(ctx) as session:
        refusals = lookups.quarantine(session, collection)
    if as_json:
        print_json(refusals)
        return
    rows = [
        (
            Path(refusal.path).name,
            words(refusal.reason),
            words(refusal.place or message("documents.whole_file")),
            refusal.collection,
            moment(refusal.time),
        )
        for refusal in refusals
    ]
    print_table(text("documents.quarantine"), columns("file", "why", "part", "collection", "since"), rows)


for _command in documents_governance.COMMANDS:
    command.add_command(_command)
