"""``localmed pack``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo, in_session, print_json, show_progress
from localmed.cli.import_files import print_report_text, report_json
from localmed.cli.later import packs, signing
from localmed.cli.options import FILE, FOLDER, json_option
from localmed.cli.speaking import confirm, say

if TYPE_CHECKING:
    from localmed.site.session import Session
    from localmed.upkeep.packs import Pack

DAYS = 90  # for which a pack may be imported
SHOWN = 30  # titles of withdrawn documents printed
key_option = click.option("--key", "keys", multiple=True, type=FILE, help="Private key (PEM; repeatable).")


@click.group("pack")
def command() -> None:
    """Content packs: signed sets of documents and withdrawals that travel on a stick.

    A publisher makes two keys and a root, builds and signs; a hospital trusts the root once, inspects and imports.
    """


@command.command("key")
@click.argument("file", type=FILE)
def key(file: Path) -> None:
    """Create an Ed25519 key FILE. Keep the two keys apart, and away from any network."""
    say("signing.key_made", id=signing.make_key(file)[:16], file=str(file))


@command.command("root")
@click.argument("file", type=FILE)
@key_option
@click.option("--replaces", type=FILE, help="The root before this one; --before-key gives keys that it trusts.")
@click.option("--before-key", "before_keys", multiple=True, type=FILE, help="A key of the root that is replaced.")
def root(file: Path, keys: tuple[Path, ...], replaces: Path | None, before_keys: tuple[Path, ...]) -> None:
    """Write the root FILE, which lists the two keys that must sign."""
    new, before = (list(map(signing.load_key, paths)) for paths in (keys, before_keys))
    say("signing.root_made", file=str(file), fingerprint=signing.make_root(file, new, replaces, before))


@command.command("build")
@click.argument("source", type=FOLDER)
@click.argument("out", type=FOLDER)
@click.option("--root", "root_file", required=True, type=FILE, help="The newest root; it holds those before it.")
@key_option
@click.option("--version", type=click.IntRange(1), required=True, help="Version; higher than the last pack's.")
@click.option("--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True, help="Days until it expires.")
def build(source: Path, out: Path, root_file: Path, keys: tuple[Path, ...], version: int, days: int) -> None:
    """Build the pack OUT from SOURCE: pack.toml, collections/, documents/, withdrawals.toml."""
    say("pack.built", folder=str(out), count=packs.build(source, out, root_file, keys, version, days))
    _tell_signed(len(set(keys)))


@command.command("sign")
@click.argument("folder", type=FOLDER)
@key_option
def sign(folder: Path, keys: tuple[Path, ...]) -> None:
    """Sign the pack FOLDER with another key."""
    _tell_signed(signing.add_signatures(folder, list(map(signing.load_key, keys))))


def _tell_signed(count: int) -> None:
    from localmed.upkeep.verifier import KEYS_LEAST

    say("signing.signed", count=count, least=KEYS_LEAST)


@command.command("trust")
@click.argument("file", type=FILE)
@click.option("--yes", is_flag=True, help="Do not ask: you have compared the fingerprint.")
@in_session
def trust(session: Session, file: Path, yes: bool) -> None:
    """Trust the keys of the root FILE. Compare its fingerprint with the publisher's first."""
    signing.read_root(file)
    say("pack.fingerprint", fingerprint=signing.fingerprint(file))
    confirm("pack.trust", yes)
    packs.trust_root(session, file)
    say("pack.trusted")


@command.command("inspect")
@click.argument("folder", type=FOLDER)
@json_option
@in_session
def inspect(session: Session, folder: Path, as_json: bool) -> None:
    """Verify the pack FOLDER and show its content; nothing is changed."""
    pack = packs.inspect(session, folder)
    if as_json:
        print_json(_json(pack))
    else:
        _tell(pack)


@command.command("import")
@click.argument("folder", type=FOLDER)
@json_option
@in_session
def import_(session: Session, folder: Path, as_json: bool) -> None:
    """Verify the pack FOLDER, put its withdrawals in force, then import its documents.

    Everything is copied and checked first. A pack that was altered, is older than the last one, has one signature only
    or has expired is refused. A later version of a pack replaces the earlier one.
    """
    with show_progress(not as_json) as hooks:
        done = packs.import_pack(session, folder, hooks)
    if as_json:
        reports = {name: report_json(report) for name, report in done.reports.items()}
        print_json({**_json(done.pack), "withdrawn": done.withdrawn, "reports": reports})
        return
    _tell(done.pack)
    for title in done.withdrawn[:SHOWN]:
        say("documents.withdrawn", title=title)
    if len(done.withdrawn) > SHOWN:
        say("cli.more", count=len(done.withdrawn) - SHOWN)
    for report in done.reports.values():
        print_report_text(report)


def _tell(pack: Pack) -> None:
    found, documents = pack.manifest, len(pack.documents)
    created, expires = found.created.date().isoformat(), found.expires.date().isoformat()
    echo(pack.title, bold=True)
    say("pack.verified", name=found.name, version=found.version, created=created, expires=expires)
    say("pack.holds", documents=documents, collections=tuple(pack.collections), count=len(pack.withdrawals))


def _json(pack: Pack) -> dict[str, Any]:
    found = pack.manifest
    return {"name": found.name, "title": pack.title, "version": found.version, "created": found.created.isoformat(),
            "expires": found.expires.isoformat(), "collections": pack.collections, "documents": len(pack.documents),
            "withdrawals": len(pack.withdrawals)}  # fmt: skip
