"""The doctor's look at the machine, the software and the models."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from importlib import metadata

from localmed import children, config
from localmed.config import NONE, PROFILES, built_in, chosen_models
from localmed.domain import Message, message
from localmed.environment import OFFLINE
from localmed.ingest.ocr import child as ocr
from localmed.library import generations
from localmed.operations import directory
from localmed.operations.check import Check, Site, ok, problem, size, warning
from localmed.operations.fit import Place, fits

LEAST_MEMORY = 4 * 2**30  # bytes; the starter takes one, an import with its children two more
PYTHON = ((3, 11), (3, 13))  # from, up to but without; as in pyproject.toml
RELEASED = "2026-11-01"  # no clock that is right is before this
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_PINNED = re.compile(r"([\w.-]+)==([\w.+!-]+)(\s*;.*extra.*)?")


def memory(site: Site) -> Iterator[Check]:
    """Enough for what runs without a language model."""
    machine = site.machine
    level = warning if machine.memory < LEAST_MEMORY else ok
    yield level(
        "memory",
        "doctor.memory",
        memory=size(machine.memory),
        free=size(machine.available),
        processors=machine.processors,
        least=size(LEAST_MEMORY),
    )


def gpu(site: Site) -> Iterator[Check]:
    """GPU, driver and its memory."""
    for card in site.machine.gpus:
        yield ok(
            "gpu", "doctor.gpu", name=card.name, driver=card.driver, memory=size(card.memory), free=size(card.free)
        )
    if site.machine.gpus:
        return
    why = site.machine.no_gpu or message("doctor.no_gpu_named")
    if site.settings.profile == "starter":
        yield ok("gpu", "doctor.no_gpu_needed", why=why)
    else:
        yield warning("gpu", "doctor.no_gpu", why=why)


def scans(site: Site) -> Iterator[Check]:
    """Who reads pages without text."""
    if not site.settings.read.ocr:
        yield ok("scans", "doctor.scans_off")
    elif engine := ocr.identity():
        yield ok("scans", "doctor.scans", engine=engine)
    else:
        yield ok("scans", "doctor.scans_no_engine")


def isolation(site: Site) -> Iterator[Check]:
    """Whether the processes that read files are kept from the network and from other files."""
    isolated = children.isolation()
    make = problem if site.settings.read.isolation else warning
    if isolated.network and isolated.files:
        yield ok("isolation", "doctor.isolation_whole")
    elif isolated.network:
        yield make("isolation", "doctor.isolation_partly")
    else:
        yield make("isolation", "doctor.isolation_none")


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
    if not PYTHON[0] <= sys.version_info[:2] < PYTHON[1]:
        yield problem("python", "doctor.python_other", version=version)
    else:
        yield ok("python", "doctor.python", version=version)
    try:
        pinned = [match for requirement in metadata.requires("localmed") or () if (match := _PINNED.match(requirement))]
    except metadata.PackageNotFoundError:
        yield warning("libraries", "doctor.not_installed")
        return
    wrong = list(filter(None, (_other(*match.groups()) for match in pinned)))
    if wrong:
        yield problem("libraries", "doctor.libraries_other", libraries=tuple(wrong))
    else:
        yield ok("libraries", "doctor.libraries", count=len(pinned))


def _other(name: str, pinned: str, extra: str | None) -> Message | None:
    """What is wrong with the installed ``name``; an extra may be missing. "+cpu" and the like do not count."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None if extra else message("doctor.library_missing", name=name)
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


def encoder_kept(site: Site) -> Iterator[Check]:
    """The library is of the encoder that is the default by now."""
    registered, built_with = site.registry.registrations, generations.encoder(site.settings.data)
    now, kept = (
        chosen_models(site.settings, registered.roles, registered.models, library)["encoder"]
        for library in ("", built_with)
    )
    if now != kept:
        yield warning("models", "doctor.keeps_encoder", built_with=built_with, name=now)


def settings_gone(site: Site) -> Iterator[Check]:
    """Settings of earlier versions that have no effect any more."""
    if names := config.gone(site.settings):
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
    server = site.settings.chat.server
    if server:
        yield _server(site)
    if not chosen and not server:
        yield ok("models", "doctor.starter")
        return
    judge = PROFILES[site.settings.profile].get("entailment", NONE)
    if (
        not built_in("entailment", judge)
        and judge not in known
        and "entailment" not in site.registry.registrations.roles
    ):
        yield warning("models", "doctor.starter_judges", judge=judge)
    if "chat" not in chosen and not server:
        yield warning("models", "doctor.no_chat")
    yield from _self_test(site)


def _self_test(site: Site) -> Iterator[Check]:
    """The chat model that serves has been through its self-test, by the questions of this version."""
    from localmed.agents import self_test

    chat, chosen = site.settings.chat, _chosen(site)
    name = f"{chat.server_model} at {chat.server}" if chat.server else chosen.get("chat", "")
    result = site.registry.self_test(name) if name else None
    if name and result is None:
        yield warning("models", "doctor.untested", name=name)
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
    strangers = site.registry.strangers()
    if strangers:
        yield warning(
            "model files",
            "doctor.strange_folders",
            count=len(strangers),
            name=strangers[0],
            folder=str(site.registry.folder / strangers[0]),
        )


def models_fit(site: Site) -> Iterator[Check]:
    """Every chosen model fits this machine."""
    chosen = set(_chosen(site).values())
    for fit in fits(site.registry.candidates(), site.machine):
        if fit.name not in chosen:
            continue
        if fit.best is Place.NOWHERE:
            yield problem("model fit", "doctor.too_large", name=fit.name, needed=size(fit.needs[0].bytes))
        elif fit.best is Place.CPU and site.machine.gpus:
            yield warning("model fit", "doctor.slow", name=fit.name)
        else:
            yield ok("model fit", "doctor.fits", name=fit.name, place=message(f"models.place_{fit.best}"))


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
