"""A registry, and a model on a stick."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.models.registry.registry import Registry
from tests.models.model_files import make
from tests.models.registered import CONTENT, write_manifests


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "models", write_manifests(tmp_path / "manifests"))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return make(tmp_path / "stick" / "Tiny-Q8_0.gguf", CONTENT)


@pytest.fixture
def added(registry: Registry, tiny: Path) -> Registry:
    registry.add(tiny, "librarian")
    registry.use("chat", "tiny")
    return registry
