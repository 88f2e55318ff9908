"""What a role is: who is asked for what, as a value. One call, ``perform(role, task)``, whatever serves the role.

A role says how a chat model is asked for it (its *form*); what is done without a model is a function of the same input
(``RoleRules`` finds it). The roles are declared beside their inputs and outputs: ``asking``,
``planning``, ``practice``, ``orders``, ``guidance``; ``role_table`` lists them all and says what serves each.

Every input has a ``language`` ("en" or "zh"): the instructions are in it, and so must the reply be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from localmed.answering.prompts import instructions
from localmed.domain import Message
from localmed.domain.ports import Choice

Rules = Mapping[str, Callable[[Any], Any]]  # role name -> what is done without a model


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
