"""``localmed doctor``: checks of everything that needs no loaded model, one line each.

Each check is a function from the site to lines. A check that fails becomes a line itself, so that it hides no others.
Works without a library and changes nothing. No line contains a question, a record or document text.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from localmed import config
from localmed.config import NONE, PROFILES, Settings, built_in, chosen_models
from localmed.domain import Message, Parameter, Status, message
from localmed.domain.errors import Damaged, LocalmedError, ModelError, NoLibrary
from localmed.ingest.ocr import child as ocr
from localmed.library import generations, layout
from localmed.library.access import groups_of
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.holding import Holding
from localmed.library.in_force import in_force
from localmed.library.state import FILE, quarantined, rows, selected
from localmed.messages import known, parts
from localmed.people import accounts, directory
from localmed.people.noted_accounts import require_noted
from localmed.process import children, files
from localmed.process.environment import OFFLINE
from localmed.process.files import LEAST_FREE
from localmed.site import stops
from localmed.site.audit import Audit
from localmed.upkeep import backup, check
from localmed.upkeep.fit import Machine, Place, fits, inspect_machine, size

if TYPE_CHECKING:
    from localmed.domain.ports import EncoderIdentity
    from localmed.models.host.protocol import Status as HostStatus
    from localmed.models.registry.registry import Registry
    from localmed.site.site import Site as Opened


PROBLEMS_EXIT_CODE = 5  # of ``localmed doctor`` if there is a problem
LEAST_MEMORY = 4 * 2**30  # bytes; the starter takes 1 GiB, an import with its children 2 GiB more
PYTHON = ((3, 11), (3, 13))  # the first that works, the first that does not; as in pyproject.toml
RELEASED = "2026-11-01"  # a right clock is not before this
BACKUP_DAYS = 2  # after which a backup is late: a night and a day
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_PINNED = re.compile(r"([\w.-]+)==([\w.+!-]+)(\s*;.*extra.*)?")


class Level(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTICE = "notice"  # no fault, but a task left to do
    WARNING = "warning"  # works, but somebody should know
    PROBLEM = "problem"  # does not work, or is not safe, until somebody acts


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was checked, the result, and what to do about it."""

    name: str
    level: Level
    messages: tuple[Message, ...]  # the result, then what to do

    @property
    def title(self) -> Message:
        """What was checked, as a message."""
        code = f"doctor.name_{self.name.replace(' ', '_')}"
        return message(code) if known(code) else message("literal", text=self.name)


@dataclass(frozen=True, slots=True)
class Site:
    """The checks' input. ``full`` reads every byte of generations and models; ``now`` has a time zone.

    ``progress`` is called for each piece of a model that was read; ``host`` returns the model host's status,
    ``encoder`` the encoder in use.
    """

    settings: Settings
    registry: Registry
    machine: Machine
    environment: Mapping[str, str]
    now: datetime
    full: bool = False
    progress: Callable[[float, str], object] = lambda *_: None
    host: Callable[[], HostStatus | None] = lambda: None
    encoder: Callable[[], EncoderIdentity | None] = lambda: None

    @classmethod
    def of(cls, site: Opened, full: bool = False, progress: Callable[[float, str], object] = lambda *_: None) -> Site:
        """Return this machine and the data folder of ``site``, now."""
        now, environment = datetime.now().astimezone(), dict(os.environ)
        return cls(site.settings, site.registry, inspect_machine(), environment, now, full, progress, site.host_status,
                   lambda: site.encoder.identity)  # fmt: skip


def make_check(level: Level, name: str, code: str, /, **parameters: Parameter) -> Check:
    """Return the line ``name`` with the text of ``code``; one that is ok has no remedy."""
    said = parts(message(code, **parameters))
    return Check(name, level, said[:1] if level is Level.OK else said)


ok, notice = partial(make_check, Level.OK), partial(make_check, Level.NOTICE)
warning, problem = partial(make_check, Level.WARNING), partial(make_check, Level.PROBLEM)


def failed_check(name: str, error: LocalmedError) -> Check:
    """Return the line of a check that failed with ``error``."""
    return Check(name, Level.PROBLEM, error.messages)


