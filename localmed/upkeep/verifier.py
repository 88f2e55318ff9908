"""Verification of content packs (in localmed) and of the offline bundle (in its installer).

::

    FOLDER/root.json        the publisher's roots, oldest first: each lists keys, any two of which must sign
    FOLDER/manifest.json    kind, name, version, created, expires; size and sha256 of every file
    FOLDER/content/         the files

Both JSON files contain documents ``{"signed": TEXT, "signatures": {PUBLIC KEY: SIGNATURE}}``, Ed25519 over TEXT.

Rules: two different keys of the newest root have signed the manifest. A root is signed by two of its own keys and two
of the previous root's; a site never goes back to an older root. A version is not below the newest accepted one, and has
one content. Creation and expiry dates must fit the clock. One manifest names all files, so versions do not mix. A file
is used only from a verified copy; links and devices are not opened.

It needs only the standard library and ``openssl``: ``installers/bundle.py`` puts this file into ``installer.pyz``,
which runs before any package of the bundle is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

ROOT, MANIFEST, CONTENT = "root.json", "manifest.json", "content"
FORMAT = 1
KEYS_LEAST = 2  # that must sign: one stolen key signs nothing
ROOTS_MOST = 256  # each costs four calls of openssl
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")  # of a pack or bundle; a folder is called so
SHA256 = re.compile(r"[0-9a-f]{64}")
PIECE = 2**20  # bytes read at a time
DOCUMENT_MOST = 64  # pieces of a manifest: some 300,000 files
SKEW = timedelta(days=1)  # by which clocks of two machines may differ: time zones set wrongly
PREFIX = bytes.fromhex("302a300506032b6570032100")  # makes 32 bytes of Ed25519 a SubjectPublicKeyInfo (RFC 8410)


class Refused(Exception):
    """A folder or machine that is not accepted; ``code`` is a message's, with its parameters."""

    def __init__(self, code: str, **parameters: str | int | float) -> None:
        super().__init__(code)
        self.code, self.parameters = code, parameters


@dataclass(frozen=True, slots=True)
class Trust:
    """The roots that a machine trusts, and the newest accepted version of each name with its manifest's sha256."""

    roots: Sequence[Any]
    taken: dict[str, tuple[int, str]]

    @classmethod
    def of(cls, content: bytes, name: str = ROOT) -> Trust:
        """Parse a root file called ``name``, or the output of ``kept``."""
        with _well_formed(name):
            values = json.loads(content)
            roots, taken = (values["roots"], values["taken"]) if isinstance(values, dict) else (values, {})
            if not 1 <= len(roots) <= ROOTS_MOST:
                raise ValueError
            before = None
            for number, document in enumerate(roots, 1):
                root = json.loads(document["signed"])
                if (root["kind"], root["version"]) != ("root", number):
                    raise ValueError
                for signers in (root, before or root):
                    _signed_by(signers["keys"], document, name)
                before = root
            return cls(roots, {one: (version, sha256) for one, (version, sha256) in taken.items()})

    def kept(self) -> bytes:
        """Return the file's content."""
        return json.dumps({"roots": self.roots, "taken": self.taken}).encode()

    def follow(self, roots: Sequence[Any]) -> Trust:
        """Adopt the longer list of roots; raise ``Refused`` if ``roots`` are another publisher's."""
        shorter, longer = sorted((self.roots, roots), key=len)
        if any(one["signed"] != other["signed"] for one, other in zip(shorter, longer, strict=False)):
            raise Refused("pack.signatures", name=ROOT)
        return Trust(longer, self.taken)

    def after(self, manifest: Manifest) -> Trust:
        """Return the trust after ``manifest`` was accepted."""
        taken = {**self.taken, manifest.name: (manifest.version, manifest.sha256)}
        return Trust(self.follow(manifest.roots).roots, taken)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A folder's manifest: signed, in date and not older than an accepted one. Its files are not read yet."""

    folder: Path
    name: str
    version: int
    created: datetime
    expires: datetime
    files: dict[str, tuple[int, str]]  # size and sha256
    sha256: str  # its own
    roots: Sequence[Any]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(size for size, _ in self.files.values())

    def read(self, name: str, most: int = PIECE) -> bytes:
        """Return the content of the small file ``name``; raise ``Refused`` if it was altered."""
        if self.files.get(name, (most + 1, ""))[0] > most:
            raise Refused("pack.malformed", name=name)
        return b"".join(self._pieces(name))

    def copy(self, name: str, target: Path) -> None:
        """Copy the file ``name`` to ``target``, synced; raise ``Refused`` if it was altered."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as copy:
            try:
                for piece in self._pieces(name):
                    copy.write(piece)
                copy.flush()
                os.fsync(copy.fileno())
            except BaseException:
                target.unlink()
                raise

    def _pieces(self, name: str) -> Iterator[bytes]:
        left, sha256 = self.files[name]
        digest = hashlib.sha256()
        for piece in _read(self.folder / CONTENT, name):
            left -= len(piece)
            if left < 0:
                break
            digest.update(piece)
            yield piece
        if digest.hexdigest() != sha256:
            raise Refused("pack.altered", name=name)


def verify(folder: Path, kind: str, trust: Trust, passed: datetime | None = None) -> Manifest:
    """Return the manifest of the ``kind`` ("pack", "bundle") in ``folder``; raise ``Refused`` with the broken rule.

    ``passed`` is a time that has certainly passed: a clock that was set back would accept expired folders.
    """
    roots = trust.follow(Trust.of(_content(folder, ROOT)).roots).roots
    root = json.loads(roots[-1]["signed"])
    with _well_formed(MANIFEST):
        document = json.loads(_content(folder, MANIFEST))
        values = _signed_by(root["keys"], document, MANIFEST)
        name, version, sha256 = values["name"], values["version"], _sha256(document)
        created, expires, last = (
            datetime.fromisoformat(time).astimezone(UTC)
            for time in (values["created"], values["expires"], root["expires"])
        )
        files = {safe_path(path): (size, digest) for path, (size, digest) in values["files"].items()}
        if (values["kind"], values["format"], type(version)) != (kind, FORMAT, int) or not NAME.fullmatch(name):
            raise ValueError
        if not all(type(size) is int and size >= 0 and SHA256.fullmatch(digest) for size, digest in files.values()):
            raise ValueError
    if (known := trust.taken.get(name)) and (version < known[0] or (version == known[0] and sha256 != known[1])):
        raise Refused("pack.older")
    now, passed, expires = datetime.now(UTC), max(created, passed or created), min(expires, last)
    if now + SKEW < passed:
        raise Refused("pack.clock", day=passed.date().isoformat())
    if now >= expires:
        raise Refused("pack.expired", day=expires.date().isoformat(), today=now.date().isoformat())
    return Manifest(folder, name, version, created, expires, files, sha256, roots)


def taken_already(folder: Path, trust: Trust) -> bool:
    """Whether the manifest in ``folder`` was accepted before; nothing else is compared."""
    with _well_formed(MANIFEST):
        return _sha256(json.loads(_content(folder, MANIFEST))) in {sha256 for _, sha256 in trust.taken.values()}


@contextmanager
def _well_formed(name: str) -> Iterator[None]:
    """Raise ``Refused`` for malformed content of the file ``name``."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        raise Refused("pack.malformed", name=name) from None


