"""``installer.pyz``: the standard library only, since nothing else is verified yet. Started by ``install.sh``."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import steps
from place import Place

from localmed.upkeep.verifier import Refused


def messages() -> dict[str, dict[str, str]]:
    """What the installer says, by code and language."""
    with ZipFile(Path(__file__).parent) as archive:
        return tomllib.loads(archive.read("messages.toml").decode())


def language() -> str:
    """As localmed's commands choose it."""
    named = os.environ.get("LOCALMED_LANGUAGE", "")
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return "zh" if (named or locale).startswith("zh") else "en"


def say(code: str, level: str = "ok", **parameters: Any) -> None:
    """Print the words of ``code``; problems on standard error."""
    words = messages()[code.removeprefix("pack.")][language()].format(**parameters)
    print(words, file=sys.stderr if level == "problem" else sys.stdout, flush=True)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="install.sh", description="Install, roll back or remove localmed, offline.")
    parser.add_argument(
        "--bundle", type=Path, required=True, help="the folder on the stick (default: where install.sh lies)"
    )
    parser.add_argument("--anchor", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, default=Path("/"), help="a folder to try it in, in the place of /")
    parser.add_argument("--prefix", type=Path, default=Path("/opt/localmed"), help="default: /opt/localmed")
    parser.add_argument("--data", type=Path, default=Path("/var/lib/localmed"), help="default: /var/lib/localmed")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--rollback", action="store_true", help="let the version before serve again")
    action.add_argument("--uninstall", action="store_true", help="take localmed away; with --keep-data or --purge")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--keep-data", action="store_true", help="leave the library and its logs")
    what.add_argument("--purge", action="store_true", help="delete the library and its logs too")
    chosen = parser.parse_args()
    if chosen.uninstall != (chosen.keep_data or chosen.purge):
        parser.error("--uninstall needs --keep-data or --purge, and only it takes them")
    return chosen


def run() -> int:
    """Do what the command line says; the exit code."""
    chosen = options()
    root = chosen.root.resolve()
    place = Place(root, root / chosen.prefix.relative_to("/"), root / chosen.data.relative_to("/"))
    try:
        if not place.trial and os.geteuid() != 0:
            raise Refused("not_root")
        if chosen.rollback:
            steps.rollback(place, say)
        elif chosen.uninstall:
            steps.uninstall(place, chosen.purge, say)
        else:
            steps.install(chosen.bundle.resolve(), chosen.anchor, place, say)
    except Refused as refusal:
        say(refusal.code, level="problem", **refusal.parameters)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(run())
