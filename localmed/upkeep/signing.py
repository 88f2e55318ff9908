"""The publisher's side: keys, roots, and signed folders in the form that ``verifier.py`` describes.

Two Ed25519 keys sign, each where it is kept, never on a hospital's machine. Signatures can be added later.

Not covered: keys in hardware.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain.errors import InputError, UsageError
from localmed.process import files
from localmed.upkeep.verifier import CONTENT, FORMAT, KEYS_LEAST, MANIFEST, ROOT, Refused, Trust, safe_path

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILES_MOST = 100_000  # of one folder; their manifest has some 20 MB
ROOT_DAYS = 3650  # a root outlives the machine it is trusted on; its keys are replaced by a new root, not by expiry


def make_key(path: Path) -> str:
    """Create an Ed25519 key at ``path`` (PEM, mode 0600); return its public half."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    files.write_new(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    files.sync(path)
    return public(key)


def load_key(path: Path) -> Ed25519PrivateKey:
    """Return the private key in ``path``; raise ``InputError`` if it is no Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(files.contents(path), None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("signing.no_key", file=str(path))
    return key


def public(key: Ed25519PrivateKey) -> str:
    """Return the public half of ``key`` as hexadecimal."""
    return key.public_key().public_bytes_raw().hex()


def make_root(
    path: Path,
    keys: Sequence[Ed25519PrivateKey],
    before: Path | None = None,
    before_keys: Sequence[Ed25519PrivateKey] = (),
) -> str:
    """Write the root that lists ``keys`` to ``path``, after those in ``before``; return its fingerprint.

    ``before_keys`` sign it too, for sites that trust the previous root. Raise ``UsageError`` for too few keys.
    """
    roots = read_root(before).roots if before else ()
    listed, also = ({public(key) for key in some} for some in (keys, before_keys))
    if len(listed) < KEYS_LEAST or (roots and len(also & {*json.loads(roots[-1]["signed"])["keys"]}) < KEYS_LEAST):
        raise UsageError("signing.keys", least=KEYS_LEAST)
    expires = _text(datetime.now(UTC) + timedelta(days=ROOT_DAYS))
    values = {"kind": "root", "version": len(roots) + 1, "expires": expires, "keys": sorted(listed)}
    content = json.dumps([*roots, _signed({"signed": json.dumps(values)}, [*keys, *before_keys])]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, content, 0o644)
    return fingerprint(path)


def read_root(path: Path) -> Trust:
    """Return the trust in the keys of the file ``path``; raise ``InputError`` if it is no root."""
    with as_errors():
        return Trust.of(files.contents(path), str(path))


@contextmanager
def as_errors() -> Iterator[None]:
    """Translate the verifier's ``Refused`` into ``InputError``."""
    try:
        yield
    except Refused as refused:
        raise InputError(refused.code, **refused.parameters) from None


def fingerprint(root: Path) -> str:
    """Return the sha256 of the root file in groups of eight, for people to compare."""
    digest = hashlib.sha256(files.contents(root)).hexdigest()
    return " ".join(digest[start : start + 8] for start in range(0, len(digest), 8))


def sign_folder(
    folder: Path, root: Path, keys: Sequence[Ed25519PrivateKey], kind: str, name: str, version: int, days: float,
    created: datetime | None = None,
) -> int:  # fmt: skip
    """Write the manifest of ``folder``, valid for ``days``, signed by ``keys``; return its number of files."""
    read_root(root)
    created = created or datetime.now(UTC)
    described = {}
    for path in names_in(folder / CONTENT):
        with (folder / CONTENT / path).open("rb") as file:
            described[path] = (os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())
    if len(described) > FILES_MOST:
        raise InputError("pack.files", most=FILES_MOST)
    values = {"kind": kind, "format": FORMAT, "name": name, "version": version, "created": _text(created),
              "expires": _text(created + timedelta(days=days)), "files": described}  # fmt: skip
    files.replace(folder / ROOT, files.contents(root), 0o644)
    files.replace(folder / MANIFEST, json.dumps({"signed": json.dumps(values)}).encode(), 0o644)
    add_signatures(folder, keys)
    return len(described)


def add_signatures(folder: Path, keys: Sequence[Ed25519PrivateKey]) -> int:
    """Sign the manifest of ``folder`` with ``keys`` too; return the number of signatures."""
    path = folder / MANIFEST
    try:
        document = _signed(json.loads(files.contents(path, 64 * files.SMALL)), keys)
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InputError("pack.malformed", name=MANIFEST) from None
    files.replace(path, json.dumps(document).encode(), 0o644)
    return len(document["signatures"])


def _signed(document: dict[str, Any], keys: Sequence[Ed25519PrivateKey]) -> dict[str, Any]:
    more = {public(key): key.sign(document["signed"].encode()).hex() for key in keys}
    return {**document, "signatures": {**document.get("signatures", {}), **more}}


def _text(time: datetime) -> str:
    return time.replace(microsecond=0).isoformat()


def names_in(folder: Path) -> list[str]:
    """Return the paths of the files under ``folder``; raise ``InputError`` for links, devices and unsafe names."""
    names = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise InputError("pack.malformed", name=name)
        if path.is_file():
            names.append(name)
    with as_errors():
        return [safe_path(name) for name in names]
