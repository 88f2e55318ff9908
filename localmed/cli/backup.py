"""``localmed backup``, ``restore`` and ``repair``."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, moment, print_json, print_rows, settings_of, show_progress
from localmed.cli.import_files import sigterm_as_interrupt
from localmed.cli.later import backup, check, repair, restore
from localmed.cli.options import FOLDER, json_option, yes_option
from localmed.cli.speaking import confirm, say
from localmed.domain.errors import Damaged, NotAllowed, UsageError
from localmed.messages import render

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.site.session import Session


MIB = 2**20
folder_option = click.option("--folder", "folder", type=FOLDER, metavar="FOLDER",
                             help="Backup folder (default: backup.folder in the settings).")  # fmt: skip


@click.group("backup", invoke_without_command=True)
@folder_option
@json_option
@in_session
def command(session: Session, folder: Path | None = None, as_json: bool = False) -> None:
    """Back up everything during operation: library, originals, state, audit log, withdrawals, models, keys.

    A backup is a plain copy of the data folder; what has not changed is shared with the backup before. Backups are not
    encrypted: keep them on an encrypted disk. Restore with: localmed restore FOLDER. Exit code 5: the backup was made,
    but an original in the data folder is damaged or missing.
    """
    with sigterm_as_interrupt(), show_progress(not as_json) as hooks:
        made = backup.make(session, _folder(folder, session.settings), hooks)
    if as_json:
        print_json({"name": made.name, "generation": made.generation, "audit": made.audit, "bytes": made.bytes,
                    "added_bytes": made.added_bytes, "files": len(made.files), "damaged": made.damaged})  # fmt: skip
    else:
        say("backup.made", name=made.name, count=len(made.files), mib=made.bytes / MIB, added=made.added_bytes / MIB)
        say("backup.head", head=made.audit or "-")
    if made.damaged:
        raise Damaged("backup.originals", count=len(made.damaged), names=made.damaged)


@command.command("list")
@folder_option
@json_option
@in_session
def listed(session: Session, folder: Path | None, as_json: bool) -> None:
    """List the backups in the folder, oldest first."""
    session.may_change()
    place = _folder(folder, session.settings)
    with backup.keeping_backups(place):
        found = [backup.read(place, name) for name in backup.backups(place)]
    values = [{name: getattr(one, name) for name in ("name", "created", "generation", "bytes", "audit")}
              for one in found]  # fmt: skip
    rows = [(one.name, moment(one.created), one.generation, f"{one.bytes / MIB:.1f} MiB") for one in found]
    print_rows(as_json, values, "backup.list", ("name", "created", "generation", "size"), rows)


@command.command("verify")
@click.argument("name", default="")
@folder_option
@in_session
def verify(session: Session, name: str, folder: Path | None) -> None:
    """Check every byte of the backup NAME (default: the newest); exit code 5 if it is damaged."""
    session.may_change()
    place = _folder(folder, session.settings)
    with backup.keeping_backups(place):
        chosen = backup.read(place, name)
        if problems := list(backup.damaged_files(place, chosen)):
            raise Damaged("backup.damaged", file=problems[0], folder=str(place))
    say("backup.whole", name=chosen.name, count=len(chosen.files))


def _folder(named: Path | None, settings: Settings) -> Path:
    if folder := named.expanduser().absolute() if named else backup.folder_of(settings):
        return folder
    raise UsageError("backup.no_folder")


@click.command("restore")
@click.argument("folder", type=FOLDER)
@click.option("--backup", "name", default="", metavar="NAME", help="Backup (default: the newest).")
@click.option("--replace", is_flag=True, help="Replace the data folder; the old one is kept as DATA.before-TIME.")
@yes_option
@click.pass_context
def restore_command(ctx: click.Context, folder: Path, name: str, replace: bool, yes: bool) -> None:
    """Restore a backup from FOLDER into the data folder, completely or not at all; every byte is checked.

    FOLDER is the backup folder, or the folder of one backup in it.
    Stop the service first. With --replace, an audit log, withdrawals and access newer than the backup are kept, so a
    guideline withdrawn since then stays withdrawn.
    """
    from localmed.site.session import local_caller

    settings = settings_of(ctx)
    if local_caller(settings).groups is not None:
        raise NotAllowed("access.not_for_groups")
    data = settings.data
    folder = folder.expanduser().absolute()
    if not name and (folder / backup.MANIFEST).is_file():
        folder, name = folder.parent, folder.name
    confirm("restore.confirm", yes or not replace, data=str(data))
    with sigterm_as_interrupt(), show_progress(True) as hooks:
        restored = restore.restore(folder, data, name, replace, hooks)
    say("restore.done", name=restored.backup.name, data=str(data), generation=restored.backup.generation)
    if restored.kept_log:
        say("restore.kept_log")
    if restored.withdrawn:
        say("restore.withdrawn", count=restored.withdrawn)
    if restored.beside:
        say("restore.beside", folder=restored.beside)


ROUNDS = 4  # files from backups come first; some damage shows only after the link is repaired


@click.command("repair")
@yes_option
@in_session
def repair_command(session: Session, yes: bool) -> None:
    """Show what can be repaired, ask, then repair it.

    Repairs damaged files from the newest backup that holds them, the link to the generation in use, a damaged
    generation (rebuilt from the originals, or replaced by an older intact one), and withdrawals and access from the
    audit log.
    """
    session.may_change()
    rounds = sum(1 for _ in takewhile(bool, (_repair_once(session, yes) for _ in range(ROUNDS))))
    say("generation.repair_done" if rounds else "generation.repair_nothing")


def _repair_once(session: Session, yes: bool) -> bool:
    """Show the planned repair, ask and do it; return whether anything needed repair."""
    if damaged := check.find_mendable(session):
        say("backup.holds", count=len(damaged), names=tuple(one.name for one in damaged))
        confirm("generation.repair_confirm", yes)
        if sum(check.mend(session, one) for one in damaged):
            return True
    step, records = repair.plan(session.data), repair.plan_records(session.data)
    for part in (*((step,) if step else ()), *records):
        for line in (part.fault, *part.shown):
            echo(render(line, session.caller.language))
    if not step and not records:
        return False
    confirm("generation.repair_confirm", yes)
    if step:
        with show_progress(True) as hooks:
            repair.repair(session, step, hooks)
    for record in records:
        record.do(session)
    return True
