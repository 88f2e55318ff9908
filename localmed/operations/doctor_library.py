"""The doctor's look at the data folder: rights, space, generations, ledger, audit, quarantine. Changes nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localmed.errors import Damaged, NoLibrary
from localmed.library import generations
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.space import LEAST_FREE
from localmed.library.state import State
from localmed.library.withdrawals import Withdrawals
from localmed.operations.audit import Audit
from localmed.operations.check import Check, Site, ok, problem, size, warning

COMFORTABLE = 2 * 2**30  # bytes free; an import keeps originals and vectors besides the generation that it builds
AHEAD = timedelta(minutes=10)  # a clock that was set back by less does no harm to the order of the log


def rights(site: Site) -> Iterator[Check]:
    """Nobody but the account that runs localmed reads the data folder."""
    data = site.settings.data
    if not data.exists():
        yield ok("rights", f"{data} is not there yet")
        return
    found = data.stat()
    if found.st_uid != os.geteuid():
        yield problem("rights", f"{data} belongs to another account", "Run as that account, or: sudo chown -R")
    elif found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        yield problem("rights", f"other accounts may read {data} (mode {mode:o})", f"chmod 700 {data}")
    else:
        yield ok("rights", f"{data} is private (mode 700)")


def space(site: Site) -> Iterator[Check]:
    """Room for the next import, and for a rebuild of everything that is served."""
    existing = next(path for path in (site.settings.data, *site.settings.data.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, _generation_bytes(site.settings.data)
    says = f"{size(free)} free; a whole new generation would take {size(needed)}"
    if free < LEAST_FREE + needed // 10:
        yield problem("disk", says, "Free some space: imports fail now, questions do not")
    elif free < COMFORTABLE + needed:
        yield warning("disk", says, f"Free some space: {size(COMFORTABLE + needed)} is comfortable")
    else:
        yield ok("disk", says)


def _generation_bytes(data: Path) -> int:
    try:
        return sum(each.bytes for each in generations.read_manifest(generations.current(data)).files.values())
    except (NoLibrary, Damaged):  # told by ``library``
        return 0


def library(site: Site) -> Iterator[Check]:
    """The generation that is served has all its files, and with ``full`` the kept ones have every byte."""
    data = site.settings.data
    try:
        served = generations.current(data)
    except NoLibrary:
        yield ok("library", "nothing has been imported yet")
        return
    kept = [generations.path_of(data, number) for number in generations.numbers(data)]
    faults = {path: _faults(path, site.full) for path in dict.fromkeys((served, *kept))}
    if faults[served]:
        yield problem("library", f"generation {served.name} is damaged: {faults[served][0]}", generations.REPAIR)
    others = [path.name for path, found in faults.items() if found and path != served]
    if others:
        says = f"generation {', '.join(others)}, which is kept for going back, is damaged"
        yield warning("library", says, "Import again: older generations are replaced in time")
    if not any(faults.values()):
        how = "every byte hashed" if site.full else "sizes; --full hashes them"
        yield ok("library", f"generation {served.name} is served, {len(kept)} kept, whole ({how})")


def _faults(generation: Path, whole: bool) -> list[str]:
    try:
        return generations.check(generation, whole)
    except Damaged as error:
        return [error.what]


def writer(site: Site) -> Iterator[Check]:
    """Whether somebody is changing the library."""
    path = site.settings.data / "writer.lock"
    if path.exists():
        with path.open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = stream.read(60).strip() or "unknown"
                yield warning("writer", f"{holder} is changing the library now", "Nothing, unless it hangs")
                return
    yield ok("writer", "nobody is changing the library")


def quarantine(site: Site) -> Iterator[Check]:
    """Files that imports have refused."""
    refused = 0
    if (site.settings.data / "state.sqlite").exists():
        with State(site.settings.data) as state:
            refused = len({(each.collection, each.path) for each in state.quarantined()})
    if refused:
        yield warning("quarantine", f"{refused} files were refused", "See the reasons in the import's report")
    else:
        yield ok("quarantine", "empty")


def governance(site: Site) -> Iterator[Check]:
    """Documents that somebody should look at: overdue for review, waiting for their day, without an owner."""
    try:
        served = generations.current(site.settings.data)
    except NoLibrary:
        return
    day = site.now.date().isoformat()
    with closing(Catalogue(served / CATALOGUE)) as catalogue:
        documents, owned = catalogue.owned()
        overdue, waiting = len(catalogue.overdue(day)), len(catalogue.pending(day))
    says = f"{overdue} documents overdue for review, {waiting} not yet effective, {documents - owned} without an owner"
    if overdue:
        yield warning("governance", says, "List them: localmed documents due")
    else:
        yield ok("governance", says)


def withdrawals(site: Site) -> Iterator[Check]:
    """The ledger can be read: without it nothing is answered."""
    yield ok("withdrawals", f"{len(Withdrawals(site.settings.data).entries)} entries, all readable")


def audit(site: Site) -> Iterator[Check]:
    """The log's chain is whole, and the clock has not gone back behind it."""
    if not (site.settings.data / "audit.sqlite").exists():
        yield ok("audit", "nothing has been noted yet")
        return
    with closing(Audit(site.settings.data)) as log:
        faults = log.verify()
        entries = [] if faults else log.entries()
    if faults:
        says = f"{faults[0]} ({len(faults)} faults)" if len(faults) > 1 else faults[0]
        yield problem("audit", says, "Keep the file as it is, and compare it with a backup")
        return
    yield ok("audit", f"{len(entries)} entries, the chain is whole")
    newest = max((datetime.fromisoformat(each.time) for each in entries), default=datetime.min.replace(tzinfo=UTC))
    if newest > site.now + AHEAD:
        yield problem("clock", f"the audit log goes on to {newest:%Y-%m-%d %H:%M}, later than now", "Set the clock")
