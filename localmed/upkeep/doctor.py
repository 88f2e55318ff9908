"""``localmed doctor``: everything that can be looked at without loading a model, one line each.

Each check is a function from the site to lines; one that fails becomes a line itself, so that a broken part never
hides the others. Works without a library. Nothing is changed, and no line holds a question, a record or document text.
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
from localmed.domain import Message, Parameter, message
from localmed.domain.errors import Damaged, LocalmedError, ModelError, NoLibrary
from localmed.ingest.ocr import child as ocr
from localmed.library import generations, layout
from localmed.library.access import groups_of
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.holding import Holding
from localmed.library.in_force import in_force
from localmed.library.state import FILE, quarantined, rows, selected
from localmed.messages import known, parts, render
from localmed.people import accounts, directory
from localmed.people.noted_accounts import require_noted
from localmed.process import children, files
from localmed.process.environment import OFFLINE
from localmed.process.files import LEAST_FREE
from localmed.site import stops
from localmed.site.audit import Audit
from localmed.upkeep import check
from localmed.upkeep.fit import Machine, Place, fits, look, size

if TYPE_CHECKING:
    from localmed.domain.ports import EncoderIdentity
    from localmed.models.host.protocol import Status as HostStatus
    from localmed.models.registry.registry import Registry
    from localmed.site.site import Site as Opened


PROBLEMS_EXIT_CODE = 5  # of ``localmed doctor`` if there is a problem: something stored or installed cannot be used
LEAST_MEMORY = 4 * 2**30  # bytes; the starter takes one, an import with its children two more
PYTHON = ((3, 11), (3, 13))  # from, up to but without; as in pyproject.toml
RELEASED = "2026-11-01"  # no clock that is right is before this
BACKUP_DAYS = 2  # after which a backup is late: a night and a day
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_PINNED = re.compile(r"([\w.-]+)==([\w.+!-]+)(\s*;.*extra.*)?")


class Level(StrEnum):
    """How a check ended."""

    OK = "ok"
    NOTICE = "notice"  # no fault: something is still to be done
    WARNING = "warning"  # it works, and somebody should know
    PROBLEM = "problem"  # it does not work, or is not safe, until somebody acts


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, how it is, and what to do about it."""

    name: str
    level: Level
    messages: tuple[Message, ...]  # how it is; then what to do, if anything

    @property
    def title(self) -> Message:
        """What was looked at, in words."""
        code = f"doctor.name_{self.name.replace(' ', '_')}"
        return message(code) if known(code) else message("literal", text=self.name)

    @property
    def says(self) -> str:
        """How it is, in English, for developers."""
        return render(self.messages[0], "en")

    @property
    def remedy(self) -> str:
        """What to do, in English, for developers; "" where there is nothing to do."""
        return "".join(render(part, "en") for part in self.messages[1:])


