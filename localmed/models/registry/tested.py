"""Self-test results of chat models, stored beside the registry in ``chat_roles.json``.

A result holds for the tested model only, and for a role only while its questions and prompt are unchanged; after an
update that changes them, rules serve the role until the test has run again. An unreadable file counts as no result. An
untested model serves no role that rules can serve. A model that was trusted without a test stays trusted.

The result includes what the chat server can do (``Features``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from localmed.domain.ports import ChatIdentity
from localmed.process import files

FILE = "chat_roles.json"
Questions = Mapping[str, str]  # role -> fingerprint of its questions and prompt


@dataclass(frozen=True, slots=True)
class Features:
    """What a chat server can do; everything, until the self-test finds otherwise.

    ``schema``: it enforces a JSON schema. ``logprobs``: it returns the log-probabilities of the first token.
    """

    schema: bool = True
    logprobs: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """The result for ``model``: the roles that it failed, and the questions asked (None: trusted without a test)."""

    model: str
    unfit: frozenset[str]
    questions: Questions | None
    features: Features = Features()

    def of(self, identity: ChatIdentity) -> bool:
        """Whether this is the result of ``identity``."""
        return self.model == _key(identity)

    def outdated(self, questions: Questions) -> frozenset[str]:
        """The roles whose questions have changed since the test."""
        if self.questions is None:
            return frozenset()
        return frozenset(role for role, now in questions.items() if self.questions.get(role) != now)


def read(folder: Path) -> Result | None:
    """The stored result, or None."""
    try:
        kept = json.loads(files.own_bytes(folder / FILE))
        questions = None if kept.get("trusted") is True else dict(kept.get("questions", {}))
        features = Features(**{name: bool(value) for name, value in kept.get("features", {}).items()})
        return Result(str(kept["model"]), frozenset(map(str, kept["unfit"])), questions, features)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def unfit(kept: Result | None, identity: ChatIdentity, questions: Questions) -> frozenset[str] | None:
    """The roles that ``identity`` failed or was not tested for with ``questions``; None if it was not tested at all."""
    return kept.unfit | kept.outdated(questions) if kept and kept.of(identity) else None


def of_chat(folder: Path, chat: str) -> Result | None:
    """The result of the model called ``chat``, or None."""
    kept = read(folder)
    return kept if kept and (kept.model == chat or kept.model.startswith(f"{chat} ")) else None


def features(folder: Path, chat: str) -> Features:
    """What the server of the model ``chat`` can do."""
    kept = of_chat(folder, chat)
    return kept.features if kept else Features()


def keep(
    folder: Path,
    identity: ChatIdentity,
    roles: Collection[str],
    questions: Questions | None,
    features: Features | None = None,
) -> None:
    """Store the result of ``identity``, replacing any other; ``features`` None keeps those of the same model."""
    before = read(folder)
    if features is None:
        features = before.features if before and before.of(identity) else Features()
    of = {"trusted": True} if questions is None else {"questions": dict(questions)}
    kept = {"model": _key(identity), "unfit": sorted(roles), **of, "features": asdict(features)}
    folder.mkdir(parents=True, exist_ok=True)  # the folder is missing if no model was registered
    files.replace(folder / FILE, json.dumps(kept, indent=1).encode(), mode=0o666)  # less the umask


def _key(identity: ChatIdentity) -> str:
    return f"{identity.name} {identity.sha256}".strip()
