"""``localmed models``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo_wrapped, in_session, print_json, print_table, progress, show_progress
from localmed.cli.later import changes, fit, lookups
from localmed.cli.options import json_option, yes_option
from localmed.cli.speaking import columns, confirm, say, tell_problems, text, words
from localmed.config import NONE, built_in
from localmed.domain import Message, message
from localmed.domain.errors import ModelError

if TYPE_CHECKING:
    from localmed.site.session import Session
    from localmed.site.site import Site
    from localmed.upkeep.fit import Need

ROLES = ("chat", "encoder", "reranker", "entailment", "terms", "planner")


@click.group("models", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, add, verify, remove and choose models; show what fits this machine.

    Models come on a disk or stick; nothing is downloaded. Files that were not added here, or changed since, are not
    loaded.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(listed)


@command.command("list")
@json_option
@in_session
def listed(session: Session, as_json: bool = False) -> None:
    """List known and registered models with role, licence and hash, and the model that serves each role."""
    rows = [_describe(session.site, candidate.name) for candidate in session.site.registry.candidates()]
    serving = session.site.serving
    if as_json:
        print_json(rows)
        return
    table = [
        (row["name"], row["role"], _size(row["bytes"]), row["licence"] or text("models.unlisted"),
         row["sha256"][:12] or "-")
        for row in rows
    ]  # fmt: skip
    print_table(text("models.list"), columns("name", "role", "size", "licence", "sha256"), table)
    say("models.hash_legend")
    for row in rows:
        if row["terms"]:
            echo_wrapped(text("models.terms_of", name=row["name"], licence=row["licence"], terms=row["terms"]))
    pairs = tuple(message("cli.state", name=role, state=name) for role, name in serving.items())
    echo_wrapped(text("models.serving", roles=pairs))


def _describe(site: Site, name: str) -> dict[str, Any]:
    manifest, record = site.registry.manifests.get(name), site.registry.registrations
    model = record.models.get(name)
    stored = [(file.name, file.stamp.bytes, file.sha256) for file in model.files] if model else [
        (file.name, file.bytes, file.sha256) for file in (manifest.files if manifest else ())
    ]  # fmt: skip
    files: list[dict[str, Any]] = [
        {"name": file, "bytes": size, "sha256": sha256} for file, size, sha256 in stored
    ]  # 0 and "": not known
    about = {field: getattr(manifest, field, "") for field in ("title", "licence", "terms", "source")}
    return {
        "name": name,
        "role": model.role if model else manifest.role if manifest else "",
        "serves": [role for role, server in site.serving.items() if server == name and (model or built_in(role, name))],
        "registered": model is not None,
        "listed": manifest is not None,
        **about,
        "languages": list(manifest.languages) if manifest else [],
        "files": files,
        "bytes": sum(file["bytes"] for file in files),
        "sha256": max(files, key=lambda file: file["bytes"])["sha256"],  # of the weights; "": recorded when added
        "added": model.added if model else "",
        "by": model.by if model else "",
        "template": model.template if model else manifest.template if manifest else "",
        "fingerprint": model.fingerprint if model else "",
    }


@command.command("add")
@click.argument("source", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--as", "name", default="", metavar="NAME", help="Model, if the file name does not show it.")
@click.option("--role", type=click.Choice(ROLES), help="Role, if no manifest is known.")
@click.option("--template", default="", metavar="NAME", help="Chat template, if no manifest is known.")
@json_option
@in_session
def add(session: Session, source: Path, name: str, role: str | None, template: str, as_json: bool) -> None:
    """Check, copy and register the model in FILE_OR_FOLDER.

    A GGUF header is read in a child process. The copy is hashed and must match the hash in the manifest, if
    there is one.
    """
    with progress(not as_json) as (started, advance):
        session.may_change()
        model = changes.add_model(session, source, name, role or "", template, advance, started)
        row = _describe(session.site, model.name)
    if as_json:
        print_json(row)
        return
    say("models.added", name=model.name, role=model.role, count=len(model.files), size=_size(model.bytes))
    if not model.listed:
        say("models.no_licence")
    if row["terms"]:
        say("models.terms", terms=row["terms"])
    if not row["serves"]:
        say("models.to_use", role=model.role, name=model.name)


@command.command("verify")
@click.argument("name", required=False)
@json_option
@in_session
def verify(session: Session, name: str | None, as_json: bool) -> int:
    """Hash the files of model NAME (default: all) again; exit code 6 if one is missing or has changed."""
    with progress(not as_json) as (started, advance):
        names = [session.site.registry.model(name).name] if name else list(session.site.registry.registrations.models)
        started(sum(session.site.registry.model(model).bytes for model in names))
        results = {model: session.site.registry.problems(model, True, advance) for model in names}
    if as_json:
        print_json(results)
    else:
        for model, problems in results.items():
            tell_problems(model, problems)
        if not results:
            say("models.none")
    return ModelError.exit_code if any(results.values()) else 0


@command.command("remove")
@click.argument("name")
@yes_option
@in_session
def remove(session: Session, name: str, yes: bool) -> None:
    """Remove model NAME and delete its files."""
    session.may_change()
    model, serves = session.site.registry.model(name), _describe(session.site, name)["serves"]
    confirm("models.delete", yes, count=len(model.files), name=name, size=_size(model.bytes))
    changes.remove_model(session, name)
    say("models.removed", name=name)
    for role in serves:
        say("models.serves", name=session.site.serving[role], role=role)
    _tell_host(session.site, serves)


@command.command("use")
@click.argument("role", type=click.Choice(ROLES))
@click.argument("name")
@click.option("--untested", is_flag=True, help="For a chat model: skip the self-test.")
@in_session
def use(session: Session, role: str, name: str, untested: bool) -> None:
    """Use NAME for ROLE: a registered model, "none", "default" (of the profile), or a built-in model.

    Built in are e5 (encoder) and chat (entailment judged by the chat model). A chat model is tested first with some
    forty short questions and sixty statements to check, and serves only the roles in which it is at least as good as
    rules.

    A model with a changed file, or that cannot serve ROLE, is refused. After a change of encoder run: localmed reindex.
    """
    with progress(True) as (started, advance):
        known = session.site.registry.registrations.models.get(name)
        started(known.bytes if known else 0)
        changes.use_model(session, role, name, advance)
    if role == "chat" and name != NONE and untested:
        changes.trust_chat(session)
    fault = _run_self_test(session) if role == "chat" and name != NONE and not untested else None
    serving = session.site.serving
    built_with = lookups.built_with(session) if role == "encoder" else ""
    now = session.site.encoder.identity.stored_as if built_with else ""
    unfit = session.site.unfit_roles if role == "chat" else frozenset()
    outdated = changes.outdated_roles(session) if fault else frozenset()
    manifest = session.site.registry.manifests.get(serving[role])
    say("models.serves", name=serving[role], role=role)
    if manifest and manifest.terms:
        echo_wrapped(text("models.terms_of", name=manifest.name, licence=manifest.licence, terms=manifest.terms))
    if fault:
        say("models.not_tested" if outdated is None else "models.not_tested_again", reason=fault)
    if role == "chat" and outdated is not None:
        _tell_roles(serving[role], unfit - outdated, *changes.chat_roles(session))
    if outdated:
        echo_wrapped(text("models.test_outdated", roles=tuple(sorted(outdated))))
    if built_with != now:
        say("models.reindex", built_with=built_with)
    _tell_host(session.site, [role])


@command.command("test")
@in_session
def test(session: Session) -> None:
    """Test the chat model in use, also on a server: rules serve the roles in which it is worse than they are."""
    if fault := _run_self_test(session):
        raise ModelError(fault)
    name = session.site.chat.identity.name if session.site.chat else NONE
    _tell_roles(name, session.site.unfit_roles, *changes.chat_roles(session))


def _run_self_test(session: Session) -> Message | None:
    """Run the self-test of the chat model; return why it could not be run, or None."""
    with show_progress(True) as hooks:
        try:
            changes.test_chat(session, lambda done, total: hooks.progress(done, total, ""))
        except ModelError as error:
            return error.message
    return None


def _tell_roles(model: str, unfit: Collection[str], served: tuple[str, ...], others: tuple[str, ...]) -> None:
    """Print the roles that the chat model serves, those it failed, and those that the settings give to others."""
    if model == NONE:
        say("models.chat_none")
        return
    echo_wrapped(text("models.chat_roles", roles=served))
    if unfit:
        echo_wrapped(text("models.chat_unfit", roles=tuple(sorted(unfit))))
    if others:
        echo_wrapped(text("models.chat_otherwise", roles=others))


def _tell_host(site: Site, roles: Sequence[str]) -> None:
    """Tell the user to restart the model host if it serves, for one of ``roles``, another model than the chosen one."""
    with suppress(ModelError):  # one that does not answer is not used either
        status = site.host_status()
        if status is not None and site.settings.host.use and not set(roles).isdisjoint(status.others):
            echo_wrapped(text("models.restart"))


@command.command("plan")
@json_option
@in_session
def plan(session: Session, as_json: bool) -> None:
    """Show what fits this machine: the memory of each model with 4k, 8k and 32k tokens, and where it fits."""
    hardware = fit.inspect_machine()
    fits = fit.fits(session.site.registry.candidates(), hardware)
    if as_json:
        print_json({"machine": hardware, "models": [asdict(row) | {"best": row.best} for row in fits]})
        return
    gpus = tuple(message("models.gpu", name=gpu.name, memory=_size(gpu.memory)) for gpu in hardware.gpus)
    none = message("models.no_gpu", why=hardware.no_gpu or message("doctor.no_gpu_named"))
    say("models.machine", memory=_size(hardware.memory), processors=hardware.processors, gpus=gpus or none)
    rows = [
        (row.name, row.role, text("models.by_file" if row.exact else "models.by_estimate"),
         *islice(chain(map(_cell, row.needs), repeat("-")), len(fit.CONTEXTS)))  # a model without a cache has one cell
        for row in fits
    ]  # fmt: skip
    contexts = [text("models.tokens", count=context // 1024) for context in fit.CONTEXTS]
    print_table(text("models.list"), [*columns("name", "role", "by"), *contexts], rows)
    echo_wrapped(text("models.estimates"))


def _cell(need: Need) -> str:
    place = message(f"models.place_{need.place}")
    return text("models.need", size=_size(need.bytes), place=place) if need.bytes else words(place)


def _size(count: int) -> str:
    return fit.size(count) if count else "-"
