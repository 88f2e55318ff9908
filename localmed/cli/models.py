"""``localmed models``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo_wrapped, json_option, opened, print_json, print_table, progress
from localmed.cli.speaking import columns, confirm, say, tell_problems, text, words
from localmed.config import NONE, built_in
from localmed.domain import Message, message
from localmed.domain.errors import ModelError

if TYPE_CHECKING:
    from localmed.models.registry.manifests import ModelManifest
    from localmed.models.registry.registration import Model
    from localmed.site.session import Session
    from localmed.site.site import Site
    from localmed.upkeep.fit import Fit, Need

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
@click.pass_context
def listed(ctx: click.Context, as_json: bool = False) -> None:
    """List known and registered models with role, licence and hash, and the model that serves each role."""
    with opened(ctx) as session:
        rows = [_described(session.site, candidate.name) for candidate in session.site.registry.candidates()]
        serving = session.site.serving
    if as_json:
        print_json(rows)
        return
    table = [_row(row) for row in rows]
    print_table(text("models.list"), columns("name", "role", "size", "licence", "sha256"), table)
    say("models.hash_legend")
    for row in rows:
        if row["terms"]:
            echo_wrapped(text("models.terms_of", name=row["name"], licence=row["licence"], terms=row["terms"]))
    pairs = tuple(message("cli.state", name=role, state=name) for role, name in serving.items())
    echo_wrapped(text("models.serving", roles=pairs))


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    sha256 = row["sha256"][:12] or "-"
    return row["name"], row["role"], _size(row["bytes"]), row["licence"] or text("models.unlisted"), sha256


def _described(site: Site, name: str) -> dict[str, Any]:
    """What is known of a model, from its manifest and from the registry."""
    manifest, record = site.registry.manifests.get(name), site.registry.registrations
    model = record.models.get(name)
    files = _files(model, manifest)
    return {
        "name": name,
        "role": model.role if model else manifest.role if manifest else "",
        "serves": [role for role, server in site.serving.items() if server == name and (model or built_in(role, name))],
        "registered": model is not None,
        "listed": manifest is not None,
        "title": manifest.title if manifest else "",
        "licence": manifest.licence if manifest else "",
        "terms": manifest.terms if manifest else "",
        "source": manifest.source if manifest else "",
        "languages": list(manifest.languages) if manifest else [],
        "files": files,
        "bytes": sum(file["bytes"] for file in files),
        "sha256": max(files, key=lambda file: file["bytes"])["sha256"],  # of the weights; "": recorded when added
        "added": model.added if model else "",
        "by": model.by if model else "",
        "template": model.template if model else manifest.template if manifest else "",
        "fingerprint": model.fingerprint if model else "",
    }


def _files(model: Model | None, manifest: ModelManifest | None) -> list[dict[str, Any]]:
    """The files as registered, else as the manifest names them (0 and "": not known)."""
    if model:
        return [{"name": file.name, "bytes": file.stamp.bytes, "sha256": file.sha256} for file in model.files]
    named = manifest.files if manifest else ()
    return [{"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in named]


@command.command("add")
@click.argument("source", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--as", "name", default="", metavar="NAME", help="Model, if the file name does not show it.")
@click.option("--role", type=click.Choice(ROLES), help="Role, if no manifest is known.")
@click.option("--template", default="", metavar="NAME", help="Chat template, if no manifest is known.")
@json_option
@click.pass_context
def add(ctx: click.Context, source: Path, name: str, role: str | None, template: str, as_json: bool) -> None:
    """Check, copy and register the model in FILE_OR_FOLDER.

    A GGUF header is read in a child process. The copy is hashed and must match the hash in the manifest, if
    there is one.
    """
    from localmed.site import changes

    with opened(ctx) as session, progress(not as_json) as (started, advance):
        session.may_change()
        model = changes.add_model(session, source, name, role or "", template, advance, started)
        row = _described(session.site, model.name)
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
@click.pass_context
def verify(ctx: click.Context, name: str | None, as_json: bool) -> None:
    """Hash the files of model NAME (default: all) again; exit code 6 if one is missing or has changed."""
    with opened(ctx) as session, progress(not as_json) as (started, advance):
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
    if any(results.values()):
        sys.exit(ModelError.exit_code)


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> None:
    """Remove model NAME and delete its files."""
    from localmed.site import changes

    with opened(ctx) as session:
        session.may_change()
        model, serves = session.site.registry.model(name), _described(session.site, name)["serves"]
        if not yes:
            confirm("models.delete", count=len(model.files), name=name, size=_size(model.bytes))
        changes.remove_model(session, name)
        now, hosted = (
            {role: session.site.serving[role] for role in serves},
            _owned_by_host(session.site, serves),
        )
    say("models.removed", name=name)
    for role, successor in now.items():
        say("models.serves", name=successor, role=role)
    if hosted:
        echo_wrapped(text("models.restart"))


@command.command("use")
@click.argument("role", type=click.Choice(ROLES))
@click.argument("name")
@click.option("--untested", is_flag=True, help="For a chat model: skip the self-test.")
@click.pass_context
def use(ctx: click.Context, role: str, name: str, untested: bool) -> None:
    """Use NAME for ROLE: a registered model, "none", "default" (of the profile), or a built-in model.

    Built in are e5 (encoder) and chat (entailment judged by the chat model). A chat model is tested first with some
    forty short questions and sixty statements to check, and serves only the roles in which it is at least as good as
    rules.

    A model with a changed file, or that cannot serve ROLE, is refused. After a change of encoder run: localmed reindex.
    """
    from localmed.site import changes, lookups

    with opened(ctx) as session:
        with progress(True) as (started, advance):
            known = session.site.registry.registrations.models.get(name)
            started(known.bytes if known else 0)
            changes.use_model(session, role, name, advance)
        if role == "chat" and name != NONE and untested:
            changes.trust_chat(session)
        fault = _self_tested(session) if role == "chat" and name != NONE and not untested else None
        serving = session.site.serving
        built_with = lookups.built_with(session) if role == "encoder" else ""
        now = session.site.encoder.identity.stored_as if built_with else ""
        hosted, roles = _owned_by_host(session.site, [role]), changes.chat_roles(session)
        unfit = session.site.unfit_roles if role == "chat" else frozenset()
        outdated = changes.outdated_roles(session) if fault else frozenset()
        manifest = session.site.registry.manifests.get(serving[role])
    say("models.serves", name=serving[role], role=role)
    if manifest and manifest.terms:
        echo_wrapped(text("models.terms_of", name=manifest.name, licence=manifest.licence, terms=manifest.terms))
    if fault:
        say("models.not_tested" if outdated is None else "models.not_tested_again", reason=fault)
    if role == "chat" and outdated is not None:
        _tell_roles(serving[role], unfit - outdated, *roles)
    if outdated:
        echo_wrapped(text("models.test_outdated", roles=tuple(sorted(outdated))))
    if built_with != now:
        say("models.reindex", built_with=built_with)
    if hosted:
        echo_wrapped(text("models.restart"))


@command.command("test")
@click.pass_context
def test(ctx: click.Context) -> None:
    """Test the chat model in use, also on a server: rules serve the roles in which it is worse than they are."""
    from localmed.site import changes

    with opened(ctx) as session:
        fault = _self_tested(session)
        if fault:
            raise ModelError(fault)
        name = session.site.chat.identity.name if session.site.chat else NONE
        unfit, roles = session.site.unfit_roles, changes.chat_roles(session)
    _tell_roles(name, unfit, *roles)


def _self_tested(session: Session) -> Message | None:
    """Run the self-test of the chat model; why it could not be run, None if it was."""
    from localmed.site import changes

    with progress(True) as (started, advance):
        begun: list[int] = []

        def tell(_done: int, total: int) -> None:
            if not begun:
                started(total)
                begun.append(total)
            advance(1, "")

        try:
            changes.test_chat(session, tell)
        except ModelError as error:
            return error.message
    return None


def _tell_roles(model: str, unfit: Collection[str], served: tuple[str, ...], others: tuple[str, ...]) -> None:
    """Print which roles the chat model serves from now on, in which it failed, and which the settings give others."""
    if model == NONE:
        say("models.chat_none")
        return
    echo_wrapped(text("models.chat_roles", roles=served))
    if unfit:
        echo_wrapped(text("models.chat_unfit", roles=tuple(sorted(unfit))))
    if others:
        echo_wrapped(text("models.chat_otherwise", roles=others))


def _owned_by_host(site: Site, roles: Sequence[str]) -> bool:
    """Whether a model host runs that owns, for one of ``roles``, another model than the one chosen now."""
    with suppress(ModelError):  # one that does not answer is not used either
        status = site.host_status()
        return status is not None and site.settings.host.use and not set(roles).isdisjoint(status.others)
    return False


@command.command("plan")
@json_option
@click.pass_context
def plan(ctx: click.Context, as_json: bool) -> None:
    """Show what fits this machine: the memory of each model with 4k, 8k and 32k tokens, and where it fits."""
    from localmed.upkeep import fit

    with opened(ctx) as session:
        hardware = fit.look()
        fits = fit.fits(session.site.registry.candidates(), hardware)
    if as_json:
        print_json({"machine": hardware, "models": [asdict(row) | {"best": row.best} for row in fits]})
        return
    gpus = tuple(message("models.gpu", name=gpu.name, memory=_size(gpu.memory)) for gpu in hardware.gpus)
    none = message("models.no_gpu", why=hardware.no_gpu or message("doctor.no_gpu_named"))
    say("models.machine", memory=_size(hardware.memory), processors=hardware.processors, gpus=gpus or none)
    rows = [
        (row.name, row.role, text("models.by_file" if row.exact else "models.by_estimate"), *_cells(row))
        for row in fits
    ]
    contexts = [text("models.tokens", count=context // 1024) for context in fit.CONTEXTS]
    print_table(text("models.list"), [*columns("name", "role", "by"), *contexts], rows)
    echo_wrapped(text("models.estimates"))


def _cells(fit: Fit) -> list[str]:
    """One cell a context; a model without a cache has one for all."""
    cells = [_cell(need) for need in fit.needs]
    return cells if len(cells) > 1 else [*cells, "-", "-"]


def _cell(need: Need) -> str:
    place = message(f"models.place_{need.place}")
    return text("models.need", size=_size(need.bytes), place=place) if need.bytes else words(place)


def _size(count: int) -> str:
    from localmed.upkeep.fit import size

    return size(count) if count else "-"
