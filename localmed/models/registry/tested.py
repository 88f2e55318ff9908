"""What the self-test of a chat model came to, kept beside the registry: ``chat_roles.json``.

It counts for the model that was tested and for no other; a file that cannot be read is as none, and a model that was
not tested serves no role that rules can serve.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from localmed import files
from localmed.ports import ChatIdentity

FILE = "chat_roles.json"


def unfit(folder: Path, identity: ChatIdentity) -> frozenset[str] | None:
    """The roles in which the model ``identity`` failed; None where it was not tested."""
    try:
        kept = json.loads(files.own_bytes(folder / FILE))
        return frozenset(map(str, kept["unfit"])) if kept["model"] == _key(identity) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def is_tested(folder: Path, chat: str) -> bool:
    """Whether the model called ``chat`` has been through its self-test, or was trusted without it."""
    try:
        model = str(json.loads(files.own_bytes(folder / FILE))["model"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return model == chat or model.startswith(f"{chat} ")


def keep(folder: Path, identity: ChatIdentity, roles: Collection[str]) -> None:
    """Note that ``identity`` failed in ``roles``, in the place of what was noted before."""
    written = json.dumps({"model": _key(identity), "unfit": sorted(roles)}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)  # a site with a chat server has registered no model
    files.replace(folder / FILE, written.encode(), mode=0o666)  # less the umask


def _key(identity: ChatIdentity) -> str:
    return f"{identity.name} {identity.sha256}".strip()
