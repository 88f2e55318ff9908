"""The doctor's look at the data folder: rights, space, generations, ledger, audit, quarantine. Changes nothing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localmed import files
from localmed.domain import Parameter
from localmed.errors import Damaged, LocalmedError, NoLibrary
from localmed.files import LEAST_FREE
from localmed.library import generations, layout
from localmed.library.access import Access
from localmed.library.anchors import AUDIT_FILE, anchors
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.state import FILE, State
from localmed.library.withdrawals import Withdrawals
from localmed.operations import accounts, stops, stored
from localmed.operations.audit import BEGAN_ANEW, Audit, missing
from localmed.operations.check import Check, Site, failed, ok, problem, size, warning
from localmed.operations.noted_accounts import require_noted

NAMED = 20  # faults; the rest is counted
COMFORTABLE = 2 * 2**30  # bytes free; an import keeps originals and vectors besides the generation that it builds
AHEAD = timedelta(minutes=10)  # a clock that was set back by less does no harm to the order of the log


def rights(site: Site) -> Iterator[Check]:
    """Nobody but the account that runs localmed reads the data folder."""
    data = site.settings.data
    if not data.exists():
        yield ok("rights", "doctor.no_folder", folder=str(data))
        return
    status = data.stat()
    if status.st_uid != os.geteuid():
        yield problem("rights", "doctor.foreign_folder", folder=str(data))
    elif status.st_mode & 0o077:
        yield problem("rights", "doctor.open_folder", folder=str(data), mode=f"{stat.S_IMODE(status.st_mode):o}")
    else:
        yield from _secrets(data) or [ok("rights", "doctor.private_folder", folder=str(data))]


def _secrets(data: Path) -> list[Check]:
    """The keys that others may read."""
    paths = [data / place.name for place in layout.PLACES if place.kind is layout.Kind.SECRET]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths if path.exists()}
    return [
        problem("rights", "doctor.open_secret", file=str(path), mode=f"{mode:o}")
        for path, mode in modes.items()
        if mode & 0o077
    ]


def data_folder(site: Site) -> Iterator[Check]:
    """What lies in the data folder and nobody of ours has written."""
    if unknown := layout.unknown(site.settings.data):
        folder, names = str(site.settings.data), tuple(path.name for path in unknown[:NAMED])
        yield warning("data folder", "doctor.unknown_names", folder=folder, count=len(unknown), names=names)


def space(site: Site) -> Iterator[Check]:
    """Room for the next import, and for a rebuild of everything that is served."""
    existing = next(path for path in (site.settings.data, *site.settings.data.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, _generation_bytes(site.settings.data)
    figures = {"free": size(free), "needed": size(needed), "comfortable": size(COMFORTABLE + needed)}
    if free < LEAST_FREE + needed // 10:
        yield problem("disk", "doctor.disk_full", **figures)
    elif free < COMFORTABLE + needed:
        yield warning("disk", "doctor.disk_low", **figures)
    else:
        yield ok("disk", "doctor.disk", **figures)


def _generation_bytes(data: Path) -> int:
    try:
        return sum(file.bytes for file in generations.served_manifest(data).files.values())
    except (NoLibrary, Damaged):  # told by ``library``
        return 0


def library(site: Site) -> Iterator[Check]:
    """The generation that is served has all its files, and with ``full`` the kept ones have every byte."""
    data = site.settings.data
    try:
        served = generations.served_number(data)
    except NoLibrary:
        yield ok("library", "doctor.no_library")
        return
    faults, name = stored.of_generations(data, site.full), f"{served:04d}"
    if served not in faults:
        yield problem("library", "generation.incomplete", name=name)
        return
    if of_served := faults[served]:
        yield problem("library", "generation.damaged", name=name, problem=of_served[0])
    others = [f"{number:04d}" for number, problems in faults.items() if problems and number != served]
    if others:
        yield warning("library", "doctor.kept_damaged", names=tuple(others))
    if not any(faults.values()):
        code = "doctor.library_hashed" if site.full else "doctor.library"
        yield ok("library", code, name=name, kept=len(faults))


def beside(site: Site) -> Iterator[Check]:
    """With ``full``: everything stored beside the generations, read whole."""
    if site.full and site.settings.data.exists():
        faults = stored.beside(site.settings.data)
        for fault in faults[:NAMED]:
            yield failed("beside", fault)
        if len(faults) > NAMED:
            yield problem("beside", "stored.more", count=len(faults) - NAMED)
        if not faults:
            yield ok("beside", "stored.whole")


def whole_check(site: Site) -> Iterator[Check]:
    """When everything stored was read last; ``full`` does that now."""
    data = site.settings.data
    if site.full or not (data / layout.CURRENT).exists():
        return
    last = stored.last_whole_check(data)
    since = datetime.fromisoformat(last.time if last else _begun(data))
    late = site.now - since > timedelta(stored.WHOLE_CHECK_DAYS)
    known: dict[str, Parameter] = {
        "time": f"{since.astimezone(site.now.tzinfo):%Y-%m-%d %H:%M}",
        "days": stored.WHOLE_CHECK_DAYS,
    }
    if last and last.faults:
        yield warning("whole check", "doctor.whole_check_faults", count=last.faults, **known)
    elif late:
        yield warning("whole check", "doctor.whole_check_late" if last else "doctor.whole_check_never", **known)
    else:
        yield ok("whole check", "doctor.whole_check" if last else "doctor.whole_check_none", **known)


def _begun(data: Path) -> str:
    """When the first change of the library was noted; long ago where that is not known."""
    if (data / AUDIT_FILE).exists():
        with suppress(LocalmedError, IndexError), closing(Audit(data)) as log:
            return log.entries()[0].time
    return "2000-01-01T00:00:00+00:00"


def writer(site: Site) -> Iterator[Check]:
    """Whether somebody is changing the library."""
    path = site.settings.data / layout.WRITER_LOCK
    if path.exists():
        with path.open() as stream:
            if not files.lock(stream, shared=True):
                holder = stream.read(60).strip() or "unknown"
                yield warning("writer", "doctor.writer_busy", holder=holder)
                return
    yield ok("writer", "doctor.writer_free")


def quarantine(site: Site) -> Iterator[Check]:
    """Files that imports have refused."""
    refused = 0
    if (site.settings.data / FILE).exists():
        with State(site.settings.data) as state:
            refused = len({(entry.collection, entry.path) for entry in state.quarantined()})
    if refused:
        yield warning("quarantine", "doctor.quarantine", count=refused)
    else:
        yield ok("quarantine", "doctor.quarantine_empty")


def state(site: Site) -> Iterator[Check]:
    """``state.sqlite`` is there, what is stopped and the accounts are what the audit log knows."""
    listed = stops.stops(site.settings.data)
    accounts.require_accounts(site.settings.data)
    require_noted(site.settings.data)
    yield ok("state", "doctor.state", count=len(listed))


def governance(site: Site) -> Iterator[Check]:
    """Documents that somebody should look at: overdue for review, waiting for their day, without an owner."""
    day = site.now.date().isoformat()
    try:
        with generations.lease(site.settings.data) as served, closing(Catalogue(served / CATALOGUE)) as catalogue:
            documents, owned = catalogue.owned()
            overdue, waiting = len(catalogue.overdue(day)), len(catalogue.pending(day))
    except NoLibrary:
        return
    level = warning if overdue else ok
    yield level("governance", "doctor.governance", overdue=overdue, waiting=waiting, unowned=documents - owned)


def withdrawals(site: Site) -> Iterator[Check]:
    """The ledger can be read: without it nothing is answered."""
    entries = Withdrawals(site.settings.data).entries
    yield ok("withdrawals", "doctor.withdrawals", count=len(entries))
    if entries and not anchors(site.settings.data, "ledger"):
        yield warning("withdrawals", "doctor.unanchored", file="withdrawals")


def access(site: Site) -> Iterator[Check]:
    """The access file is as it was written, and as the audit log knows it."""
    restricted = Access(site.settings.data).all()
    yield ok("access", "doctor.access", count=len(restricted))
    if restricted and not anchors(site.settings.data, "access"):
        yield warning("access", "doctor.unanchored", file="access.json")


def audit(site: Site) -> Iterator[Check]:
    """The log's chain is whole, and the clock has not gone back behind it."""
    if missing(site.settings.data):
        yield problem("audit", "doctor.audit_missing")
        return
    if not (site.settings.data / AUDIT_FILE).exists():
        yield ok("audit", "doctor.audit_empty")
        return
    with closing(Audit(site.settings.data)) as log:
        faults = log.verify()
        entries, begun = ([], []) if faults else (log.entries(), log.unfinished())
        lost = log.lost()
    if faults:
        yield problem("audit", "doctor.audit_broken", fault=faults[0], count=len(faults))
        return
    yield ok("audit", "doctor.audit", count=len(entries))
    if lost:
        level = warning if lost.code == BEGAN_ANEW else problem
        yield level("audit", lost.code, **dict(lost.parameters))
    for entry in begun:
        yield warning("audit", "doctor.audit_unfinished", action=entry.action, subject=entry.subject, time=entry.time)
    newest = max((datetime.fromisoformat(entry.time) for entry in entries), default=datetime.min.replace(tzinfo=UTC))
    if newest > site.now + AHEAD:
        yield problem("clock", "doctor.clock_behind_log", time=f"{newest:%Y-%m-%d %H:%M}")