# --- the checks -------------------------------------------------------------------------------------------------------


def memory(site: Site) -> Iterator[Check]:
    """Memory for everything but a language model."""
    machine, least = site.machine, size(LEAST_MEMORY)
    level = warning if machine.memory < LEAST_MEMORY else ok
    memory, free = size(machine.memory), size(machine.available)
    yield level("memory", "doctor.memory", memory=memory, free=free, processors=machine.processors, least=least)


def gpu(site: Site) -> Iterator[Check]:
    """GPU, driver and memory."""
    for card in site.machine.gpus:
        memory, free = size(card.memory), size(card.free)
        yield ok("gpu", "doctor.gpu", name=card.name, driver=card.driver, memory=memory, free=free)
    if not site.machine.gpus:
        why = site.machine.no_gpu or message("doctor.no_gpu_named")
        needless = site.settings.profile == "starter"
        yield ok("gpu", "doctor.no_gpu_needed", why=why) if needless else warning("gpu", "doctor.no_gpu", why=why)


def scans(site: Site) -> Iterator[Check]:
    """The OCR engine."""
    if site.settings.read.ocr and (engine := ocr.identity()):
        yield ok("scans", "doctor.scans", engine=engine)
    else:
        yield ok("scans", "doctor.scans_no_engine" if site.settings.read.ocr else "doctor.scans_off")


def isolation(site: Site) -> Iterator[Check]:
    """Whether processes that read files are isolated from the network and from other files."""
    isolated = children.isolation()
    make = problem if site.settings.read.isolation else warning
    if isolated.network and isolated.files:
        yield ok("isolation", "doctor.isolation_whole")
    else:
        yield make("isolation", "doctor.isolation_partly" if isolated.network else "doctor.isolation_none")


def clock(site: Site) -> Iterator[Check]:
    """The clock: dates decide which guideline is the newest and appear in the audit log."""
    released = datetime.fromisoformat(RELEASED).astimezone(site.now.tzinfo)
    if site.now < released:
        yield problem("clock", "doctor.clock_early", date=f"{site.now:%Y-%m-%d}")
    else:
        yield ok("clock", "doctor.clock", time=f"{site.now:%Y-%m-%d %H:%M %Z}")


def sign_in(site: Site) -> Iterator[Check]:
    """A complete look-up in the hospital's directory, as at each sign-in. Nothing is contacted without one."""
    directory_settings = site.settings.web.ldap
    if directory_settings.server:
        directory.examine(directory_settings)
        yield ok("sign in", "doctor.directory", server=directory_settings.server)


def python(site: Site) -> Iterator[Check]:
    """The interpreter's and every library's version."""
    del site
    version = ".".join(map(str, sys.version_info[:3]))
    tried = PYTHON[0] <= sys.version_info[:2] < PYTHON[1]
    yield (ok if tried else problem)("python", "doctor.python" if tried else "doctor.python_other", version=version)
    try:
        pinned = [match for requirement in metadata.requires("localmed") or () if (match := _PINNED.match(requirement))]
    except metadata.PackageNotFoundError:
        yield warning("libraries", "doctor.not_installed")
        return
    if wrong := tuple(filter(None, (_library_fault(*match.groups()) for match in pinned))):
        yield problem("libraries", "doctor.libraries_other", libraries=wrong)
    else:
        yield ok("libraries", "doctor.libraries", count=len(pinned))


