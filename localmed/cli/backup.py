"""``localmed backup``."""

from __future__ import annotations

from pathlib import Path

import click

from localmed.cli.common import json_option, moment, opened, print_json, print_table, work_shown
from localmed.cli.import_files import ended_as_by_ctrl_c
from localmed.cli.speaking import columns, say, text
from localmed.errors import Damaged, UsageError

MIB = 2**20
folder_option = click.option(
    "--folder", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="The folder of backups (else backup.folder of the settings).",
)  # fmt: skip


@click.group("backup", invoke_without_command=True)
@folder_option
@json_option
@click.pass_context
def command(ctx: click.Context, folder: Path | None = None, as_json: bool = False) -> None:
    """Back up everything while it is served: library, originals, state, audit log, withdrawals, models and keys.

    What an earlier backup in the folder holds already is not written again. It is not encrypted: keep it on a disk
    that is. Restore it with: localmed restore FOLDER.
    """
    if ctx.invoked_subcommand is not None:
        return
    from localmed.operations import backup

    with ended_as_by_ctrl_c(), opened(ctx) as session, work_shown(not as_json) as hooks:
        made = backup.make(session, _folder(folder, session.settings.backup.folder), hooks)
    if as_json:
        print_json({"name": made.name, "generation": made.generation, "audit": made.audit, "bytes": made.bytes,
                    "added_bytes": made.added_bytes, "files": len(made.files)})  # fmt: skip
        return
    say("backup.made", name=made.name, count=len(made.files), mib=made.bytes / MIB, added=made.added_bytes / MIB)
    say("backup.head", head=made.audit or "-")


@command.command("list")
@folder_option
@json_option
@click.pass_context
def listed(ctx: click.Context, folder: Path | None, as_json: bool) -> None:
    """The backups in the folder, oldest first."""
    from localmed.operations import backup

    with opened(ctx) as session:
        session.may_change()
        place = _folder(folder, session.settings.backup.folder)
        with backup.reading(place):
            rows = [backup.read(place, name) for name in backup.backups(place)]
    if as_json:
        print_json([{"name": one.name, "created": one.created, "generation": one.generation, "bytes": one.bytes,
                     "audit": one.audit} for one in rows])  # fmt: skip
        return
    table = [(one.name, moment(one.created), one.generation, f"{one.bytes / MIB:.1f} MiB") for one in rows]
    print_table(text("backup.list"), columns("name", "created", "generation", "size"), table)


@command.command("verify")
@click.argument("name", default="")
@folder_option
@click.pass_context
def verify(ctx: click.Context, name: str, folder: Path | None) -> None:
    """Read every byte of the backup NAME (default: the newest) and compare it; exit code 5 if one is damaged."""
    from localmed.operations import backup

    with opened(ctx) as session:
        session.may_change()
        place = _folder(folder, session.settings.backup.folder)
        with backup.reading(place):
            chosen = backup.read(place, name)
            if problems := list(backup.damaged(place, chosen)):
                raise Damaged("backup.damaged", file=problems[0], folder=str(place))
    say("backup.whole", name=chosen.name, count=len(chosen.files))


def _folder(named: Path | None, of_settings: str) -> Path:
    if not named and not of_settings:
        raise UsageError("backup.no_folder")
    return (named or Path(of_settings)).expanduser().absolute()
