"""Folders signed after The Update Framework (TUF 1.0): what bundles and content packs are carried in.

::

    FOLDER/metadata/  N.root.json  timestamp.json  snapshot.json  targets.json
    FOLDER/targets/   the files

Two Ed25519 keys that never lie on a hospital's machine sign every role, each signature made where its key is: one
stolen key signs nothing that is accepted. No file names another's hash but ``targets.json``, so that a signature can
be added to one at any time; versions bind them together. Verified by ``trust.py``, and before any package is installed
by the installer's own ``signatures.py``, which a test holds against python-tuf.

Not covered: keys in hardware (securesystemslib can; nothing here asks it to).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain.errors import InputError, UsageError, reason
from localmed.process import files

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner
    from tuf.api.metadata import Metadata, Root

METADATA, TARGETS = "metadata", "targets"
THRESHOLD = 2  # keys that must sign, of every role
ROOT_DAYS = 3650  # a root outlives the machine it is trusted on; its keys are replaced by a new root, not by expiry
FILES_MOST = 100_000  # of one folder
ROLES = ("root", "timestamp", "snapshot", "targets")


def make_key(path: Path) -> str:
    """Make an Ed25519 key at ``path`` (PEM, mode 0600); return its id."""
    from securesystemslib.signer import CryptoSigner

    signer = CryptoSigner.generate_ed25519()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError("signing.key_exists", file=str(path)) from None
    except OSError as error:
        raise InputError("file.unreadable", file=str(path), reason=reason(error)) from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(signer.private_bytes)
        stream.flush()
        os.fsync(handle)
    return str(signer.public_key.keyid)


def load_key(path: Path) -> CryptoSigner:
    """The signer of the private key in ``path``; raise ``InputError`` for what is no Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    try:
        key = load_pem_private_key(files.contents(path), None)
    except (ValueError, TypeError):
        raise InputError("signing.no_key", file=str(path)) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("signing.no_key", file=str(path))
    return CryptoSigner(key)


def make_root(
    path: Path, signers: Sequence[CryptoSigner], before: Path | None = None, also: Sequence[CryptoSigner] = ()
) -> str:
    """Write the root that trusts the keys of ``signers`` to ``path``; return its fingerprint.

    ``before`` is the root that it replaces, which the keys in ``also`` are of: who trusts that one trusts this one
    then. Raise ``UsageError`` for fewer keys than must sign.
    """
    from tuf.api.metadata import Metadata, Root

    keys = {signer.public_key.keyid: signer.public_key for signer in signers}
    if len(keys) < THRESHOLD:
        raise UsageError("signing.keys", least=THRESHOLD)
    version = read_root(before).signed.version + 1 if before else 1
    root = Root(version=version, expires=_after(datetime.now(UTC), ROOT_DAYS), consistent_snapshot=False)
    for key in keys.values():
        for role in ROLES:
            root.add_key(key, role)
    for role in ROLES:
        root.roles[role].threshold = THRESHOLD
    metadata = Metadata(root)
    for signer in {signer.public_key.keyid: signer for signer in (*signers, *also)}.values():
        metadata.sign(signer, append=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, metadata.to_bytes(), 0o644)
    return fingerprint(path)


def read_root(path: Path) -> Metadata[Root]:
    """The root in ``path``; raise ``InputError`` for what is none."""
    from tuf.api.exceptions import RepositoryError
    from tuf.api.metadata import Metadata, Root

    try:
        metadata: Metadata[Root] = Metadata.from_bytes(files.contents(path))
        if isinstance(metadata.signed, Root):
            metadata.verify_delegate("root", metadata)  # by itself
            return metadata
    except (RepositoryError, ValueError, TypeError, LookupError):
        pass
    raise InputError("signing.no_root", file=str(path))


def fingerprint(root: Path) -> str:
    """What people compare of a root, read out or printed: the sha256 of its file, in groups of eight."""
    import hashlib

    digest = hashlib.sha256(files.contents(root)).hexdigest()
    return " ".join(digest[start : start + 8] for start in range(0, len(digest), 8))


def sign_folder(
    folder: Path, roots: Sequence[Path], signers: Sequence[CryptoSigner], version: int, expires: datetime
) -> int:
    """Describe every file of ``folder``/targets, signed by ``signers``; return how many there are.

    ``roots`` are all roots from the first on. Signatures that are still missing are added by ``add_signatures``.
    """
    from tuf.api.metadata import Metadata, MetaFile, Snapshot, TargetFile, Targets, Timestamp

    described = {name: TargetFile.from_file(name, str(folder / TARGETS / name)) for name in names_in(folder / TARGETS)}
    roles = {
        "targets": Targets(version=version, expires=expires, targets=described),
        "snapshot": Snapshot(version=version, expires=expires, meta={"targets.json": MetaFile(version)}),
        "timestamp": Timestamp(version=version, expires=expires, snapshot_meta=MetaFile(version)),
    }
    target = folder / METADATA
    target.mkdir(mode=0o755, exist_ok=True)
    for root in roots:
        files.replace(target / f"{read_root(root).signed.version}.root.json", files.contents(root), 0o644)
    for name, signed in roles.items():
        files.replace(target / f"{name}.json", Metadata(signed).to_bytes(), 0o644)
    add_signatures(folder, signers)
    return len(described)


def add_signatures(folder: Path, signers: Sequence[CryptoSigner]) -> int:
    """Sign the metadata of ``folder`` by ``signers`` too; return how many keys have signed now."""
    from tuf.api.exceptions import RepositoryError
    from tuf.api.metadata import Metadata

    count = 0
    for name in ("targets", "snapshot", "timestamp"):
        path = folder / METADATA / f"{name}.json"
        try:
            metadata: Metadata[Any] = Metadata.from_bytes(files.contents(path, 64 * files.SMALL))
        except RepositoryError:
            raise InputError("pack.metadata", name=path.name) from None
        for signer in signers:
            metadata.sign(signer, append=True)
        files.replace(path, metadata.to_bytes(), 0o644)
        count = len(metadata.signatures)
    return count


def names_in(folder: Path) -> list[str]:
    """The files under ``folder`` by their paths in it; raise ``InputError`` for a link or a device."""
    names = []
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            raise InputError("pack.not_regular", name=name)
        names.append(safe_path(name))
    if len(names) > FILES_MOST:
        raise InputError("pack.files", most=FILES_MOST)
    return sorted(names)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def safe_path(name: str) -> str:
    """``name`` if it is a path below a folder and nothing else; raise ``InputError``."""
    parts = name.split("/")
    hostile = "\\" in name or "\0" in name or not name.isprintable() or len(name.encode()) > 1024
    if hostile or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts):
        raise InputError("pack.path", name=name[:80])
    return name


def _after(now: datetime, days: int) -> datetime:
    return (now + timedelta(days=days)).replace(microsecond=0)
