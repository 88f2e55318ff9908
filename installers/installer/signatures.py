"""Verifying a bundle before any package is installed: TUF's rules by the standard library, Ed25519 by openssl.

python-tuf itself would have to come from the bundle, unverified. What must be trusted before it can verify anything is
two files whose digests ``install.sh`` states (this program and the root); the digest of ``install.sh`` is compared by a
person, the first time. ``openssl`` is the machine's own. The rules are those of the specification's client workflow
(5.3 to 5.6) for folders as ``localmed.upkeep.signing`` writes them; a test holds its verdicts against
python-tuf's.

Not covered: delegations, consistent snapshots, hashes in snapshot and timestamp; nothing here writes them.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOST = 64 * 2**20  # bytes of one file of metadata: some 200,000 files described
ROTATIONS = 256  # roots followed from the one that is trusted
PREFIX = bytes.fromhex("302a300506032b6570032100")  # what makes 32 bytes of Ed25519 a SubjectPublicKeyInfo (RFC 8410)


class Refused(Exception):
    """A bundle or a machine that is not taken; ``code`` is that of a message, with its parameters."""

    def __init__(self, code: str, **parameters: object) -> None:
        super().__init__(code)
        self.code, self.parameters = code, parameters


@dataclass(frozen=True)
class Trusted:
    """What is trusted after a check: the newest root's bytes, the versions seen, and the files by path."""

    root: bytes
    versions: dict[str, int]
    files: dict[str, tuple[int, str]]  # bytes, sha256
    expires: str


def verify(metadata: Path, root: bytes, known: dict[str, int], now: datetime | None = None) -> Trusted:
    """Check the metadata in the folder ``metadata`` by the trusted ``root``; raise ``Refused`` for a broken rule."""
    moment = now or datetime.now(UTC)
    root, trusted = _newest_root(metadata, root)
    _in_date(trusted, moment)
    timestamp = _role(metadata, "timestamp", trusted, known, moment)
    version = _number(timestamp["meta"]["snapshot.json"], "version")
    if version < known.get("snapshot", 0):
        raise Refused("older")
    snapshot = _role(metadata, "snapshot", trusted, known, moment, version)
    version = _number(snapshot["meta"]["targets.json"], "version")
    targets = _role(metadata, "targets", trusted, known, moment, version)
    files = {_safe(name): (_number(file, "length"), str(file["hashes"]["sha256"])) for name, file in _entries(targets)}
    versions = {"timestamp": timestamp["version"], "snapshot": snapshot["version"], "targets": targets["version"]}
    return Trusted(root, versions, files, str(timestamp["expires"]))


