"""Modules imported when first used, so that ``--help`` waits for none of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localmed.nightly import nights
    from localmed.people import accounts, history, tokens
    from localmed.site import canary_gate, changes, holds, importing, lookups, orders
    from localmed.upkeep import backup, check, doctor, egress, evidence, fit, incident, packs, repair, restore, signing

__all__ = [
    "accounts", "backup", "canary_gate", "changes", "check", "doctor", "egress", "evidence", "fit", "history", "holds",
    "importing", "incident", "lookups", "nights", "orders", "packs", "repair", "restore", "signing", "tokens",
]  # fmt: skip
_ROOMS = ("site", "upkeep", "people", "nightly")


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def __getattr__(name: str) -> Any:
    named = (f"localmed.{room}.{name}" for room in _ROOMS if name in __all__)
    if found := next(filter(find_spec, named), None):
        return _Later(found)
    raise AttributeError(name)
