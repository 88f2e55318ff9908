"""``installers/localmed-bundle``: build and sign bundles on a connected machine. English: it is a developer's tool."""

from __future__ import annotations

import argparse
import tarfile
from pathlib import Path

from installers import bundle, wheelhouse
from localmed.library.intact import sha256_of
from localmed.upkeep import signing


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="localmed-bundle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="make a bundle")
    make.add_argument("out", type=Path)
    make.add_argument("--root", type=Path, required=True, help="the newest root; it holds those before it")
    make.add_argument(
        "--key", dest="keys", type=Path, action="append", default=[], help="a private key; the other may sign later"
    )
    make.add_argument("--version", type=int, required=True, help="higher than that of the bundle before")
    make.add_argument(
        "--extra", dest="extras", action="append", default=[], help="llama, torch, workstation, ocr, nlp, desktop, eval"
    )
    parts = {
        "model": "a folder or file named after its manifest in models/",
        "pack": "a content pack",
        "evidence": "a file or folder for localmed evidence",
        "deb": "a Debian package",
    }
    for name, text in parts.items():
        many = name if name == "evidence" else f"{name}s"
        make.add_argument(f"--{name}", dest=many, type=Path, action="append", default=[], help=text)
    make.add_argument("--lock", type=Path, help="packages and hashes of an earlier build (localmed-bundle lock)")
    make.add_argument("--wheels", type=Path, help="wheels that are there already, in the place of fetching")
    make.add_argument("--days", type=int, default=365, help="for which it may be installed")
    make.add_argument("--archive", action="store_true", help="and a tar of it")
    lock = commands.add_parser("lock", help="write the packages with their hashes to a file")
    lock.add_argument("file", type=Path)
    lock.add_argument("--extra", dest="extras", action="append", default=[])
    sign = commands.add_parser("sign", help="add a signature, where the other key is")
    sign.add_argument("out", type=Path)
    sign.add_argument("--key", dest="keys", type=Path, action="append", required=True)
    chosen = parser.parse_args()
    if chosen.command == "lock":
        print(f"{wheelhouse.lock(chosen.extras, chosen.file)} packages in {chosen.file}")
    elif chosen.command == "sign":
        print(f"signed by {signing.add_signatures(chosen.out, [signing.load_key(key) for key in chosen.keys])} keys")
    else:
        _build(chosen)


def _build(chosen: argparse.Namespace) -> None:
    values = {name: value for name, value in vars(chosen).items() if name not in ("command", "archive")}
    count = bundle.build(bundle.Plan(**values))
    print(f"{count} files in {chosen.out}, signed by {len(chosen.keys)} keys")
    print(f"Tell those who install it, on another way: sha256 of install.sh {sha256_of(chosen.out / 'install.sh')}")
    if chosen.archive:
        with tarfile.open(f"{chosen.out}.tar", "w") as archive:
            archive.add(chosen.out, chosen.out.name)


if __name__ == "__main__":
    main()