@dataclass(frozen=True, slots=True)
class Site:
    """What the checks look at. ``full`` reads every byte of generations and models; ``now`` has a time zone.

    ``progress`` is told of each piece of a model that was read, ``host`` asks the model host how it is. ``encoder``
    tells which one serves.
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
        """This machine and the data folder of ``site``, now."""
        now, environment = datetime.now().astimezone(), dict(os.environ)
        return cls(site.settings, site.registry, look(), environment, now, full, progress, site.host_status,
                   lambda: site.encoder.identity)  # fmt: skip


def at(level: Level, name: str, code: str, /, **parameters: Parameter) -> Check:
    """The line called ``name`` in the words of ``code``; one that is ok says nothing of what to do."""
    said = parts(message(code, **parameters))
    return Check(name, level, said[:1] if level is Level.OK else said)


ok, notice = partial(at, Level.OK), partial(at, Level.NOTICE)
warning, problem = partial(at, Level.WARNING), partial(at, Level.PROBLEM)


def failed(name: str, error: LocalmedError) -> Check:
    """A check that ended with ``error``."""
    return Check(name, Level.PROBLEM, error.messages)


# --- the checks -------------------------------------------------------------------------------------------------------


def memory(site: Site) -> Iterator[Check]:
    """Enough for what runs without a language model."""
    machine, least = site.machine, size(LEAST_MEMORY)
    level = warning if machine.memory < LEAST_MEMORY else ok
    memory, free = size(machine.memory), size(machine.available)
    yield level("memory", "doctor.memory", memory=memory, free=free, processors=machine.processors, least=least)


def gpu(site: Site) -> Iterator[Check]:
    """GPU, driver and its memory."""
    for card in site.machine.gpus:
        memory, free = size(card.memory), size(card.free)
        yield ok("gpu", "doctor.gpu", name=card.name, driver=card.driver, memory=memory, free=free)
    if not site.machine.gpus:
        why = site.machine.no_gpu or message("doctor.no_gpu_named")
        needless = site.settings.profile == "starter"
        yield ok("gpu", "doctor.no_gpu_needed", why=why) if needless else warning("gpu", "doctor.no_gpu", why=why)


def scans(site: Site) -> Iterator[Check]:
    """Who reads pages without text."""
    if site.settings.read.ocr and (engine := ocr.identity()):
        yield ok("scans", "doctor.scans", engine=engine)
    else:
        yield ok("scans", "doctor.scans_no_engine" if site.settings.read.ocr else "doctor.scans_off")


def isolation(site: Site) -> Iterator[Check]:
    """Whether the processes that read files are kept from the network and from other files."""
    isolated = children.isolation()
    make = problem if site.settings.read.isolation else warning
    if isolated.network and isolated.files:
        yield ok("isolation", "doctor.isolation_whole")
    else:
        yield make("isolation", "doctor.isolation_partly" if isolated.network else "doctor.isolation_none")


def clock(site: Site) -> Iterator[Check]:
    """Dates decide which guideline is the newest and stand in the audit log."""
    released = datetime.fromisoformat(RELEASED).astimezone(site.now.tzinfo)
    if site.now < released:
        yield problem("clock", "doctor.clock_early", date=f"{site.now:%Y-%m-%d}")
    else:
        yield ok("clock", "doctor.clock", time=f"{site.now:%Y-%m-%d %H:%M %Z}")


def sign_in(site: Site) -> Iterator[Check]:
    """The hospital's directory answers a look-up, whole, as each sign-in asks it; nothing is dialled without one."""
    directory_settings = site.settings.web.ldap
    if directory_settings.server:
        directory.examine(directory_settings)
        yield ok("sign in", "doctor.directory", server=directory_settings.server)


def python(site: Site) -> Iterator[Check]:
    """The interpreter, and every library in the version that was tried."""
    del site
    version = ".".join(map(str, sys.version_info[:3]))
    tried = PYTHON[0] <= sys.version_info[:2] < PYTHON[1]
    yield (
        ok("python", "doctor.python", version=version)
        if tried
        else problem("python", "doctor.python_other", version=version)
    )
    try:
        pinned = [match for requirement in metadata.requires("localmed") or () if (match := _PINNED.match(requirement))]
    except metadata.PackageNotFoundError:
        yield warning("libraries", "doctor.not_installed")
        return
    if wrong := tuple(filter(None, (_other(*match.groups()) for match in pinned))):
        yield problem("libraries", "doctor.libraries_other", libraries=wrong)
    else:
        yield ok("libraries", "doctor.libraries", count=len(pinned))


