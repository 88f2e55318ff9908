"""``localmed collections``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import in_session, print_json, print_rows, show_progress
from localmed.cli.import_files import all_refused, print_report, print_report_text, report_json
from localmed.cli.later import changes, importing, lookups
from localmed.cli.options import json_option, yes_option
from localmed.cli.speaking import confirm, error_json, error_line, joined, say, tell_generation, text
from localmed.domain import Collection, Kind, message
from localmed.domain.errors import LocalmedError, UsageError

if TYPE_CHECKING:
    from localmed.site.session import Session

KIND = click.option("--kind", type=click.Choice([kind.value for kind in Kind if kind]), help="Kind of source.")


@click.group("collections", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, create and update collections, set their priority (lower comes first).

    A collection is a set of documents with one licence and one rank, such as guidelines or the hospital's own pages.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@in_session
def listed(session: Session, as_json: bool = False) -> None:
    """List all collections and their content."""
    found = lookups.collections(session)
    values = {
        row.collection.name: {**asdict(row.collection), "documents": row.documents, "passages": row.passages,
                              "terms": row.terms, "access": row.groups}
        for row in found
    }  # fmt: skip
    rows = [
        (it.name, it.title, it.kind.value or "-", it.priority, row.documents,
         text("collections.terms", count=row.terms) if row.terms else text("collections.passages", count=row.passages),
         _open_to(row.groups))
        for row in found for it in [row.collection]
    ]  # fmt: skip
    names = ("name", "title", "kind", "priority", "documents", "holds", "open_to")
    print_rows(as_json, values, "web.library.collections", names, rows)


def _open_to(groups: Sequence[str]) -> str:
    return joined(groups) or text("collections.everybody")


@command.command("create")
@click.argument("name")
@click.option("--title", default="", help="Title that readers see.")
@click.option("--priority", type=int, default=100, show_default=True, help="Priority; lower comes first.")
@click.option("--language", type=click.Choice(["en", "zh"]), help="Language, if all documents have the same.")
@KIND
@click.option("--licence", default="", metavar="TEXT", help="Licence of its documents.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Only this group may read it (repeatable).")
@in_session
def create(
    session: Session, /, name: str, title: str, language: str | None, kind: str | None, groups: tuple[str, ...],
    **fields: Any,
) -> None:  # fmt: skip
    """Create the collection NAME."""
    described = Collection(name, title or name, language=language or "", kind=Kind(kind or ""), **fields)
    changes.create_collection(session, described, groups)
    say("collections.created", name=name)


@command.command("access")
@click.argument("name")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="Group that may read it (repeatable).")
@click.option("--everybody", is_flag=True, help="Remove the restriction.")
@json_option
@in_session
def access(session: Session, name: str, groups: tuple[str, ...], everybody: bool, as_json: bool) -> None:
    """Show or set the groups that may read collection NAME.

    Others do not see the collection in any search or list. Takes effect with the next question and stays in force
    after a rollback. Accounts that can write to the data folder read everything.
    """
    if groups and everybody:
        raise UsageError("collections.both")
    lookups.collection(session, name)
    if groups or everybody:
        changes.set_access(session, name, groups)
    allowed = next(list(row.groups) for row in lookups.collections(session) if row.collection.name == name)
    if as_json:
        print_json({"collection": name, "access": allowed})
    else:
        say("collections.access", name=name, groups=_open_to(allowed))


command.add_command(
    click.Command("readers", params=access.params, callback=access.callback, help=access.help, hidden=True)
)


@command.command("priority")
@click.argument("name")
@click.argument("priority", type=int)
@in_session
def set_priority(session: Session, name: str, priority: int) -> None:
    """Set the PRIORITY of collection NAME (lower comes first)."""
    changes.put_collection(session, replace(lookups.collection(session, name), priority=priority))
    say("collections.priority", name=name, priority=priority)


@command.command("set")
@click.argument("name")
@click.option("--title", help="Title that readers see.")
@click.option("--licence", metavar="TEXT", help="Licence of its documents.")
@click.option("--priority", type=int, help="Priority; lower comes first.")
@click.option("--language", type=click.Choice(["", "en", "zh"]), help="Language, if all documents have the same.")
@KIND
@in_session
def set_fields(session: Session, /, name: str, kind: str | None, **fields: Any) -> None:
    """Set title, licence, priority, language and kind of collection NAME.

    The name cannot change: document ids and withdrawals refer to it.
    """
    values = {field: value for field, value in fields.items() if value is not None}
    values |= {"kind": Kind(kind)} if kind else {}
    if not values:
        raise UsageError("collections.nothing_to_set")
    changes.put_collection(session, replace(lookups.collection(session, name), **values))
    say("collections.set", name=name, fields=tuple(message(f"column.{field}") for field in values))


@command.command("delete")
@click.argument("name")
@yes_option
@in_session
def delete(session: Session, name: str, yes: bool) -> None:
    """Delete collection NAME and its documents from every index. The original files stay where they are.

    Going back to an earlier generation brings it back, with its access rights.
    """
    session.may_change()
    lookups.collection(session, name)
    count = len(lookups.documents(session, name))
    confirm("collections.delete", yes, name=name, count=count)
    number = changes.delete_collection(session, name)
    say("collections.deleted", name=name, count=count)
    tell_generation(number)


@command.command("update")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="All collections imported from files.")
@click.option("--retry", is_flag=True, help="Also read quarantined files again.")
@json_option
@in_session
def update(session: Session, name: str | None, everything: bool, retry: bool, as_json: bool) -> int:
    """Update collection NAME from its source folders and files.

    Run it after files were added, edited or deleted. If a source folder is missing, perhaps because it is not
    mounted, nothing changes.
    """
    if bool(name) == everything:
        raise UsageError("collections.none_named")
    if name:
        with show_progress(not as_json) as hooks:
            report = importing.update(session, name, retry, hooks)
        return print_report(report, as_json)
    return _update_all(session, retry, as_json)


def _update_all(session: Session, retry: bool, as_json: bool) -> int:
    """Update every collection with source files, in one generation; one that fails does not stop the others."""
    results: list[dict[str, Any]] = []
    code = 0
    with show_progress(not as_json) as hooks:
        outcomes = importing.update_all(session, retry, hooks)
    for name, outcome in outcomes.items():
        if isinstance(outcome, LocalmedError):
            say("cli.failed", name=name, error=error_line(outcome), err=True)
            results.append({"collection": name, "error": error_json(outcome)})
            code = code or outcome.exit_code
            continue
        results.append(report_json(outcome))
        if not as_json:
            print_report_text(outcome)
        code = code or all_refused(outcome)
    if as_json:
        print_json(results)
    elif not results:
        say("collections.no_files")
    return code
