"""What the self-test of a chat model came to, kept beside the registry: ``chat_roles.json``.

It counts for the model that was tested and for no other, and for each role only as long as what was asked is what would
be asked today: an update that changes the questions or a role's prompt leaves that role to rules until the test has
been run again. A file that cannot be read is as none, and a model that was not tested serves no role that rules can
serve. A model that somebody trusted without a test is trusted whatever the questions are.

With it is kept what the server of a chat model can do (``Features``), as the test found it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from localmed.domain.ports import ChatIdentity
from localmed.process import files

FILE = "chat_roles.json"
Questions = Mapping[str, str]  # role -> the fingerprint of what a model is asked in it


@dataclass(frozen=True, slots=True)
class Features:
    """What a chat model's server can do; all of it until the self-test has found otherwise.

    ``schema``: it holds its model to a JSON schema. ``logprobs``: it tells the probabilities of the first token.
    """

    schema: bool = True
    logprobs: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What the test of ``model`` came to: the roles that it failed in, of these questions; None: trusted untested."""

    model: str
    unfit: frozenset[str]
    questions: Questions | None
    features: Features = Features()

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
        features = Features(**{name: bool(value) for name, value in kept.get("features", {}).items()})
        return Result(str(kept["model"]), frozenset(map(str, kept["unfit"])), questions, features)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def unfit(kept: Result | None, identity: ChatIdentity, questions: Questions) -> frozenset[str] | None:
    """The roles in which the model ``identity`` failed or is not tested by ``questions``; None: it was not tested."""
    return kept.unfit | kept.outdated(questions) if kept and kept.of(identity) else None


def of_chat(folder: Path, chat: str) -> Result | None:
    """The result of the model called ``chat``, None if it was not tested."""
    kept = read(folder)
    return kept if kept and (kept.model == chat or kept.model.startswith(f"{chat} ")) else None


def features(folder: Path, chat: str) -> Features:
    """What the server of the model called ``chat`` can do."""
    kept = of_chat(folder, chat)
    return kept.features if kept else Features()


def keep(
    folder: Path,
    identity: ChatIdentity,
    roles: Collection[str],
    questions: Questions | None,
    features: Features | None = None,
) -> None:
    """Note that ``identity`` failed in ``roles``, of these ``questions``, in the place of what was noted before.

    ``features``: None where they were not looked at; what was known of the same model stays.
    """
    before = read(folder)
    if features is None:
        features = before.features if before and before.of(identity) else Features()
    of = {"trusted": True} if questions is None else {"questions": dict(questions)}
    kept = {"model": _key(identity), "unfit": sorted(roles), **of, "features": asdict(features)}
    folder.mkdir(parents=True, exist_ok=True)  # a site with a chat server has registered no model
    files.replace(folder / FILE, json.dumps(kept, indent=1).encode(), mode=0o666)  # less the umask


def _key(identity: ChatIdentity) -> str:
    return f"{identity.name} {identity.sha256}".strip()