def _other(name: str, pinned: str, extra: str | None) -> Message | None:
    """What is wrong with the installed ``name``; an extra may be missing. "+cpu" and the like do not count."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None if extra else message("file.missing", file=name)
    if version.partition("+")[0] == pinned.partition("+")[0]:
        return None
    return message("doctor.library_version", name=name, version=version, pinned=pinned)


def offline(site: Site) -> Iterator[Check]:
    """Nothing in the environment asks a library to look for a network."""
    names = {name.lower(): name for name in site.environment}
    proxies = [names[name] for name in PROXIES if name in names]
    against = [name for name, value in OFFLINE.items() if site.environment.get(name, value) != value]
    if against:
        yield warning("offline", "doctor.offline_otherwise", names=tuple(against))
    if proxies:
        yield warning("offline", "doctor.proxy", names=tuple(proxies))
    if not against and not proxies:
        yield ok("offline", "doctor.offline", count=len(OFFLINE))


# --- models --------------------------------------------------------------------------------------------------------


def _chosen(site: Site) -> dict[str, str]:
    """The models that the profile and ``localmed models use`` choose: name by role."""
    registered = site.registry.registrations
    chosen = chosen_models(site.settings, registered.roles, registered.models)
    return {role: name for role, name in chosen.items() if not built_in(role, name)}


def other_encoder(site: Site) -> Iterator[Check]:
    """The library is of the encoder that serves; of another one, no question is answered."""
    built_with, serving = generations.encoder(site.settings.data), None
    with suppress(ModelError):  # of a model that is not there ``models_chosen`` tells
        serving = site.encoder()
    if built_with and serving and built_with not in (serving.stored_as, serving.slug):
        yield problem("models", "library.encoder", built_with=built_with, encoder=serving.stored_as)


def settings_gone(site: Site) -> Iterator[Check]:
    """Settings of earlier versions that have no effect any more."""
    if names := config.obsolete_names(site.settings):
        yield warning("settings", "doctor.settings_gone", names=names, file=str(config.file_of(site.settings.data)))


def models_chosen(site: Site) -> Iterator[Check]:
    """Every model that is asked for is registered."""
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
    """The chat model that serves has been through its self-test, by the questions of this version."""
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
    """The chat server that the settings name; it comes before a registered model and is not dialled here."""
    chat = site.settings.chat
    for server in (chat.server, *chat.replicas):
        if server not in chat.servers:
            return problem("models", "settings.server_unlisted", server=server)
    if not chat.server_model:
        return problem("models", "settings.server_model")
    return ok("models", "doctor.server", server=chat.server)


def models_whole(site: Site) -> Iterator[Check]:
    """Every registered file is as it was when it was hashed."""
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
    """Every chosen model fits this machine."""
    chosen = set(_chosen(site).values())
    for one in (one for one in fits(site.registry.candidates(), site.machine) if one.name in chosen):
        if one.best is Place.NOWHERE:
            yield problem("model fit", "doctor.too_large", name=one.name, needed=size(one.needs[0].bytes))
        elif one.best is Place.CPU and site.machine.gpus:
            yield warning("model fit", "doctor.slow", name=one.name)
        else:
            yield ok("model fit", "doctor.fits", name=one.name, place=message(f"models.place_{one.best}"))


def model_host(site: Site) -> Iterator[Check]:
    """Whether a model host runs, and whether commands can use it."""
    host = site.host()
    if host is None:
        yield ok("model host", "doctor.no_host")
    elif host.others and site.settings.host.use:
        yield warning("model host", "doctor.host_other", process=host.process, roles=tuple(host.others))
    else:
        code = "doctor.host" if site.settings.host.use else "doctor.host_unused"
        yield ok("model host", code, process=host.process, memory=size(host.memory))


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
    """What lies in the data folder and nobody of ours has written, and what a restore that was cut off left beside."""
    from localmed.upkeep.restore import cut_off

    if left := cut_off(site.settings.data):
        names = tuple(path.name for path in left)
        yield warning("data folder", "doctor.restore_cut_off", folder=str(site.settings.data.parent), names=names)
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
    faults, name = check.of_generations(data, site.full), f"{served:04d}"
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
        faults = check.beside(site.settings.data)
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
    last = check.last_whole_check(data)
    since = datetime.fromisoformat(last.time if last else _begun(data))
    late = site.now - since > timedelta(check.WHOLE_CHECK_DAYS)
    time = f"{since.astimezone(site.now.tzinfo):%Y-%m-%d %H:%M}"
    known: dict[str, Parameter] = {"time": time, "days": check.WHOLE_CHECK_DAYS}
    if last and last.faults:
        yield warning("whole check", "doctor.whole_check_faults", count=last.faults, **known)
    elif late:
        yield warning("whole check", "doctor.whole_check_late", **known)
    elif last:
        yield ok("whole check", "doctor.whole_check", **known)
    else:
        yield notice("whole check", "doctor.whole_check_late", **known)


def backups(site: Site) -> Iterator[Check]:
    """When the last backup was made; wherever it lies, which may be away."""
    data = site.settings.data
    query = """
    SELECT json_extract(entry, '$.time') FROM journal
    WHERE json_extract(entry, '$.action') = 'backup' AND json_extract(entry, '$.outcome') = 'written'
    ORDER BY id DESC LIMIT 1
    """
    if not (data / FILE).exists():
        return
    last = [datetime.fromisoformat(time) for (time,) in selected(data, query)]
    made = f"{last[0].astimezone(site.now.tzinfo):%Y-%m-%d %H:%M}" if last else message("doctor.never")
    if not site.settings.backup.folder:
        yield warning("backup", "doctor.backup_none_set", time=made)
    elif not last or site.now - last[0] > timedelta(days=BACKUP_DAYS):
        yield warning("backup", "doctor.backup_late", time=made, folder=site.settings.backup.folder)
    else:
        yield ok("backup", "doctor.backup", time=made, folder=site.settings.backup.folder)


def _begun(data: Path) -> str:
    """When the first change of the library was noted; long ago where that is not known."""
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
    """Files that imports have refused."""
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
    """What is in force can be told for certain, and the accounts are what the journal knows."""
    now = in_force(site.settings.data)
    accounts.require_accounts(site.settings.data)
    require_noted(site.settings.data)
    counts = {"withdrawals": len(now.withdrawals), "access": len(now.access), "stops": len(now.stops)}
    yield ok("state", "doctor.state", **counts)


def governance(site: Site) -> Iterator[Check]:
    """Documents that somebody should look at: overdue for review, waiting for their day, without an owner."""
    day = site.now.date().isoformat()
    try:
        with generations.lease(site.settings.data) as served, closing(Catalogue(served / CATALOGUE)) as catalogue:
            documents, owned = catalogue.owned()
            holding = Holding(site.settings.data, catalogue, day)
            overdue, waiting = len([*filter(holding.overdue, catalogue.overdue(day))]), len(catalogue.pending(day))
    except NoLibrary:
        return
    level = warning if overdue else notice if owned < documents else ok
    yield level("governance", "doctor.governance", overdue=overdue, waiting=waiting, unowned=documents - owned)


def audit(site: Site) -> Iterator[Check]:
    """The log's chain is whole, and the clock has not gone back behind it."""
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
        yield warning("audit", anew.code, **dict(anew.parameters))
    elif cut:
        yield problem("audit", cut.code)
    for entry in begun:
        yield warning("audit", "doctor.audit_unfinished", action=entry.action, subject=entry.subject, time=entry.time)
    newest = max((datetime.fromisoformat(entry.time) for entry in entries), default=datetime.min.replace(tzinfo=UTC))
    if newest > site.now + AHEAD:
        yield problem("clock", "doctor.clock_behind_log", time=f"{newest:%Y-%m-%d %H:%M}")


