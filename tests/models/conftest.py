"""A registry, a model on a stick, and a tiny chat model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from localmed.models.llama.adapter import LlamaChat
from localmed.models.registry.registry import Registry
from tests.models.model_files import make
from tests.models.registered import CONTENT, write_manifests
from tests.models.tiny_gguf import chat, write_gguf


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


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF that llama.cpp loads."""
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[LlamaChat]:
    with closing(chat(path)) as opened:
        yield opened