def _library_fault(name: str, pinned: str, extra: str | None) -> Message | None:
    """Return what is wrong with the installed ``name``; an extra may be missing, suffixes like "+cpu" do not count."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None if extra else message("file.missing", file=name)
    if version.partition("+")[0] == pinned.partition("+")[0]:
        return None
    return message("doctor.library_version", name=name, version=version, pinned=pinned)


def offline(site: Site) -> Iterator[Check]:
    """Environment variables that would make a library use a network."""
    names = {name.lower(): name for name in site.environment}
    proxies = [names[name] for name in PROXIES if name in names]
    against = [name for name, value in OFFLINE.items() if site.environment.get(name, value) != value]
    if against:
        yield warning("offline", "doctor.offline_otherwise", names=tuple(against))
    if proxies:
        yield warning("offline", "doctor.proxy", names=tuple(proxies))
    if not against and not proxies:
        yield ok("offline", "doctor.offline", count=len(OFFLINE))


def _chosen(site: Site) -> dict[str, str]:
    registered = site.registry.registrations
    chosen = chosen_models(site.settings, registered.roles, registered.models)
    return {role: name for role, name in chosen.items() if not built_in(role, name)}


def other_encoder(site: Site) -> Iterator[Check]:
    """Whether the library's encoder is the one in use; otherwise no question is answered."""
    built_with, serving = generations.encoder(site.settings.data), None
    with suppress(ModelError):  # ``models_chosen`` reports a missing model
        serving = site.encoder()
    if built_with and serving and built_with not in (serving.stored_as, serving.slug):
        yield problem("models", "library.encoder", built_with=built_with, encoder=serving.stored_as)


def settings_gone(site: Site) -> Iterator[Check]:
    """Settings of earlier versions that have no effect any more."""
    if names := config.obsolete_names(site.settings):
        yield warning("settings", "doctor.settings_gone", names=names, file=str(config.file_of(site.settings.data)))


def models_chosen(site: Site) -> Iterator[Check]:
    """Whether every chosen model is registered."""
    known, chosen = site.registry.registrations.models, _chosen(site)
    for role, name in chosen.items():
        if name not in known:
            there = (site.registry.folder / name).is_dir()
            code = "doctor.model_unregistered" if there else "doctor.model_missing"
            where = str(site.registry.folder / name) if there else "FOLDER"
            yield problem("models", code, name=name, role=role, folder=where)
        else:
            yield ok("models", "models.serves", name=name, role=role)
    if server := site.settings.chat.server:
        yield _server(site)
    if not chosen and not server:
        yield ok("models", "doctor.starter")
        return
    judge = PROFILES[site.settings.profile].get("entailment", NONE)
    chosen_judge = "entailment" in site.registry.registrations.roles
    if not chosen_judge and judge not in known and not built_in("entailment", judge):
        yield warning("models", "doctor.starter_judges", judge=judge)
    if "chat" not in chosen and not server:
        yield warning("models", "doctor.no_chat")
    yield from _self_test(site)


def _self_test(site: Site) -> Iterator[Check]:
    from localmed.answering import self_test

    chat, chosen = site.settings.chat, _chosen(site)
    name = f"{chat.server_model} at {chat.server}" if chat.server else chosen.get("chat", "")
    result = site.registry.self_test(name) if name else None
    if name and result is None:
        yield warning("models", "doctor.untested", name=name)
    if result and (left := sorted(result.unfit & {"write", "check"})):
        yield warning("models", "doctor.chat_unfit", name=name, roles=tuple(left))
    if result and (roles := result.outdated(self_test.questions())):
        yield warning("models", "doctor.test_outdated", name=name, roles=tuple(sorted(roles)))


def _server(site: Site) -> Check:
    """The configured chat server, which takes precedence over a registered model; it is not contacted."""
    chat = site.settings.chat
    for server in (chat.server, *chat.replicas):
        if server not in chat.servers:
            return problem("models", "settings.server_unlisted", server=server)
    if not chat.server_model:
        return problem("models", "settings.server_model")
    return ok("models", "doctor.server", server=chat.server)


def models_whole(site: Site) -> Iterator[Check]:
    """Whether every registered file is unaltered."""
    names = list(site.registry.registrations.models)
    faults = [(name, fault) for name in names for fault in site.registry.problems(name, site.full, site.progress)]
    for name, fault in faults:
        yield problem("model files", "doctor.model_file", name=name, fault=fault)
    if not faults and names:
        yield ok("model files", "doctor.model_files_hashed" if site.full else "doctor.model_files", count=len(names))
    if strangers := site.registry.strangers():
        folder = str(site.registry.folder / strangers[0])
        yield warning("model files", "doctor.strange_folders", count=len(strangers), name=strangers[0], folder=folder)


