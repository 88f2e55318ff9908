"""The flows by name, so that a recording can say which one it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from localmed.workflows.flow import Flow

# The module and the function of each; only the one that runs is imported, all of them cost a command 0.1 s.
FLOWS: Mapping[str, tuple[str, str]] = {
    "ask": ("ask", "ask"),
    "ask_and_verify": ("verify", "ask_and_verify"),
    "departments": ("departments", "departments"),
    "ebm": ("ebm", "ebm"),
    "explain": ("explain", "explain"),
    "links": ("links", "links"),
    "plan": ("plan", "plan_sources"),
    "verify": ("verify", "verify"),
}


def flow(name: str) -> Callable[..., Flow]:
    """The flow called ``name``; raise ``KeyError`` for another."""
    module, function = FLOWS[name]
    chosen: Callable[..., Flow] = getattr(import_module(f"localmed.workflows.{module}"), function)
    return chosen
