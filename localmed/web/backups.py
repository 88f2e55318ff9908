"""Backups in the browser: where they are, making one, checking the newest, setting their folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import Message, message
from localmed.domain.errors import LocalmedError, UsageError
from localmed.nightly import nights
from localmed.upkeep import backup, doctor
from localmed.upkeep.backup import Backup
from localmed.web import job_pages, pages
from localmed.web.visits import Models, Visit

if TYPE_CHECKING:
    from localmed.process.hooks import Hooks
    from localmed.site.session import Session

router = APIRouter(prefix="/admin/backup")
MIB = 2**20


@router.get("")
def overview(visit: Models) -> Response:
    """The folder, when the last backup was made, those that are kept."""
    return _page(visit)


@router.post("/folder")
def choose(visit: Models, folder: Annotated[str, Form()] = "") -> Response:
    """Set the folder of backups in the settings file."""
    try:
        backup.choose_folder(visit.session, Path(folder.strip()))
    except LocalmedError as error:
        return _page(visit, folder, error)
    return pages.redirect("/admin/backup", notice="saved")


@router.post("/make")
def make(visit: Models) -> Response:
    """Make a backup as a job."""
    return job_pages.begin(visit, "backup", "/admin/backup", _made, _folder(visit.session))


@router.post("/check")
def check(visit: Models) -> Response:
    """Read every byte of the newest backup as a job."""
    return job_pages.begin(visit, "backup_check", "/admin/backup", _checked, _folder(visit.session))


def _page(visit: Visit, typed: str | None = None, fault: LocalmedError | None = None) -> Response:
    site, folder, kept = visit.site, backup.folder_of(visit.site.settings), list[Backup]()
    if folder and not fault:
        try:
            backup.require_folder(folder)
            kept = _kept(folder)
        except LocalmedError as error:
            fault = error
    state = doctor.examine(doctor.Site.of(site), (doctor.backups,))
    return pages.page(
        visit,
        "backups.html",
        fault=fault and fault.full_message,
        state=tuple(state),
        folder=folder,
        typed=str(folder or "") if typed is None else typed,
        kept=[(one, one.bytes / MIB, one.added_bytes / MIB) for one in reversed(kept)],
        keep=site.settings.backup.keep,
        timed=nights.is_timed(site.data),
        restoring=_restoring(site.data, folder) if folder else (),
    )


def _restoring(data: Path, folder: Path) -> tuple[str, ...]:
    """The commands that restore the newest backup, as in ``docs/administrator.md``. Root runs them: who serves may not
    write beside the data folder."""
    owner, units = data.stat(), "localmed localmed-refresh.timer"
    data_, folder_ = shlex.quote(str(data)), shlex.quote(str(folder))
    return (
        f"sudo systemctl stop {units}",
        f"sudo localmed --data {data_} restore {folder_} --replace",
        f"sudo chown -R {owner.st_uid}:{owner.st_gid} {data_}",
        f"sudo systemctl start {units}",
    )


def _kept(folder: Path) -> list[Backup]:
    with backup.keeping_backups(folder):
        return [backup.read(folder, name) for name in backup.backups(folder)]


def _folder(session: Session) -> Path:
    folder = backup.folder_of(session.settings)
    if folder is None:
        raise UsageError("backup.no_folder")
    backup.require_folder(folder)  # a backup made on the wrong disk would be taken for one
    return folder


def _made(session: Session, folder: Path, hooks: Hooks) -> Message:
    made = backup.make(session, folder, hooks)
    done = message("backup.made", name=made.name, count=len(made.files), mib=made.bytes / MIB,
                   added=made.added_bytes / MIB)  # fmt: skip
    if not made.damaged:
        return done
    damaged = message("backup.originals", count=len(made.damaged), names=made.damaged)
    return message("backup.made_damaged", made=done, damaged=damaged)


def _checked(session: Session, folder: Path, hooks: Hooks) -> Message:
    del hooks  # they reach the reading by ``hooks.active``
    with backup.keeping_backups(folder):
        chosen = backup.read(folder)
        problems = list(backup.damaged_files(folder, chosen))
    session.note("backup check", chosen.name, "damaged" if problems else "intact")
    if problems:
        return message("backup.incomplete", name=chosen.name, count=len(problems), file=problems[0])
    return message("backup.whole", name=chosen.name, count=len(chosen.files))