def models_fit(site: Site) -> Iterator[Check]:
    """Whether every chosen model fits this machine."""
    chosen = set(_chosen(site).values())
    for one in (one for one in fits(site.registry.candidates(), site.machine) if one.name in chosen):
        if one.best is Place.NOWHERE:
            yield problem("model fit", "doctor.too_large", name=one.name, needed=size(one.needs[0].bytes))
        elif one.best is Place.CPU and site.machine.gpus:
            yield warning("model fit", "doctor.slow", name=one.name)
        else:
            yield ok("model fit", "doctor.fits", name=one.name, place=message(f"models.place_{one.best}"))


def model_host(site: Site) -> Iterator[Check]:
    """Whether a model host is running and usable."""
    host = site.host()
    if host is None:
        yield ok("model host", "doctor.no_host")
    elif host.others and site.settings.host.use:
        yield warning("model host", "doctor.host_other", process=host.process, roles=tuple(host.others))
    else:
        code = "doctor.host" if site.settings.host.use else "doctor.host_unused"
        yield ok("model host", code, process=host.process, memory=size(host.memory))


NAMED = 20  # faults that are listed; the rest is counted
COMFORTABLE = 2 * 2**30  # bytes free; an import stores originals and vectors besides the generation
AHEAD = timedelta(minutes=10)  # by which the clock may be behind the log


def rights(site: Site) -> Iterator[Check]:
    """Whether only the account that runs localmed can read the data folder."""
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
        paths = [data / place.name for place in layout.PLACES if place.kind is layout.Kind.SECRET]
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths if path.exists()}
        readable = {path: mode for path, mode in modes.items() if mode & 0o077}
        for path, mode in readable.items():
            yield problem("rights", "doctor.open_secret", file=str(path), mode=f"{mode:o}")
        if not readable:
            yield ok("rights", "doctor.private_folder", folder=str(data))


def data_folder(site: Site) -> Iterator[Check]:
    """Unknown files in the data folder, and folders that an interrupted restore left beside it."""
    from localmed.upkeep.restore import interrupted_folders

    if left := interrupted_folders(site.settings.data):
        names = tuple(path.name for path in left)
        yield warning("data folder", "doctor.restore_cut_off", folder=str(site.settings.data.parent), names=names)
    if unknown := layout.unknown(site.settings.data):
        folder, names = str(site.settings.data), tuple(path.name for path in unknown[:NAMED])
        yield warning("data folder", "doctor.unknown_names", folder=folder, count=len(unknown), names=names)


