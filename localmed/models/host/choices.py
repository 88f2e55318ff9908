"""What chose the models of a host and of a command, in words that can be compared.

A command uses a host's model only where both would load the same one in the same way. By name and fingerprint of the
registered model, and for the chat model its settings too; what needs no registered model is of the same version of
localmed, which both sides compare before.
"""

from __future__ import annotations

from collections.abc import Mapping

from localmed.config import NONE, ChatSettings
from localmed.domain import digest
from localmed.models.registry.registration import Registrations

ROLES = ("encoder", "reranker", "entailment", "chat")  # that a host owns


def choices(chosen: Mapping[str, str], registrations: Registrations, settings: ChatSettings) -> dict[str, str]:
    """Role -> what serves it: one text for each way of loading each model. ``chosen`` is ``config.chosen_models``'s."""
    by_role = {}
    for role in ROLES:
        name = chosen.get(role, NONE)
        model = registrations.models.get(name)
        by_role[role] = f"{name} {model.fingerprint}" if model else name
    by_role["chat"] += f" {digest(repr(settings))[:12]}"
    return by_role
