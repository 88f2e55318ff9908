"""Sealing of questions and comments before they are stored: AES-256-GCM under the site's own key.

The key is ``<data>/history.key``, readable by its owner only. It protects copies of ``site.sqlite`` without the key (a
disk image of the file, a look into the database), and against moving rows between users: kind, id and owner of a row
are authenticated. It does not protect against an account that can read the whole data folder; disk encryption does.
Without the key sealed data is lost.
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
    """Seal ``content``, to be opened only with the same ``identity`` (kind, id, owner)."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(_key(data)).encrypt(nonce, content, _bound(identity))


def unseal(data: Path, sealed: bytes, *identity: str) -> bytes:
    """Open sealed content; raise ``Damaged`` if key, content or identity differ."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(_stored_key(data)).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(identity))
    except (InvalidTag, ValueError, OSError):
        raise Damaged("history.sealed", file=str(data / KEY)) from None


def hash_of(text: str) -> str:
    """Return the sha256 that is stored in place of a secret."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _bound(identity: tuple[str, ...]) -> bytes:
    return "\0".join(identity).encode()


def _key(data: Path) -> bytes:
    """Return the key, created if missing; safe for two processes at once."""
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
    """Return the key; raise ``Damaged`` or ``OSError`` if there is none."""
    path = data / KEY
    key = files.own_bytes(path)
    if len(key) != KEY_BYTES:
        raise Damaged("history.sealed", file=str(path))
    return key
