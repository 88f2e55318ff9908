"""What a role is: who is asked for what, as a value. One call, ``perform(role, task)``, whatever serves the role.

A role says how a chat model is asked for it (its *form*); what is done without a model is a function of the same input
(``role_rules`` finds it). The roles are declared beside their inputs and outputs: ``asking``,
``planning``, ``practice``, ``orders``, ``guidance``; ``role_table`` lists them all and says what serves each.

Every input has a ``language`` ("en" or "zh"): the instructions (``prompts.toml``) are in it, and so must the reply be.
They are the same for every question, so that a model reads them once; what differs stands in the message after them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from localmed.domain import Message
from localmed.domain.ports import Choice

Rules = Mapping[str, Callable[[Any], Any]]  # role name -> its rule without a model
LANGUAGES = ("en", "zh")


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    table = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
    return {name: texts for name, texts in table.items() if isinstance(texts, dict)}


QUOTED = {language: _table()[language]["quoted"] for language in LANGUAGES}


@cache
def instructions(role: str) -> Mapping[str, str]:
    """The instructions of ``role`` by language."""
    return {language: _table()[role][language].replace("{quoted}", QUOTED[language]).strip() for language in LANGUAGES}


def words(group: str, language: str) -> Mapping[str, str]:
    """The labels of ``group`` ("quoted_names", "kinds", "record") in ``language``."""
    called: Mapping[str, str] = _table()[language][group]
    return called


def asked_by(language: str, audience: str, day: str) -> str:
    """A line on who asks and any date, by which a model can find the newer edition."""
    line: str = _table()[language]["dated" if day else "undated"]
    return line.format(asker=_table()[language][audience], day=day)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The places of passages ``kept`` in a model's context, ascending, with a ``note`` if some were left out."""

    kept: tuple[int, ...]
    note: Message | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """A chat model writes one JSON object, or text without a schema.

    The user's message is ``prompt`` followed by ``passages`` between marks, most important first; ``shortened`` gives
    the input with the passages that fit. ``read`` converts the reply and raises ``Rejected`` for an unusable one.
    """

    schema: Callable[[Any], Mapping[str, Any] | None]
    prompt: Callable[[Any], str]
    read: Callable[[Any, Any], Any]
    passages: Callable[[Any], Sequence[str]] = lambda _: ()
    shortened: Callable[[Any, Fitted], Any] = lambda task, _: task
    max_tokens: int = 512


@dataclass(frozen=True, slots=True)
class Choosing:
    """A chat model chooses a label for each of ``branches``, which follow one ``prompt``.

    ``labels`` by language; ``read`` converts the choices, in the branches' order.
    """

    labels: Mapping[str, tuple[str, ...]]
    prompt: Callable[[Any], str]
    branches: Callable[[Any], Sequence[str]]
    read: Callable[[Any, Sequence[Choice]], Any]


@dataclass(frozen=True, slots=True)
class Role:
    """A role; the ``version`` of its prompt and rules goes into provenance. Without a ``form`` only rules serve it."""

    name: str
    version: str
    form: Writing | Choosing | None = None

    @property
    def instructions(self) -> Mapping[str, str]:
        """The instructions by language."""
        return instructions(self.name)


class Performer(Protocol):
    """Serves roles."""

    def perform(self, role: Role, task: Any) -> Any:
        """Perform ``role`` on its input ``task``; raise ``Rejected`` for an unusable reply of a model."""
        ...
