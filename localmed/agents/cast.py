"""Who serves which role: a chat model, rules, or nobody. The settings say; without a chat model everything is rules.

A role that is off is not asked for: the flows look at ``Cast.on`` first. With every role off but the answer itself,
asking is plain retrieval-augmented generation (LINS, MAIRAG: agents are switched on one by one).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from localmed.agents.roles import Performer, Role
from localmed.errors import BadSettings, UsageError

By = Literal["chat", "rules", "off"]
Rules = Mapping[str, Callable[[Any], Any]]  # role name -> what is done without a model
CHOICES = ("chat", "rules", "off")


@dataclass(frozen=True, slots=True)
class Cast:
    """``Performer`` of all roles: each by the chat model or by its rules, as ``serves`` says."""

    roles: Mapping[str, Role]
    serves: Mapping[str, By]
    rules: Rules
    chat: Performer | None = None

    @property
    def on(self) -> frozenset[str]:
        """The names of the roles that are served in fact."""
        return frozenset(name for name, role in self.roles.items() if self.by(role) != "off")

    def by(self, role: Role) -> By:
        """Who serves ``role`` in fact: a chat model that is not there serves nothing."""
        by = self.serves.get(role.name, "off")
        if by == "chat" and self.chat is None:
            return "rules" if role.name in self.rules else "off"
        return by

    def perform(self, role: Role, given: Any) -> Any:
        """See ``Performer.perform``; raise ``UsageError`` for a role that is off."""
        by = self.by(role)
        if by == "chat" and self.chat is not None:
            return self.chat.perform(role, given)
        if by == "rules":
            return self.rules[role.name](given)
        raise UsageError("agents.role_off", role=role.name)

    def without_chat(self) -> Cast:
        """The same roles by their rules alone."""
        return replace(self, chat=None)


def cast(roles: Mapping[str, Role], usual: By, chosen: Mapping[str, str], rules: Rules, chat: Performer | None) -> Cast:
    """The cast of ``roles``: ``usual`` for all but those that ``chosen`` (the settings' ``[roles]``) names.

    A role that cannot be served as usual (a chat model for rules only, or the other way round) is served as it can be;
    raise ``BadSettings`` where the settings ask for what there is not.
    """
    serves: dict[str, By] = {}
    for name, role in roles.items():
        there = {"chat": role.form is not None, "rules": name in rules, "off": True}
        possible = [by for by in CHOICES if there[by]]
        by = chosen.get(name, usual if usual in possible else possible[0])
        if by not in possible:
            raise BadSettings(f"roles.{name} cannot be {by!r}", f"Set one of: {', '.join(possible)}")
        serves[name] = by  # type: ignore[assignment]
    if unknown := set(chosen) - set(roles):
        raise BadSettings("agents.no_role", role=sorted(unknown)[0], roles=tuple(roles))
    return Cast(roles, serves, rules, chat)
