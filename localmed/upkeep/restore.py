"""``localmed restore``: a data folder from a backup, whole or not at all.

Everything is written into a folder beside, every hash compared, and the two are exchanged last: what was there stays
beside as ``<data>.before-...`` for a person to delete. Of an existing data folder the newest wins: where its audit log
goes on from the backup's, its log, ledger and access file are kept, and so are its stops, accounts and tokens, so that
no withdrawal, restriction, stop, disabled account or line of the log is lost; where it cannot be read, withdrawals and
stops that can still be read are put in force again. Nobody stays signed in.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from localmed.domain import Document
from localmed.domain.errors import Busy, Damaged, LocalmedError, UsageError
from localmed.library import generations, layout
from localmed.library.anchors import PLANNED, Anchor, anchors
from localmed.library.state import FILE as STATE_FILE
from localmed.library.state import rows, transaction
from localmed.library.withdrawals import Entry, Withdrawals
from localmed.people import noted_accounts
from localmed.process import files
from localmed.process.hooks import Hooks
from localmed.site import alerts, stops
from localmed.site.audit import Audit
from localmed.site.stops import Stop
from localmed.upkeep import backup as backups_of
from localmed.upkeep.backup import Backup

NEWER = tuple(place.name for place in layout.PLACES if place.logged and place.name != layout.STATE)
KEPT = {  # of the existing ``state.sqlite``, by table
    "accounts": ("user", "role", "groups", "source", "password", "disabled", "subject", "created", "signed_in"),
    "tokens": ("digest", "id", "user", "name", "created", "expires"),
}


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored: ``kept_log`` that the audit log, ledger and access file are the existing, newer ones.

    ``withdrawn`` counts withdrawals that only the existing ledger knew; ``beside`` is where the old folder lies now.
    """

    backup: Backup
    kept_log: bool
    withdrawn: int
    beside: str


def restore(folder: Path, data: Path, name: str, replace: bool, hooks: Hooks) -> Restored:
    """Restore the backup ``name`` ("": the newest) of ``folder`` into ``data``.

    Raise ``UsageError`` for a data folder that is not empty, unless it is to be replaced; ``Damaged`` for a backup that
    is not whole, ``Busy`` where the data folder is in use.
    """
    with backups_of.reading(folder):
        return _restored(folder, data, backups_of.read(folder, name), replace, hooks)


