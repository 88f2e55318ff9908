"""All roles, and what serves each by the settings: a chat model, rules (always without a model), or nothing.

Flows look at ``RoleTable.on`` before they ask a role. With only the answer's role on, asking is plain
retrieval-augmented generation (LINS, MAIRAG: agents are switched on one by one).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol

from localmed.answering import (
    asking,
    check,
    guidance,
    judging,
    orders,
    planning,
    practice,
    reliability,
    write,
)
from localmed.answering.roles import Performer, Role, Rules
from localmed.domain.errors import BadSettings, UsageError
from localmed.domain.ports import Embedder
from localmed.library.library import Library
from localmed.safety import safety

By = Literal["chat", "rules", "off"]
CHOICES = ("chat", "rules", "off")
# Served by rules, else not at all, unless the settings name them, so that no workflow costs more than four calls: terms
# of an order are in tables, an appraisal is a call for each study.
RULES_FIRST = frozenset({"medical_terms", "retrieval_question", "appraisal"})
ROLES: Mapping[str, Role] = {
    role.name: role
    for module in (
        write, check,
        asking, planning, orders, practice, guidance, safety, reliability, judging
    )
    for role in module.ROLES
}  # fmt: skip


# --- without a language model -----------------------------------------------------------------------------------------


class Models(Protocol):
    """The site's models that rules need."""

    @property
    def emergency_encoder(self) -> Embedder: ...  # noqa: D102
    @property
    def safety_encoder(self) -> Embedder: ...  # noqa: D102


def role_rules(library: Library, site: Models) -> Rules:
    """The rules over one library by role.

    Each is imported at its first use: importing all takes longer than a command's search.
    """

    def of_planning() -> Rules:
        from localmed.answering.orders_rules import concepts

        return planning.rules(partial(concepts, library.graph))

    def of_orders() -> Rules:
        from localmed.answering import orders_rules

        known = partial(orders_rules.is_name, library.graph, library.lexical)
        return {
            orders.MEDICAL_TERMS.name: lambda task: tuple(orders_rules.terms(task.order, known)[: orders.TERMS]),
            orders.RETRIEVAL_QUESTION.name: orders_rules.retrieval_question,
        }

    def of_guidance() -> Rules:
        from localmed.safety.safety_likeness import like_emergency

        return {
            guidance.DEPARTMENT.name: guidance.nearest,
            guidance.FINAL_CHECK.name: guidance.check_by_rule,
            guidance.EMERGENCY.name: partial(like_emergency, site.emergency_encoder),
        }

    def of_safety() -> Rules:
        from localmed.safety.safety_likeness import likened
        from localmed.safety.safety_rules import screen

        return {safety.SAFETY.name: screen, safety.LIKENESS.name: partial(likened, site.safety_encoder)}

    served = (
        (of_planning, planning.ROLES),
        (of_orders, (orders.MEDICAL_TERMS, orders.RETRIEVAL_QUESTION)),
        (of_guidance, guidance.ROLES),
        (of_safety, safety.ROLES),
    )
    return {role.name: partial(_performed, rules, role.name) for rules, roles in served for role in roles}


def _performed(rules: Callable[[], Rules], name: str, task: Any) -> Any:
    return rules()[name](task)


# --- who serves what --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleTable:
    """``Performer`` of all roles by their own model, the chat model or rules, as ``serves`` says."""

    roles: Mapping[str, Role]
    serves: Mapping[str, By]
    rules: Rules
    chat: Performer | None = None
    own: Mapping[str, Performer] = field(default_factory=dict)  # by role: a model tuned for it

    @property
    def on(self) -> frozenset[str]:
        """The names of the roles that something serves."""
        return frozenset(name for name, role in self.roles.items() if self.by(role) != "off")

    def by(self, role: Role) -> By:
        """What serves ``role``: a missing chat model serves nothing."""
        by = self.serves.get(role.name, "off")
        if by == "chat" and self._writer(role) is None:
            return "rules" if role.name in self.rules else "off"
        return by

    def model(self, role: Role) -> str:
        """The model of ``role``: the role's name if it has its own, else "chat"."""
        return role.name if role.name in self.own else "chat"

    def _writer(self, role: Role) -> Performer | None:
        return self.own.get(role.name, self.chat)

    def perform(self, role: Role, task: Any) -> Any:
        """See ``Performer.perform``; raise ``UsageError`` for a role that is off."""
        by = self.by(role)
        if by == "chat" and (writer := self._writer(role)):
            return writer.perform(role, task)
        if by == "rules":
            return self.rules[role.name](task)
        raise UsageError("agents.role_off", role=role.name)

    def without_chat(self) -> RoleTable:
        """The same roles by rules alone."""
        return replace(self, chat=None, own={})


def role_table(
    roles: Mapping[str, Role],
    usual: By,
    chosen: Mapping[str, str],
    rules: Rules,
    chat: Performer | None,
    unfit: Collection[str] = (),
    own: Mapping[str, Performer] = MappingProxyType({}),
) -> RoleTable:
    """What serves ``roles``: ``usual``, or as ``chosen`` (the settings' ``[roles]``) names.

    Unless named, ``RULES_FIRST`` and roles for which the chat model is ``unfit`` are served by rules, or are off
    without rules. A role with a model of its ``own`` is served by it. A role that cannot be served as usual is served
    otherwise; raise ``BadSettings`` if the settings name what is missing.
    """
    serves: dict[str, By] = {}
    for name, role in roles.items():
        there = {"chat": role.form is not None, "rules": name in rules, "off": True}
        possible = [by for by in CHOICES if there[by]]
        serving = [by for by in possible if by != "chat" or name in own or name not in unfit]
        without = "rules" if there["rules"] else "off"
        served = "chat" if name in own else without if name in RULES_FIRST else usual
        by = chosen.get(name, served if served in serving else serving[0])
        if by not in possible:
            raise BadSettings("agents.role_by", role=name, by=by, possible=tuple(possible))
        serves[name] = by  # type: ignore[assignment]
    if unknown := set(chosen) - set(roles):
        raise BadSettings("agents.no_role", role=sorted(unknown)[0], roles=tuple(roles))
    return RoleTable(roles, serves, rules, chat, own)
