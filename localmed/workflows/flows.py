"""The flows by name, so that a recording can say which one it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from localmed.workflows.ask import ask
from localmed.workflows.flow import Flow
from localmed.workflows.plan import plan_sources

FLOWS: Mapping[str, Callable[..., Flow]] = {"ask": ask, "plan": plan_sources}
