"""What the tests of the registry share: manifests, a model to add, and a look at what was stored."""

from __future__ import annotations

from pathlib import Path

from localmed.models.registry.registry import Registry
from tests.models import model_files as files
from tests.models.model_files import make

MANIFEST = """
name = "tiny"
role = "chat"
family = "Tiny"
title = "Tiny chat"
licence = "MIT"
source = "made here"
languages = ["en"]
context = 4096
template = "chatml"
[[files]]
name = "Tiny-*.gguf"
{hash}
[shape]
architecture = "qwen3"
parameters = 1000
bits_per_weight = 8
layers = 2
kv_heads = 2
head_width = 8
"""
ENCODER = """
name = "small-encoder"
role = "encoder"
library = "sentence-transformers"
family = "Small"
title = "Small encoder"
licence = "MIT"
source = "made here"
[[files]]
name = "config.json"
[[files]]
name = "model.safetensors | pytorch_model.bin"
[[files]]
name = "extra/*.json"
optional = true
"""
CONTENT = files.gguf()


def write_manifests(folder: Path, hashed: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.toml").write_text(MANIFEST.format(hash=hashed))
    (folder / "small-encoder.toml").write_text(ENCODER)
    return folder


def encoder_folder(folder: Path) -> Path:
    make(folder / "config.json", b"{}")
    make(folder / "model.safetensors", files.safetensors())
    make(folder / "extra" / "a.json", b"{}")
    make(folder / "onnx" / "model.onnx", b"not wanted")
    make(folder / ".cache" / "x", b"hidden")
    return folder


def stored(registry: Registry, name: str = "tiny", file: str = "Tiny-Q8_0.gguf") -> Path:
    path = registry.folder / name / file
    path.chmod(0o600)
    return path


def leftovers(registry: Registry) -> list[str]:
    return sorted(path.name for pattern in (".adding*", ".removing*") for path in registry.folder.glob(pattern))
