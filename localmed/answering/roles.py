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

Rules = Mapping[str, Callable[[Any], Any]]  # role name -> what is done without a model


LANGUAGES = ("en", "zh")


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    table = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
    return {name: texts for name, texts in table.items() if isinstance(texts, dict)}


QUOTED = {language: _table()[language]["quoted"] for language in LANGUAGES}


@cache
def instructions(role: str) -> Mapping[str, str]:
    """Language -> what the model is told in ``role``."""
    return {language: _table()[role][language].replace("{quoted}", QUOTED[language]).strip() for language in LANGUAGES}


def words(group: str, language: str) -> Mapping[str, str]:
    """What is written beside quoted material in ``language``: the ``group`` "quoted_names", "kinds" or "record"."""
    called: Mapping[str, str] = _table()[language][group]
    return called


def asked_by(language: str, audience: str, day: str) -> str:
    """Who asks, and the date where it is known: by it a model may tell which edition is the newer one."""
    line: str = _table()[language]["dated" if day else "undated"]
    return line.format(asker=_table()[language][audience], day=day)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits into a model's context: the places of the passages ``kept``, ascending; no ``note`` where all fit."""

    kept: tuple[int, ...]
    note: Message | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """A chat model writes one JSON object, or text where there is no schema.

    The user's message is ``prompt`` and then, each between marks, the ``passages``, most important first; where they do
    not all fit into the context, ``shortened`` gives the input with those that did. ``read`` makes the output of the
    reply's value (or text) and raises ``Rejected`` for one that cannot be used.
    """

    schema: Callable[[Any], Mapping[str, Any] | None]
    prompt: Callable[[Any], str]
    read: Callable[[Any, Any], Any]
    passages: Callable[[Any], Sequence[str]] = lambda _: ()
    shortened: Callable[[Any, Fitted], Any] = lambda task, _: task
    max_tokens: int = 512


@dataclass(frozen=True, slots=True)
class Choosing:
    """A chat model chooses a label for each of several ``branches``, which share the ``prompt`` before them.

    ``labels`` are in the language's own words; ``read`` makes the output of the choices, in the branches' order.
    """

    labels: Mapping[str, tuple[str, ...]]
    prompt: Callable[[Any], str]
    branches: Callable[[Any], Sequence[str]]
    read: Callable[[Any, Sequence[Choice]], Any]


@dataclass(frozen=True, slots=True)
class Role:
    """What is asked for. ``version`` of the prompt and rules goes into provenance.

    Without a ``form`` the role is served by rules only.
    """

    name: str
    version: str
    form: Writing | Choosing | None = None

    @property
    def instructions(self) -> Mapping[str, str]:
        """Language -> what a model is told in this role."""
        return instructions(self.name)


class Performer(Protocol):
    """Serves roles."""

    def perform(self, role: Role, task: Any) -> Any:
        """Do what ``role`` asks with ``task`` (the role's input type) and return its output type.

        Raise ``Rejected`` where a model's reply cannot be used.
        """
        ...
