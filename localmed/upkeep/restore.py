"""``localmed restore``: a complete data folder from a backup, or none.

Everything is written to a folder beside the data folder and verified; then the two are exchanged, atomically if the
file system can, and the old one stays as ``<data>.before-...`` for a person to delete. The next restore settles an
interrupted exchange: the data folder is in its place again, the other stays beside it. If the existing folder's journal
continues the backup's, its ``site.sqlite`` is kept, so that no withdrawal, restriction, stop, disabled account, kept
answer or journal row is lost; if it cannot be read, readable withdrawals and stops are put in force again. All logins
end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from localmed.domain.errors import AnotherKey, Busy, Damaged, LocalmedError, UsageError
from localmed.library import generations, layout
from localmed.library.in_force import changing, copy_of, in_force, newest
from localmed.library.journal import SINCE_CHECKPOINT, WITH_ANOTHER_KEY, InForce, replay
from localmed.library.older import is_moved
from localmed.library.state import FILE as STATE_FILE
from localmed.library.state import rows, selected
from localmed.people import noted_accounts
from localmed.people.noted_accounts import require_noted
from localmed.process import files
from localmed.process.hooks import Hooks
from localmed.site import alerts
from localmed.site.audit import Audit, entry_of
from localmed.site.stops import STOP
from localmed.site.uploads import WAITING
from localmed.upkeep import backup as backups_of
from localmed.upkeep.backup import Backup

RESTORING, RESTORED = "restoring", "restored"  # folders beside the data folder: incomplete; complete, around the swap


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore. ``kept_log``: the existing, newer journal was kept.

    ``withdrawn`` counts withdrawals that only the existing folder had; ``beside`` is the path of the old folder.
    """

    backup: Backup
    kept_log: bool
    withdrawn: int
    beside: str


def restore(folder: Path, data: Path, name: str, replace: bool, hooks: Hooks) -> Restored:
    """Restore the backup ``name`` ("": the newest) of ``folder`` into ``data``.

    Raise ``UsageError`` for a data folder that is not empty, unless ``replace``; ``Damaged`` for a damaged backup,
    ``Busy`` if the data folder is in use.
    """
    data = data.resolve()  # the target of a link, on its own disk
    with backups_of.keeping_backups(folder), _alone(data):
        return _restore(folder, data, backups_of.read(folder, name), replace, hooks)


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Allow one restore at a time beside ``data``; raise ``Busy`` for another."""
    data.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(data.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not files.lock(handle):
            raise Busy("restore.in_use", data=str(data))
        yield
    finally:
        os.close(handle)


def _restore(folder: Path, data: Path, chosen: Backup, replace: bool, hooks: Hooks) -> Restored:
    _finish_interrupted(data)
    existing = data.exists() and any(data.iterdir())
    if existing and not replace:
        raise UsageError("restore.not_empty", data=str(data))
    fresh = _path_beside(data, RESTORING)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        with backups_of.translating_errors(data.parent), _locked(data) if existing else nullcontext():
            _write_all(folder, chosen, fresh, hooks)
            _verify(fresh)
            known = _newest_row(data)
            kept_log, withdrawn = _keep_newer_journal(data, fresh) if existing else (False, 0)
            if (fresh / STATE_FILE).exists():
                with rows(fresh) as state:
                    state.execute("DELETE FROM logins")  # some may have ended after the backup
            alerts.clear(fresh, "backup")  # raised before this backup
            _with_the_key_at_hand(fresh)
            in_force(fresh)
            if existing and (generations.in_use(data) or _newest_row(data) != known):
                raise Busy("restore.in_use", data=str(data))  # a change made meanwhile would be lost
            beside = _exchange(data, fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return Restored(chosen, kept_log, withdrawn, beside)


def _write_all(folder: Path, chosen: Backup, fresh: Path, hooks: Hooks) -> None:
    done, total = 0, chosen.bytes
    for file in chosen.files:
        hooks.cancel.check()
        backups_of.write(folder, chosen, file, fresh / file.path)
        done += file.bytes
        hooks.progress(done, total, file.path.partition("/")[0])
    (fresh / layout.CURRENT).symlink_to(f"{layout.GENERATIONS}/{chosen.generation:04d}")
    for path in sorted(fresh.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
            files.sync(path)


def _with_the_key_at_hand(fresh: Path) -> None:
    """Add a checkpoint if the journal's key, kept outside the folder, is another one here."""
    try:
        in_force(fresh)
    except AnotherKey:
        state = replay(selected(fresh, SINCE_CHECKPOINT), None)
        with changing(fresh, before=state) as change:
            change.note(entry_of("restore", "journal", WITH_ANOTHER_KEY), **state.facts())


def _verify(fresh: Path) -> None:
    """Raise ``Damaged`` unless the written library can be served."""
    with generations.lease(fresh) as generation:
        if problems := generations.check(generation, whole=True):
            raise Damaged("generation.damaged", name=generation.name, problem=problems[0])


def _newest_row(data: Path) -> str:
    with suppress(LocalmedError, OSError):
        return newest(data)
    return ""