# --- all of them -----------------------------------------------------------------------------------------------------


CHECKS: tuple[Callable[[Site], Iterator[Check]], ...] = (
    python, offline, settings_gone, memory, gpu, scans, isolation, clock, sign_in, models_chosen, other_encoder,
    models_whole, models_fit, model_host, rights, data_folder, space, library, beside, whole_check, backups, writer,
    audit, state, quarantine, governance,
)  # fmt: skip
OF_EVERY_COLLECTION = (space, audit, state, quarantine, governance)  # counts and sizes, hidden collections' as well


def checks_for(settings: Settings) -> tuple[Callable[[Site], Iterator[Check]], ...]:
    """The checks that whoever runs this may see."""
    whole = groups_of(settings.reader.groups, settings.data) is None
    return tuple(check for check in CHECKS if whole or check not in OF_EVERY_COLLECTION)


def examine(site: Site, checks: Iterable[Callable[[Site], Iterator[Check]]] = CHECKS) -> Iterator[Check]:
    """The lines of all ``checks``, in order, as they are found."""
    for one in checks:
        try:
            yield from one(site)
        except LocalmedError as error:
            yield failed(one.__name__.replace("_", " "), error)
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            yield problem(one.__name__.replace("_", " "), "doctor.unseen", kind=type(error).__name__)


def faults_stored(checks: Iterable[Check]) -> int:
    """How many of ``checks`` found something wrong with what is stored."""
    return sum(check.name in ("library", "beside") and check.level is not Level.OK for check in checks)


def worst(checks: Iterable[Check]) -> Level:
    """The most serious level among ``checks``."""
    levels = {check.level for check in checks}
    return next((level for level in (Level.PROBLEM, Level.WARNING) if level in levels), Level.OK)


# --- whether a site can serve pages and answer, by codes that hold nothing of anybody ---------------------------------


def not_ready(site: Opened) -> Iterator[str]:
    """What keeps the pages from working: ``state`` (accounts, logins, the journal)."""
    try:
        with rows(site.data) as state:
            state.execute("BEGIN IMMEDIATE")
            state.execute("ROLLBACK")
    except (LocalmedError, OSError, sqlite3.Error):
        yield "state"


def not_answering(site: Opened) -> Iterator[str]:
    """What keeps a question from being answered: ``library``, ``models`` (a model host that hangs), ``stopped``."""
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
