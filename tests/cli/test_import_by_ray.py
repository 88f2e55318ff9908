"""What `localmed import --engine ray` refuses, in one line; that it works is shown in test_cluster.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--ray-workers", "2"), "--engine ray"),
        (("--engine", "ray", "--dry-run"), "--dry-run"),
        (("--engine", "ray", "--ray-address", "10.0.0.5:6379"), "ingest.clusters"),
        (("--engine", "ray", "--ray-address", "10.0.0.5:6379", "--ray-workers", "2"), "--ray-workers"),
    ],
)
def test_what_ray_does_not_do_is_refused_before_it_starts(
    localmed: Localmed, tmp_path: Path, options: tuple[str, ...], remedy: str
) -> None:
    assert remedy in localmed("import", str(tmp_path), "-c", "ward", *options).failed(2)


def test_without_ray_it_says_what_to_install(
    localmed: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "localmed[ray]" in localmed("import", str(tmp_path), "-c", "ward", "--engine", "ray").failed(2)
