"""The doctor's look at the machine, the software and the models."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from importlib import metadata

from localmed.config import PROFILES, built_in, chosen_models
from localmed.environment import OFFLINE
from localmed.ingest.ocr import child as ocr
from localmed.operations.check import Check, Site, ok, problem, size, warning
from localmed.operations.fit import Place, fits

LEAST_MEMORY = 4 * 2**30  # bytes; the starter takes one, an import with its children two more
PYTHON = ((3, 11), (3, 13))  # from, up to but without; as in pyproject.toml
RELEASED = "2026-11-01"  # no clock that is right is before this
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
INSTALL = 'Install again from the same bundle: pip install "localmed"'
_PINNED = re.compile(r"([\w.-]+)==([\w.+!-]+)(\s*;.*extra.*)?")


def memory(site: Site) -> Iterator[Check]:
    """Enough for what runs without a language model."""
    machine = site.machine
    says = f"{size(machine.memory)}, {size(machine.available)} free; {machine.processors} processors"
    if machine.memory < LEAST_MEMORY:
        yield warning("memory", says, f"Give the machine {size(LEAST_MEMORY)} or more")
    else:
        yield ok("memory", says)


def gpu(site: Site) -> Iterator[Check]:
    """GPU, driver and its memory."""
    for each in site.machine.gpus:
        yield ok("gpu", f"{each.name}, driver {each.driver}, {size(each.memory)}, {size(each.free)} free")
    if site.machine.gpus:
        return
    if site.settings.profile == "starter":
        yield ok("gpu", f"none ({site.machine.no_gpu}); the profile starter needs none")
    else:
        remedy = "Install NVIDIA's driver, or go on slowly without"
        yield warning("gpu", f"none ({site.machine.no_gpu}): models run on the processor", remedy)


def scans(site: Site) -> Iterator[Check]:
    """Who reads pages without text."""
    if not site.settings.read.ocr:
        yield ok("scans", "not read (read.ocr is off): pages without text are named at the import")
    elif engine := ocr.identity():
        yield ok("scans", f"read by {engine}")
    else:
        yield ok("scans", 'not read, no OCR engine is installed (pip install "localmed[ocr]"): such pages are named')


def clock(site: Site) -> Iterator[Check]:
    """Dates decide which guideline is the newest and stand in the audit log."""
    released = datetime.fromisoformat(RELEASED).astimezone(site.now.tzinfo)
    if site.now < released:
        yield problem("clock", f"it shows {site.now:%Y-%m-%d}, before this version was made", "Set the clock")
    else:
        yield ok("clock", f"{site.now:%Y-%m-%d %H:%M %Z}")


def python(site: Site) -> Iterator[Check]:
    """The interpreter, and every library in the version that was tried."""
    del site
    version = ".".join(map(str, sys.version_info[:3]))
    if not PYTHON[0] <= sys.version_info[:2] < PYTHON[1]:
        yield problem("python", f"{version} is not supported", "Use Python 3.11 or 3.12")
    else:
        yield ok("python", version)
    try:
        pinned = [found for each in metadata.requires("localmed") or () if (found := _PINNED.match(each))]
    except metadata.PackageNotFoundError:
        yield warning("libraries", "localmed is not installed, so their versions are not known", INSTALL)
        return
    wrong = list(filter(None, (_other(*found.groups()) for found in pinned)))
    if wrong:
        yield problem("libraries", "; ".join(wrong), INSTALL)
    else:
        yield ok("libraries", f"{len(pinned)} pinned, none in another version")


def _other(name: str, wanted: str, extra: str | None) -> str:
    """What is wrong with the installed ``name``; an extra may be missing. "+cpu" and the like do not count."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return "" if extra else f"{name} is missing"
    return "" if version.partition("+")[0] == wanted.partition("+")[0] else f"{name} is {version}, not {wanted}"


def offline(site: Site) -> Iterator[Check]:
    """Nothing in the environment asks a library to look for a network."""
    told = {name.lower(): name for name in site.environment}
    proxies = [told[name] for name in PROXIES if name in told]
    against = [name for name, value in OFFLINE.items() if site.environment.get(name, value) != value]
    if against:
        remedy = f"Unset {against[0]}, so that other programs do not differ"
        yield warning("offline", f"{', '.join(against)} is set otherwise; localmed overrides it", remedy)
    if proxies:
        yield warning("offline", f"{', '.join(proxies)} is set: localmed uses no proxy", "Unset it for this account")
    if not against and not proxies:
        yield ok("offline", f"{len(OFFLINE)} flags are set before a model library loads; no proxy")


