"""Tests that need what a machine may lack: skipped there with the reason, failed in the CI run (``CI=true``)."""

from __future__ import annotations

import os
from typing import Any

import pytest

CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(reason: str) -> None:
    """End a test that cannot run here."""
    if CI:
        pytest.fail(f"this must run in CI: {reason}")
    pytest.skip(reason)


def needs(available: bool, what: str) -> pytest.MarkDecorator:
    """A mark for tests that need ``what``."""
    return pytest.mark.skipif(not available and not CI, reason=f"{what}: not available here")


def module(extra: str, name: str) -> Any:
    """The module ``name`` of an extra; without it the test module that asks is skipped (see ``conftest``)."""
    return pytest.importorskip(name, reason=f"the extra {extra}")
