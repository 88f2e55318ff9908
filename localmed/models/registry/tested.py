"""What the self-test of a chat model came to, kept beside the registry: ``chat_roles.json``.

It counts for the model that was tested and for no other, and for each role only as long as what was asked is what would
be asked today: an update that changes the questions or a role's prompt leaves that role to rules until the test has
been run again. A file that cannot be read is as none, and a model that was not tested serves no role that rules can
serve. A model that somebody trusted without a test is trusted whatever the questions are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from localmed import files
from localmed.ports import ChatIdentity

FILE = "chat_roles.json"
Questions = Mapping[str, str]  # role -> the fingerprint of what a model is asked in it


@dataclass(frozen=True, slots=True)
class Result:
    """What the test of ``model`` came to: the roles that it failed in, of these questions; None: trusted untested."""

    model: str
    unfit: frozenset[str]
    questions: Questions | None

    def of(self, identity: ChatIdentity) -> bool:
        """Whether it is the result of the very model ``identity``."""
        return self.model == _key(identity)

    def outdated(self, questions: Questions) -> frozenset[str]:
        """The roles in which something else would be asked today: not tested."""
        if self.questions is None:
            return frozenset()
        return frozenset(role for role, now in questions.items() if self.questions.get(role) != now)


def read(folder: Path) -> Result | None:
    """What is kept in ``folder``, None if there is nothing."""
    try:
        kept = json.loads(files.own_bytes(folder / FILE))
        questions = None if kept.get("trusted") is True else dict(kept.get("questions", {}))
        return Result(str(kept["model"]), frozenset(map(str, kept["unfit"])), questions)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def unfit(folder: Path, identity: ChatIdentity, questions: Questions) -> frozenset[str] | None:
    """The roles in which the model ``identity`` failed or is not tested by ``questions``; None: it was not tested."""
    kept = read(folder)
    return kept.unfit | kept.outdated(questions) if kept and kept.of(identity) else None


def of_chat(folder: Path, chat: str) -> Result | None:
    """The result of the model called ``chat``, None if it was not tested."""
    kept = read(folder)
    return kept if kept and (kept.model == chat or kept.model.startswith(f"{chat} ")) else None


def keep(folder: Path, identity: ChatIdentity, roles: Collection[str], questions: Questions | None) -> None:
    """Note that ``identity`` failed in ``roles``, of these ``questions``, in the place of what was noted before."""
    of = {"trusted": True} if questions is None else {"questions": dict(questions)}
    written = json.dumps({"model": _key(identity), "unfit": sorted(roles), **of}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)  # a site with a chat server has registered no model
    files.replace(folder / FILE, written.encode(), mode=0o666)  # less the umask


def _key(identity: ChatIdentity) -> str:
    return f"{identity.name} {identity.sha256}".strip()