# --- models --------------------------------------------------------------------------------------------------------


def _wanted(site: Site) -> dict[str, str]:
    """The models that the profile and ``localmed models use`` choose: name by role."""
    registered = site.registry.registrations
    chosen = chosen_models(site.settings, registered.roles, registered.models)
    return {role: name for role, name in chosen.items() if not built_in(role, name)}


def models_chosen(site: Site) -> Iterator[Check]:
    """Every model that is asked for is registered."""
    known, wanted = site.registry.registrations.models, _wanted(site)
    for role, name in wanted.items():
        if name not in known:
            there = (site.registry.folder / name).is_dir()
            says = f"{name} for {role} is {'there but not registered' if there else 'missing'}"
            where = site.registry.folder / name if there else "FOLDER"
            yield problem("models", says, f"localmed models add {where} --as {name}")
        else:
            yield ok("models", f"{name} serves {role}")
    server = site.settings.chat.server
    if server:
        yield _server(site)
    if not wanted and not server:
        yield ok("models", "the starter's own encoder; answers are quoted, not written")
        return
    judge = PROFILES[site.settings.profile]["entailment"]
    if (
        not built_in("entailment", judge)
        and judge not in known
        and "entailment" not in site.registry.registrations.roles
    ):
        says = f"the starter judges entailment: {judge} is not registered"
        yield warning("models", says, f"localmed models add FOLDER --as {judge}")
    if "chat" not in wanted and not server:
        yield warning("models", "none serves chat: answers are quoted, not written", "localmed models use chat NAME")


def _server(site: Site) -> Check:
    """The chat server that the settings name; it comes before a registered model and is not dialled here."""
    chat = site.settings.chat
    if chat.server not in chat.servers:
        return problem(
            "models", f"the chat server {chat.server} is not listed in chat.servers", "List it, or name none"
        )
    if not chat.server_model:
        return problem("models", "chat.server is set and chat.server_model is not", "Set the model's name there")
    return ok("models", f"the server {chat.server} serves chat (not asked)")


def models_whole(site: Site) -> Iterator[Check]:
    """Every registered file is as it was when it was hashed."""
    names = list(site.registry.registrations.models)
    faults = [f"{name}: {each}" for name in names for each in site.registry.problems(name, site.full, site.progress)]
    for fault in faults:
        yield problem("model files", fault, "Put the file back, or remove the model and add it again")
    if not faults and names:
        how = "every byte hashed" if site.full else "sizes and dates; --full hashes them"
        yield ok("model files", f"{len(names)} registered, unchanged ({how})")
    strangers = site.registry.strangers()
    if strangers:
        says = f"{len(strangers)} folders beside the models are not registered, such as {strangers[0]}"
        yield warning("model files", says, f"localmed models add {site.registry.folder / strangers[0]}, or delete it")


def models_fit(site: Site) -> Iterator[Check]:
    """Every chosen model fits this machine."""
    wanted = set(_wanted(site).values())
    for each in fits(site.registry.candidates(), site.machine):
        if each.name not in wanted:
            continue
        if each.best is Place.NOWHERE:
            needs = size(each.needs[0].bytes)
            yield problem("model fit", f"{each.name} needs {needs}, more than there is", "See: localmed models plan")
        elif each.best is Place.CPU and site.machine.gpus:
            yield warning("model fit", f"{each.name} does not fit the GPU: slow", "See: localmed models plan")
        else:
            yield ok("model fit", f"{each.name}: {each.best}")


def model_host(site: Site) -> Iterator[Check]:
    """Whether a model host runs, and whether commands can use it."""
    found = site.host()
    if found is None:
        yield ok("model host", "not running: each command loads its models itself")
    elif found.others and site.settings.host.use:
        says = f"process {found.process} owns another model for {', '.join(found.others)}: commands load theirs"
        yield warning("model host", says, "End it and start it again: localmed host")
    else:
        used = "" if site.settings.host.use else "; the settings say not to use it (host.use)"
        yield ok("model host", f"process {found.process}, {size(found.memory)}{used}")
