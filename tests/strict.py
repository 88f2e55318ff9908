"""Tests that prove what localmed promises are not skipped unnoticed: in CI (``CI=true``) they fail instead."""

from __future__ import annotations

import os

import pytest

CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")


def cannot(reason: str) -> None:
    """End a test that proves a promise and cannot run here: skipped, in CI failed."""
    if CI:
        pytest.fail(f"this proves a promise and must run in CI: {reason}")
    pytest.skip(reason)


def needs(available: bool, what: str) -> pytest.MarkDecorator:
    """A mark for tests that prove a promise and need ``what``: skipped where it is not available, in CI run anyway."""
    return pytest.mark.skipif(not available and not CI, reason=f"{what}: not available here")