@contextmanager
def _locked(data: Path) -> Iterator[None]:
    """Prevent writes within the block; raise ``Busy`` if somebody reads or writes ``data``."""
    with closing(generations.lock_writer(data)):
        if generations.in_use(data):
            raise Busy("restore.in_use", data=str(data))
        yield


def _keep_newer_journal(data: Path, fresh: Path) -> tuple[bool, int]:
    """Keep the existing journal if it continues the backup's, else reapply what it knows.

    Return whether it was kept, and the number of withdrawals that were reapplied.
    """
    if _continues(data, fresh):
        for place in (place for place in layout.PLACES if place.logged):
            for end in ("", "-wal", "-shm"):
                (fresh / f"{place.name}{end}").unlink(missing_ok=True)
            for path in (data / place.name, data / f"{place.name}-wal"):
                if path.is_file():
                    shutil.copy2(path, fresh / path.name)
                    files.sync(fresh / path.name)
        with rows(fresh) as state:
            kept = [(path.name,) for path in layout.entries(fresh / layout.UPLOADS / WAITING)]
            state.execute("CREATE TEMP TABLE kept (id TEXT)")
            state.executemany("INSERT INTO kept VALUES (?)", kept)
            state.execute("DELETE FROM uploads WHERE id NOT IN (SELECT id FROM kept)")
        return True, 0
    known = [found for found in [copy_of(data)] if found]
    with suppress(LocalmedError, OSError):
        known.append(in_force(data))
    return False, _reapply(known, fresh)


def _continues(data: Path, fresh: Path) -> bool:
    """Whether the journal of ``data`` is intact and has the newest row of that of ``fresh``."""
    try:
        with Audit(data) as log, Audit(fresh) as restored:  # moves either one's older files
            newest = restored.head()
            if newest and is_moved(restored.entries()[-1]):
                newest = restored.row_at(newest.number - 1)
            if (newest and log.row_at(newest.number) != newest) or log.verify(key_needed=False):
                return False
        in_force(data)
        require_noted(data)
        return True
    except (LocalmedError, OSError):
        return False


def _reapply(known: list[InForce], fresh: Path) -> int:
    """Reapply withdrawals, access, disabled accounts and stops missing in ``fresh``; count the withdrawals."""
    count = 0
    with changing(fresh) as change:
        for found in known:
            for one in found.withdrawals.values():
                present = change.after.withdrawals.get((one.document, one.content))
                if one.withdrawn and not (present and present.withdrawn):
                    entry = replace(entry_of("withdraw", one.document, "restored", user=one.actor), time=one.time)
                    values = {name: getattr(one, name) for name in ("document", "content", "title", "reason", "sketch")}
                    change.note(entry, kind="withdrawal", withdrawn=True, **values)
                    count += 1
            for name, groups in found.access.items():
                if change.after.access.get(name) != groups:
                    entry = entry_of("access", name, "restored")
                    change.note(entry, kind="access", collection=name, groups=sorted(groups))
            for user in (user for user, rights in found.rights.items() if " disabled: " in rights):
                query = "UPDATE accounts SET disabled = 1 WHERE user = ? AND disabled = 0"
                if change.state.execute(query, (user,)).rowcount:
                    noted_accounts.note(change, entry_of("account change", user, "restored"))
            stopped = {(one.kind, one.name) for one in change.after.stops}
            for stop in (one for one in found.stops if (one.kind, one.name) not in stopped):
                entry = replace(entry_of(STOP, f"{stop.kind} {stop.name}", "restored", user=stop.user), time=stop.time)
                change.note(entry, kind="stop", what=stop.kind, name=stop.name, stopped=True, reason=stop.reason)
    return count


def _exchange(data: Path, fresh: Path) -> str:
    """Put ``fresh`` in the place of ``data``; return the path of the old folder ("": there was none)."""
    beside = ""
    if data.exists() and any(data.iterdir()):
        whole = _path_beside(data, RESTORED)
        fresh.rename(whole)
        try:
            files.exchange(data, whole)
        except OSError:  # a mount point cannot be moved
            whole.rename(fresh)
            raise
        beside = _set_aside(data, whole)
    else:
        if data.exists():
            data.rmdir()
        fresh.rename(data)
    files.sync(data.parent)
    return beside


def _set_aside(data: Path, old: Path) -> str:
    beside = data.with_name(f"{data.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    old.rename(beside)
    return str(beside)


def _finish_interrupted(data: Path) -> None:
    """Settle an interrupted exchange: if the data folder is missing, put the old one back; set any other aside."""
    left = files.exchanged(data)
    if left.exists() and not data.exists():
        left.rename(data)
    for path in interrupted_folders(data):
        if path != _path_beside(data, RESTORING):
            _set_aside(data, path)


def _path_beside(data: Path, name: str) -> Path:
    return data.with_name(f".{data.name}.{name}")


def interrupted_folders(data: Path) -> list[Path]:
    """Return the folders that an interrupted restore left beside ``data``."""
    paths = (_path_beside(data, RESTORING), _path_beside(data, RESTORED), files.exchanged(data))
    return [path for path in paths if path.exists()]
