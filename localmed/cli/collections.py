"""``localmed collections``."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import click

from localmed.cli.common import json_option, opened, print_json, print_table
from localmed.domain import Collection, Kind
from localmed.errors import NoLibrary, UsageError

LONGEST_NAME = 60  # characters; the name is a file name too, in which a Chinese character takes three bytes of 255
_NAME = re.compile(rf"\w[\w-]{{0,{LONGEST_NAME - 1}}}")


@click.group("collections", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List and create collections, set their priority (lower comes first).

    A collection is a set of documents with one licence and one rank, such as guidelines or the hospital's own pages.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@click.pass_context
def listed(ctx: click.Context, as_json: bool = False) -> None:
    """All collections with what they hold."""
    with opened(ctx) as app:
        counts = app.library.catalogue.counts()
        rows = [(each, *counts.get(each.name, (0, 0))) for each in app.library.catalogue.collections()]
    if as_json:
        print_json(
            {
                each.name: asdict(each) | {"documents": documents, "passages": passages}
                for each, documents, passages in rows
            }
        )
        return
    table = [
        (c.name, c.title, c.kind.value or "-", c.priority, documents, passages, c.licence)
        for c, documents, passages in rows
    ]
    print_table("Collections", ("name", "title", "kind", "priority", "documents", "passages", "licence"), table)


@command.command("create")
@click.argument("name")
@click.option("--title", default="", help="What readers see.")
@click.option("--priority", type=int, default=100, show_default=True, help="Lower comes first.")
@click.option("--language", type=click.Choice(["en", "zh"]), help="If all its documents are in one language.")
@click.option("--kind", type=click.Choice([each.value for each in Kind if each]), help="What sort of source it is.")
@click.option("--licence", default="", metavar="TEXT", help="Under what terms its documents are held.")
@click.pass_context
def create(
    ctx: click.Context, name: str, title: str, priority: int, language: str | None, kind: str | None, licence: str
) -> None:
    """Create the collection NAME."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a collection name", f"Use up to {LONGEST_NAME} letters, digits, - and _")
    with opened(ctx) as app:
        try:
            there = {each.name for each in app.library.catalogue.collections()}
        except NoLibrary:
            there = set()
        if name in there:
            raise UsageError(f"there is a collection {name!r} already", "Change it with: localmed collections priority")
        app.put_collection(Collection(name, title or name, priority, language or "", "", licence, Kind(kind or "")))
    click.echo(f"Created {name}")


@command.command("priority")
@click.argument("name")
@click.argument("priority", type=int)
@click.pass_context
def set_priority(ctx: click.Context, name: str, priority: int) -> None:
    """Set the PRIORITY of collection NAME (lower comes first)."""
    with opened(ctx) as app:
        app.put_collection(replace(app.library.catalogue.collection(name), priority=priority))
    click.echo(f"{name} has priority {priority}")
