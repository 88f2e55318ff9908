"""What the self-test of a chat model came to, kept beside the registry: ``chat_roles.json``.

It counts for the model that was tested and for no other; a file that cannot be read is as none, since all that it does
is to leave roles to rules.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from localmed import files
from localmed.ports import ChatIdentity

FILE = "chat_roles.json"


def unfit(folder: Path, identity: ChatIdentity) -> frozenset[str]:
    """The roles in which the model ``identity`` failed; none where it was not tested."""
    try:
        kept = json.loads((folder / FILE).read_text("utf-8"))
        return frozenset(map(str, kept["unfit"])) if kept["model"] == _key(identity) else frozenset()
    except (OSError, ValueError, TypeError, KeyError):
        return frozenset()


def keep(folder: Path, identity: ChatIdentity, roles: Collection[str]) -> None:
    """Note that ``identity`` failed in ``roles``, in the place of what was noted before."""
    written = json.dumps({"model": _key(identity), "unfit": sorted(roles)}, indent=1)
    files.replace(folder / FILE, written.encode(), mode=0o666)  # less the umask


def _key(identity: ChatIdentity) -> str:
    return f"{identity.name} {identity.sha256}".strip()