def space(site: Site) -> Iterator[Check]:
    """Disk space for the next import and for a rebuild of the served generation."""
    existing = next(path for path in (site.settings.data, *site.settings.data.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, 0
    with suppress(NoLibrary, Damaged):  # ``library`` reports it
        needed = sum(file.bytes for file in generations.served_manifest(site.settings.data).files.values())
    figures = {"free": size(free), "needed": size(needed), "comfortable": size(COMFORTABLE + needed)}
    if free < LEAST_FREE + needed // 10:
        yield problem("disk", "doctor.disk_full", **figures)
    elif free < COMFORTABLE + needed:
        yield warning("disk", "doctor.disk_low", **figures)
    else:
        yield ok("disk", "doctor.disk", **figures)


def library(site: Site) -> Iterator[Check]:
    """Whether the served generation is intact; with ``full`` every byte of all generations."""
    data = site.settings.data
    try:
        served = generations.served_number(data)
    except NoLibrary:
        yield ok("library", "doctor.no_library")
        return
    faults, name = check.all_generation_faults(data, site.full), f"{served:04d}"
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
        faults = check.faults_beside(site.settings.data)
        for fault in faults[:NAMED]:
            yield failed_check("beside", fault)
        if len(faults) > NAMED:
            yield problem("beside", "stored.more", count=len(faults) - NAMED)
        if not faults:
            yield ok("beside", "stored.whole")


def whole_check(site: Site) -> Iterator[Check]:
    """When everything stored was last read; with ``full`` that happens now."""
    data = site.settings.data
    if site.full or not (data / layout.CURRENT).exists():
        return
    last = check.last_whole_check(data)
    since = datetime.fromisoformat(last.time if last else _first_change(data))
    late = site.now - since > timedelta(check.WHOLE_CHECK_DAYS)
    time = _moment(since, site)
    known: dict[str, Parameter] = {"time": time, "days": check.WHOLE_CHECK_DAYS}
    if last and last.faults:
        yield warning("whole check", "doctor.whole_check_faults", count=last.faults, **known)
    elif late:
        yield warning("whole check", "doctor.whole_check_late", **known)
    elif last:
        yield ok("whole check", "doctor.whole_check", **known)
    else:
        yield notice("whole check", "doctor.whole_check_none", **known)


def backups(site: Site) -> Iterator[Check]:
    """When the last backup was made, even if its disk is not connected."""
    data = site.settings.data
    query = """
    SELECT json_extract(entry, '$.time') FROM journal
    WHERE json_extract(entry, '$.action') = 'backup' AND json_extract(entry, '$.outcome') = 'written'
    ORDER BY id DESC LIMIT 1
    """
    if not (data / FILE).exists():
        return
    last = [datetime.fromisoformat(time) for (time,) in selected(data, query)]
    made = _moment(last[0], site) if last else message("doctor.never")
    if not site.settings.backup.folder:
        yield warning("backup", "doctor.backup_none_set", time=made)
    elif not last or backup.is_empty(site.settings):
        yield warning("backup", "doctor.backup_none", folder=site.settings.backup.folder)
    elif site.now - last[0] > timedelta(days=BACKUP_DAYS):
        yield warning("backup", "doctor.backup_late", time=made, folder=site.settings.backup.folder)
    else:
        beside = _on_one_disk(Path(site.settings.backup.folder), data)
        told, level = ("doctor.backup_beside", notice) if beside else ("doctor.backup", ok)
        yield level("backup", told, time=made, folder=site.settings.backup.folder)


def _moment(time: datetime, site: Site) -> str:
    return f"{time.astimezone(site.now.tzinfo):%Y-%m-%d %H:%M}"


def _on_one_disk(one: Path, other: Path) -> bool:
    with suppress(OSError):  # a disk that is not connected
        return one.stat().st_dev == other.stat().st_dev
    return False


def _first_change(data: Path) -> str:
    if (data / FILE).exists():
        with suppress(LocalmedError, IndexError), Audit(data) as log:
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
    """Files that imports refused."""
    refused = 0
    if (site.settings.data / FILE).exists():
        with rows(site.settings.data) as state:
            refused = len({(entry.collection, entry.path) for entry in quarantined(state)})
    yield (
        warning("quarantine", "doctor.quarantine", count=refused)
        if refused
        else ok("quarantine", "doctor.quarantine_empty")
    )


def state(site: Site) -> Iterator[Check]:
    """Whether the state in force is readable and the accounts match the journal."""
    now = in_force(site.settings.data)
    accounts.require_accounts(site.settings.data)
    require_noted(site.settings.data)
    counts = {
        "withdrawals": sum(one.withdrawn for one in now.newest().values()),
        "access": len(now.access),
        "stops": len(now.stops),
    }
    yield ok("state", "doctor.state", **counts)


def governance(site: Site) -> Iterator[Check]:
    """Documents for the librarian to look at: overdue for review, waiting for their day, without owner or date.

    The machine is sound all the same: a notice, never a warning.
    """
    day = site.now.date().isoformat()
    try:
        with generations.lease(site.settings.data) as served, closing(Catalogue(served / CATALOGUE)) as catalogue:
            unowned, undated = catalogue.lacking()
            holding = Holding(site.settings.data, catalogue, day)
            past = [it for it in catalogue.overdue(day) if holding.statuses().get(it) is not Status.SUPERSEDED]
            overdue, waiting = len([*filter(holding.overdue, past)]), len(catalogue.pending(day))
    except NoLibrary:
        return
    level = notice if overdue or unowned or undated else ok
    counts = {"overdue": overdue, "waiting": waiting, "unowned": unowned, "undated": undated}
    yield level("governance", "doctor.governance", **counts)


def audit(site: Site) -> Iterator[Check]:
    """Whether the log's chain is intact, and the clock is not behind its newest entry."""
    if not (site.settings.data / FILE).exists():
        yield ok("audit", "doctor.audit_empty")
        return
    with Audit(site.settings.data) as log:
        faults = log.verify()
        entries, begun = ([], []) if faults else (log.entries(), log.unfinished())
        anew, cut = log.began_anew(), log.cut_off()
    if faults:
        yield problem("audit", "doctor.audit_broken", fault=faults[0], count=len(faults))
        return
    yield ok("audit", "doctor.audit", count=len(entries))
    if anew:
        told = {name: _moment(datetime.fromisoformat(str(time)), site) for name, time in anew.parameters}
        yield warning("audit", anew.code, **told)
    elif cut:
        yield problem("audit", cut.code)
    for entry in begun:
        since = _moment(datetime.fromisoformat(entry.time), site)
        yield warning("audit", "doctor.audit_unfinished", action=entry.action, subject=entry.subject, time=since)
    newest = max((datetime.fromisoformat(entry.time) for entry in entries), default=datetime.min.replace(tzinfo=UTC))
    if newest > site.now + AHEAD:
        yield problem("clock", "doctor.clock_behind_log", time=_moment(newest, site))


CHECKS: tuple[Callable[[Site], Iterator[Check]], ...] = (
    python, offline, settings_gone, memory, gpu, scans, isolation, clock, sign_in, models_chosen, other_encoder,
    models_whole, models_fit, model_host, rights, data_folder, space, library, beside, whole_check, backups, writer,
    audit, state, quarantine, governance,
)  # fmt: skip
OF_EVERY_COLLECTION = (space, audit, state, quarantine, governance)  # their counts include hidden collections


def checks_for(settings: Settings) -> tuple[Callable[[Site], Iterator[Check]], ...]:
    """Return the checks that the caller may see."""
    whole = groups_of(settings.reader.groups, settings.data) is None
    return tuple(check for check in CHECKS if whole or check not in OF_EVERY_COLLECTION)


def examine(site: Site, checks: Iterable[Callable[[Site], Iterator[Check]]] = CHECKS) -> Iterator[Check]:
    """Yield the lines of all ``checks`` in order."""
    for one in checks:
        try:
            yield from one(site)
        except LocalmedError as error:
            yield failed_check(one.__name__.replace("_", " "), error)
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            yield problem(one.__name__.replace("_", " "), "doctor.unseen", kind=type(error).__name__)


def faults_stored(checks: Iterable[Check]) -> int:
    """Count the lines that report damage of stored data."""
    return sum(check.name in ("library", "beside") and check.level is not Level.OK for check in checks)


def worst(checks: Iterable[Check]) -> Level:
    """Return PROBLEM or WARNING, whichever is the worst among ``checks``, else OK; a notice counts as OK."""
    levels = {check.level for check in checks}
    return next((level for level in (Level.PROBLEM, Level.WARNING) if level in levels), Level.OK)


# --- readiness codes for monitoring, without personal data ------------------------------------------------------------


def not_ready(site: Opened) -> Iterator[str]:
    """Yield a code if the pages cannot work: ``state`` (accounts, logins, the journal)."""
    try:
        with rows(site.data) as state:
            state.execute("BEGIN IMMEDIATE")
            state.execute("ROLLBACK")
    except (LocalmedError, OSError, sqlite3.Error):
        yield "state"


def not_answering(site: Opened) -> Iterator[str]:
    """Yield codes of what prevents answers: ``library``, ``models`` (the model host does not respond), ``stopped``."""
    try:
        with site.workspace():
            pass
    except (LocalmedError, OSError):
        yield "library"
    try:
        site.host_status()
    except (LocalmedError, OSError):
        yield "models"
    if "ask" in stops.stopped(site.data, stops.WORKFLOW):
        yield "stopped"
