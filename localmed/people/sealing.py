"""Sealing what people asked and wrote before it is stored: AES-256-GCM under a key of the site's own.

The key is ``<data>/history.key``, readable by its owner only. It protects copies of ``site.sqlite`` that leave
without it (a backup, a disk image of the file alone, a look into the database) and rows that somebody moves to another
user: what a row is and whose it is are sealed with it. It does not protect from an account that may read the whole
data folder, which can read the key too; for that the disk is encrypted. Without the key what was sealed cannot be read
any more.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from localmed.domain.errors import Damaged
from localmed.library import layout
from localmed.process import files

KEY = layout.HISTORY_KEY
KEY_BYTES, NONCE_BYTES = 32, 12  # AES-256; the nonce that GCM is made for


def seal(data: Path, content: bytes, *identity: str) -> bytes:
    """``content`` sealed, to be opened with the same ``identity`` (what it is, its id, whose it is) alone."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(_key(data)).encrypt(nonce, content, _bound(identity))


def unseal(data: Path, sealed: bytes, *identity: str) -> bytes:
    """What ``seal`` was given; raise ``Damaged`` where key, content or identity are others."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(_stored_key(data)).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(identity))
    except (InvalidTag, ValueError, OSError):
        raise Damaged("history.sealed", file=str(data / KEY)) from None


def hash_of(text: str) -> str:
    """The sha256 by which a secret, or what may be one, is known here without being kept."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _bound(identity: tuple[str, ...]) -> bytes:
    return "\0".join(identity).encode()


def _key(data: Path) -> bytes:
    """The key, made where there is none: of two processes that make it at once one is first, the other reads its."""
    path = data / KEY
    if not path.exists():
        fresh = path.with_name(f"{KEY}.{os.getpid()}.{secrets.token_hex(4)}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(secrets.token_bytes(KEY_BYTES))
                stream.flush()
                os.fsync(handle)
            os.link(fresh, path)  # fails where there is one already
        except FileExistsError:
            pass
        finally:
            fresh.unlink(missing_ok=True)
    return _stored_key(data)


def _stored_key(data: Path) -> bytes:
    """The key; raise ``Damaged`` or ``OSError`` where there is none."""
    path = data / KEY
    key = files.own_bytes(path)
    if len(key) != KEY_BYTES:
        raise Damaged("history.sealed", file=str(path))
    return key