def _signed_by(keys: Collection[str], document: Any, name: str) -> dict[str, Any]:
    """Return the values in ``document``; raise ``Refused`` unless enough different ``keys`` have signed."""
    text, signatures = document["signed"], document["signatures"]
    signers = {bytes.fromhex(key): bytes.fromhex(signatures[key]) for key in keys if key in signatures}
    if sum(valid(key, text.encode(), signature) for key, signature in signers.items()) < KEYS_LEAST:
        raise Refused("pack.signatures", name=name)
    values: dict[str, Any] = json.loads(text)
    return values


@lru_cache(64)  # a site's own root is verified for every pack
def valid(public: bytes, text: bytes, signature: bytes) -> bool:
    """Whether ``signature`` of ``text`` is by the Ed25519 key ``public`` (32 bytes), according to openssl."""
    with tempfile.TemporaryDirectory() as folder:
        parts = {"key": PREFIX + public, "text": text, "signature": signature}
        for name, content in parts.items():
            (Path(folder) / name).write_bytes(content)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature"
        try:
            done = subprocess.run(command.split(), cwd=folder, capture_output=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            raise Refused("pack.openssl") from None
    if done.returncode and b"Verification Failure" not in done.stdout:  # openssl is too old
        raise Refused("pack.openssl")
    return done.returncode == 0


def safe_path(name: str) -> str:
    """Return ``name`` if it is a plain path below a folder; raise ``Refused`` otherwise."""
    hostile = "\\" in name or not name.isprintable() or len(name.encode()) > 1024
    if hostile or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in name.split("/")):
        raise Refused("pack.malformed", name=name[:80])
    return name


def _sha256(document: Any) -> str:
    return hashlib.sha256(document["signed"].encode()).hexdigest()


def _content(folder: Path, name: str) -> bytes:
    return b"".join(islice(_read(folder, name), DOCUMENT_MOST))


def _read(folder: Path, name: str) -> Iterator[bytes]:
    """Yield the content of the regular file ``folder``/``name``; no links are followed."""
    path = f"{os.path.realpath(folder)}/{name}"
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
            opened = Path(f"/proc/self/fd/{file.fileno()}").readlink()
            if opened != Path(path) or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused("pack.malformed", name=name)
            while piece := file.read(PIECE):
                yield piece
    except OSError:
        raise Refused("pack.incomplete", name=name) from None