def _entries(targets: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    entries = targets.get("targets")
    if not isinstance(entries, dict) or targets.get("delegations"):
        raise Refused("metadata", name="targets.json")
    return list(entries.items())


def _newest_root(metadata: Path, root: bytes) -> tuple[bytes, dict[str, Any]]:
    """The last root that the trusted one leads to, each signed by the one before and by itself."""
    trusted = _signed(root, "root")["signed"]
    _check(_signed(root, "root"), trusted, "root")
    for _ in range(ROTATIONS):
        path = metadata / f"{trusted['version'] + 1}.root.json"
        if not path.exists():
            break
        content = _content(path)
        envelope = _signed(content, "root")
        _check(envelope, trusted, "root")
        _check(envelope, envelope["signed"], "root")
        if envelope["signed"]["version"] != trusted["version"] + 1:
            raise Refused("older")
        root, trusted = content, envelope["signed"]
    return root, trusted


def _role(
    metadata: Path, role: str, root: dict[str, Any], known: dict[str, int], now: datetime, version: int = 0
) -> dict[str, Any]:
    """The signed part of a role's metadata; ``version`` is the one that it must have, if another role says so."""
    envelope = _signed(_content(metadata / f"{role}.json"), role)
    _check(envelope, root, role)
    signed: dict[str, Any] = envelope["signed"]
    if _number(signed, "version") < known.get(role, 0) or (version and signed["version"] != version):
        raise Refused("older")
    _in_date(signed, now)
    return signed


def _content(path: Path) -> bytes:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST:
            raise Refused("metadata", name=path.name)
        return path.read_bytes()
    except OSError:
        raise Refused("incomplete", name=path.name) from None


def _signed(content: bytes, role: str) -> dict[str, Any]:
    """The envelope of a role's metadata, as far as its form goes."""
    try:
        envelope = json.loads(content)
        signed, signatures = envelope["signed"], envelope["signatures"]
        right = signed["_type"] == role and signed["spec_version"].startswith("1.") and _number(signed, "version") > 0
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise Refused("metadata", name=f"{role}.json") from None
    if not right or not isinstance(signatures, list):
        raise Refused("metadata", name=f"{role}.json")
    return dict(envelope)


def _number(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    if type(value) is not int or value < 0:
        raise Refused("metadata", name=name)
    return value


def _check(envelope: dict[str, Any], root: dict[str, Any], role: str) -> None:
    """Raise ``Refused`` unless as many different keys as ``root`` asks for have signed."""
    try:
        keyids, threshold = root["roles"][role]["keyids"], _number(root["roles"][role], "threshold")
        signatures = {entry["keyid"]: bytes.fromhex(entry["sig"]) for entry in envelope["signatures"] if entry["sig"]}
        public = {root["keys"][keyid]["keyval"]["public"]: signatures[keyid] for keyid in keyids if keyid in signatures}
        content = canonical(envelope["signed"])
        twice = len(signatures) != len(envelope["signatures"])
    except (ValueError, TypeError, LookupError, RecursionError):
        raise Refused("metadata", name=f"{role}.json") from None
    good = sum(valid(bytes.fromhex(key), content, signature) for key, signature in public.items())
    if twice or threshold < 1 or good < threshold:
        raise Refused("signatures", name=f"{role}.json")


def valid(public: bytes, content: bytes, signature: bytes) -> bool:
    """Whether ``signature`` is that of ``content`` by the Ed25519 key ``public`` (32 bytes), asked of openssl."""
    if len(public) != 32 or len(signature) != 64:
        return False
    with tempfile.TemporaryDirectory() as folder:
        key, text, sealed = (Path(folder) / name for name in ("key.der", "text", "sig"))
        key.write_bytes(PREFIX + public)
        text.write_bytes(content)
        sealed.write_bytes(signature)
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", str(key),
                   "-rawin", "-in", str(text), "-sigfile", str(sealed)]  # fmt: skip
        try:
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            raise Refused("no_openssl") from None


def canonical(value: object) -> bytes:
    """``value`` as canonical JSON (OLPC's), which is what is signed."""
    return _canonical(value).encode()


def _canonical(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_canonical(name)}:{_canonical(value[name])}" for name in sorted(value)) + "}"
    raise Refused("metadata", name=type(value).__name__)


def _in_date(signed: dict[str, Any], now: datetime) -> None:
    try:
        expires = datetime.strptime(signed["expires"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (ValueError, TypeError, LookupError):
        raise Refused("metadata", name=str(signed.get("_type"))) from None
    if now >= expires:
        raise Refused("expired", day=expires.date().isoformat(), today=now.date().isoformat())


def _safe(name: str) -> str:
    parts = name.split("/")
    if "\\" in name or not name.isprintable() or any(part in ("", ".", "..") for part in parts):
        raise Refused("path", name=name[:80])
    return name


def copied(source: Path, target: Path, size: int, sha256: str, name: str) -> None:
    """Copy a file while it is hashed; raise ``Refused`` if it is not what was signed. No link is followed."""
    digest, left = hashlib.sha256(), size
    try:
        for folder in (source, *source.parents[: name.count("/")]):
            if folder.is_symlink():
                raise Refused("altered", name=name)
        if not source.is_file():
            raise Refused("incomplete", name=name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with source.open("rb") as stream, target.open("xb") as copy:
            while piece := stream.read(min(2**20, left + 1)):
                left -= len(piece)
                if left < 0:
                    break
                digest.update(piece)
                copy.write(piece)
    except OSError as error:
        raise Refused("unreadable", name=name, reason=error.strerror or type(error).__name__) from None
    if left or digest.hexdigest() != sha256:
        raise Refused("altered", name=name)