def _restored(folder: Path, data: Path, chosen: Backup, replace: bool, hooks: Hooks) -> Restored:
    existing = data.exists() and any(data.iterdir())
    if existing and not replace:
        raise UsageError("restore.not_empty", data=str(data))
    fresh = data.with_name(f"{data.name}.restoring")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        with backups_of.explained(data.parent), _unused(data if existing else None):
            _write_all(folder, chosen, fresh, hooks)
            kept_log, withdrawn = _newest(data, fresh) if existing else (False, 0)
            _sign_everybody_out(fresh)
            alerts.clear(fresh, "backup")  # of the night before the backup that is whole
            _verify(fresh)
            beside = _exchange(data, fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return Restored(chosen, kept_log, withdrawn, beside)


def _write_all(folder: Path, chosen: Backup, fresh: Path, hooks: Hooks) -> None:
    done, total = 0, chosen.bytes
    for file in chosen.files:
        hooks.cancel.check()
        target = fresh / file.path
        if not target.resolve().is_relative_to(fresh.resolve()):
            raise Damaged("backup.unreadable", file=str(folder))
        backups_of.write(folder, file, target)
        done += file.bytes
        hooks.progress(done, total, file.path.partition("/")[0])
    (fresh / layout.CURRENT).symlink_to(f"{layout.GENERATIONS}/{chosen.generation:04d}")
    for path in sorted(fresh.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
            files.sync(path)


def _sign_everybody_out(fresh: Path) -> None:
    """Somebody may have signed out since, or have been made to."""
    if (fresh / STATE_FILE).exists():
        with rows(fresh) as state:
            state.execute("DELETE FROM logins")


def _verify(fresh: Path) -> None:
    """Raise ``Damaged`` unless what was written is a library that can be served."""
    with generations.lease(fresh) as generation:
        if problems := generations.check(generation, whole=True):
            raise Damaged("generation.damaged", name=generation.name, problem=problems[0])
    Withdrawals(fresh).changed()


@contextmanager
def _unused(data: Path | None) -> Iterator[None]:
    """Nobody writes or reads ``data`` meanwhile; raise ``Busy`` where somebody does."""
    if data is None:
        yield
        return
    with closing(generations.lock_writer(data)):
        if generations.in_use(data):
            raise Busy("restore.in_use", data=str(data))
        yield


def _newest(data: Path, fresh: Path) -> tuple[bool, int]:
    """Let the existing log, ledger and access file stand where they go on from the backup's."""
    if _goes_on(data, fresh):
        for name in NEWER:
            for old in (fresh / name, fresh / f"{name}-wal", fresh / f"{name}-shm"):
                old.unlink(missing_ok=True)
            for path in (data / name, data / f"{name}-wal"):
                if path.is_file():
                    shutil.copy2(path, fresh / path.name)
                    files.sync(fresh / path.name)
        _rights_now(data, fresh)
        return True, 0
    _stop_again(stops.readable(data), fresh)
    return False, _withdraw_again(Withdrawals(data).readable(), fresh)


def _rights_now(data: Path, fresh: Path) -> None:
    """Let stops, accounts and tokens be what they are now, if they are sound: the log that is kept goes on from them.

    Of accounts those that only the backup knows come back; there is no other way for one to go.
    """
    with suppress(Damaged):
        noted_accounts.require_noted(data)
        now, counted = stops.stops(data), max((anchor.extent for anchor in anchors(data, "stops")), default=0)
        with rows(data) as state:
            tables = {name: _sound_rows(state, name, fields) for name, fields in KEPT.items()}
        with rows(fresh) as state, transaction(state):
            state.execute("DELETE FROM tokens")
            for name, fields in KEPT.items():
                places = ", ".join("?" for _ in fields)
                query = f"INSERT OR REPLACE INTO {name} ({', '.join(fields)}) VALUES ({places})"  # noqa: S608
                state.executemany(query, tables[name])
        _stop(now, counted, fresh)
        with closing(Audit(fresh)) as log:
            note = partial(log.append, "restore", "accounts")
            anchor = noted_accounts.restore(fresh, (), True, lambda planned: note(f"{PLANNED}{planned}"))
            note(f"in force{anchor}")


def _sound_rows(state: sqlite3.Connection, name: str, fields: Iterable[str]) -> list[tuple[object, ...]]:
    """The rows of a table; SQLite's error where one is not as it was stored."""
    state.execute(f"SELECT * FROM sound_{name}").fetchall()  # noqa: S608
    return state.execute(f"SELECT {', '.join(fields)} FROM {name}").fetchall()  # noqa: S608


def _stop_again(listed: Iterable[Stop], fresh: Path) -> None:
    """Put in force what only the existing folder says is stopped."""
    known = {(one.kind, one.name): one for one in stops.stops(fresh)}
    if lost := [one for one in listed if (one.kind, one.name) not in known]:
        _stop([*known.values(), *lost], max((one.extent for one in anchors(fresh, "stops")), default=0), fresh)


def _stop(listed: Iterable[Stop], least: int, fresh: Path) -> None:
    with closing(Audit(fresh)) as log:
        anchor = stops.restore(
            fresh, listed, least, lambda planned: log.append("restore", "stops", f"{PLANNED}{planned}")
        )
        log.append("restore", "stops", f"in force{anchor}")


def _goes_on(data: Path, fresh: Path) -> bool:
    """Whether the log of ``data`` is whole and holds the newest entry of that of ``fresh``, and its ledger is whole."""
    try:
        if not (data / layout.AUDIT).exists():
            return False
        with closing(Audit(data)) as log, closing(Audit(fresh)) as restored:
            newest = [entry.digest() for _, entry in restored.numbered()][-1:]
            known = {entry.digest() for _, entry in log.numbered()}
            if not set(newest) <= known or log.verify(key_needed=False):
                return False
        Withdrawals(data).changed()
        return True
    except (LocalmedError, OSError):
        return False


def _withdraw_again(entries: list[Entry], fresh: Path) -> int:
    """Put in force what only the existing ledger withdraws."""
    ids, contents = Withdrawals(fresh).in_force()
    newest = {entry.document: entry for entry in entries}
    lost = [one for one in newest.values() if one.withdrawn and one.document not in ids | contents]
    with closing(Audit(fresh)) as log:
        for entry in lost:
            _withdraw(entry, fresh, log)
    return len(lost)


def _withdraw(entry: Entry, fresh: Path, log: Audit) -> None:
    """Append ``entry`` to the ledger of ``fresh`` as its own user's, planned and noted in the log as any withdrawal."""
    ledger = Withdrawals(fresh)
    document = Document(
        id=entry.document, collection="", key="", title=entry.title, language="", source="", file_sha256="",
        content=entry.content, media_type="",
    )  # fmt: skip

    def plan(anchor: Anchor) -> None:
        log.append("withdraw", entry.document, f"{PLANNED}{anchor}")

    ledger.append(document, True, entry.reason, entry.actor, plan, entry.sketch)
    log.append("withdraw", entry.document, f"in force{ledger.anchor()}")


def _exchange(data: Path, fresh: Path) -> str:
    """Put ``fresh`` in the place of ``data``; return where the old one lies ("": there was none)."""
    beside = ""
    if data.exists() and any(data.iterdir()):
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        beside = str(data.with_name(f"{data.name}.before-{moment}"))
        data.rename(beside)
    elif data.exists():
        data.rmdir()
    fresh.rename(data)
    files.sync(data.parent)
    return beside
