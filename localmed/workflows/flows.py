"""The flows by name, so that a recording can say which one it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from localmed.workflows.ask import ask
from localmed.workflows.departments import departments
from localmed.workflows.ebm import ebm
from localmed.workflows.explain import explain
from localmed.workflows.flow import Flow
from localmed.workflows.links import links
from localmed.workflows.plan import plan_sources
from localmed.workflows.verify import ask_and_verify, verify

FLOWS: Mapping[str, Callable[..., Flow]] = {
    "ask": ask,
    "ask_and_verify": ask_and_verify,
    "departments": departments,
    "ebm": ebm,
    "explain": explain,
    "links": links,
    "plan": plan_sources,
    "verify": verify,
}
