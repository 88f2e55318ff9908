"""``localmed restore``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed.cli.common import settings_of, work_shown
from localmed.cli.import_files import ended_as_by_ctrl_c
from localmed.cli.speaking import confirm, say
from localmed.errors import UsageError


@click.command("restore")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--backup", "name", default="", metavar="NAME", help="Which one (default: the newest).")
@click.option("--replace", is_flag=True, help="In place of the data folder that is there, which is kept beside.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def command(ctx: click.Context, folder: Path, name: str, replace: bool, yes: bool) -> None:
    """Restore a backup of FOLDER into the data folder, whole or not at all; every byte is compared.

    Stop the service first. With --replace the newest wins: an audit log, withdrawals and access that go on from the
    backup's are kept, and a guideline withdrawn since stays withdrawn.
    """
    from localmed.operations import restore
    from localmed.session import local_caller

    settings = settings_of(ctx)
    if local_caller(settings).groups is not None:
        raise UsageError("access.not_for_groups")
    data = settings.data
    if replace and not yes:
        confirm("restore.confirm", data=str(data))
    with ended_as_by_ctrl_c(), work_shown(True) as hooks:
        restored = restore.restore(folder.expanduser().absolute(), data, name, replace, hooks)
    say("restore.done", name=restored.backup.name, data=str(data), generation=restored.backup.generation)
    if restored.kept_log:
        say("restore.kept_log")
    if restored.withdrawn:
        say("restore.withdrawn", count=restored.withdrawn)
    if restored.beside:
        say("restore.beside", folder=restored.beside)
